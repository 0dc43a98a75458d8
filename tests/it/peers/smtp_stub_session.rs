//! One session of the stub.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Act, At, Shared, Stored};

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Why a session ends; nothing more is to be done then.
struct Ended;

struct Session<'a> {
    stream: Box<dyn Duplex>,
    shared: &'a Shared,
    number: usize,
    received: Vec<u8>,
    read: usize,
    cut_after: Option<usize>,
    encrypted: bool,
    login: Option<String>,
    from: Option<(String, String)>,
    to: Vec<String>,
}

pub async fn run(stream: TcpStream, shared: &Shared, number: usize) {
    let (implicit, tls, cut_after) = {
        let script = shared.script.lock().unwrap();
        (script.implicit_tls, script.tls.clone(), script.cut_first_after.filter(|_| number == 0))
    };
    let stream: Box<dyn Duplex> = match tls.filter(|_| implicit) {
        None => Box::new(stream),
        Some(tls) => match tokio_rustls::TlsAcceptor::from(tls.config).accept(stream).await {
            Ok(stream) => Box::new(stream),
            Err(_) => return,
        },
    };
    let mut session = Session {
        stream,
        shared,
        number,
        received: Vec::new(),
        read: 0,
        cut_after,
        encrypted: implicit,
        login: None,
        from: None,
        to: Vec::new(),
    };
    // Ended is the usual end: the peer left, or the script closed.
    if let Err(Ended) = session.talk().await {}
}

impl Session<'_> {
    async fn talk(&mut self) -> Result<(), Ended> {
        self.answer(At::Greeting, "", "220 stub.test ESMTP").await?;
        loop {
            let line = self.command().await?;
            let upper = line.to_ascii_uppercase();
            let verb = upper.split([' ', ':']).next().unwrap_or_default();
            match verb {
                "EHLO" => self.ehlo(&line).await?,
                "STARTTLS" => self.starttls(&line).await?,
                "AUTH" => self.auth(&line).await?,
                "MAIL" => self.mail(&line).await?,
                "RCPT" => self.rcpt(&line).await?,
                "DATA" => self.take_message(&line).await?,
                "RSET" => {
                    self.from = None;
                    self.to.clear();
                    self.answer(At::Reset, &line, "250 2.0.0 Ok").await?;
                }
                "NOOP" => self.say("250 2.0.0 Ok").await?,
                "QUIT" => {
                    self.say("221 2.0.0 Bye").await?;
                    return Err(Ended);
                }
                _ => self.say("502 5.5.2 What").await?,
            }
        }
    }

    async fn ehlo(&mut self, line: &str) -> Result<(), Ended> {
        let mut lines = vec!["stub.test".to_owned()];
        {
            let script = self.shared.script.lock().unwrap();
            lines.extend(script.offers.iter().cloned());
            if script.tls.is_some() && !self.encrypted {
                lines.push("STARTTLS".to_owned());
            }
            if script.login.is_some() {
                lines.push("AUTH PLAIN LOGIN XOAUTH2".to_owned());
            }
        }
        let last = lines.len() - 1;
        let numbered =
            lines.iter().enumerate().map(|(at, it)| format!("250{}{it}", if at == last { " " } else { "-" }));
        self.answer(At::Ehlo, line, &numbered.collect::<Vec<_>>().join("\r\n")).await
    }

    async fn starttls(&mut self, line: &str) -> Result<(), Ended> {
        let tls = self.shared.script.lock().unwrap().tls.clone();
        let Some(tls) = tls else { return self.say("502 5.5.1 No").await };
        self.answer(At::StartTls, line, "220 2.0.0 Go on").await?;
        let plain = std::mem::replace(&mut self.stream, Box::new(tokio::io::empty()));
        let stream = tokio_rustls::TlsAcceptor::from(tls.config).accept(plain).await.map_err(|_| Ended)?;
        self.stream = Box::new(stream);
        self.encrypted = true;
        Ok(())
    }

    async fn auth(&mut self, line: &str) -> Result<(), Ended> {
        let wanted = self.shared.script.lock().unwrap().login.clone();
        let Some((user, password)) = wanted else { return self.say("503 5.5.1 No").await };
        let decode = |text: &str| String::from_utf8(STANDARD.decode(text).unwrap_or_default()).unwrap_or_default();
        let words: Vec<&str> = line.split(' ').collect();
        let given = match words[1..] {
            ["PLAIN", response] => decode(response) == format!("\0{user}\0{password}"),
            ["XOAUTH2", response] => {
                let right = decode(response) == format!("user={user}\x01auth=Bearer {password}\x01\x01");
                if !right {
                    // As the real ones do: one more challenge with the reason, answered by nothing.
                    self.say("334 eyJzdGF0dXMiOiI0MDEifQ==").await?;
                    self.command().await?;
                }
                right
            }
            ["LOGIN"] => {
                self.say("334 VXNlcm5hbWU6").await?;
                let name = self.command().await?;
                self.say("334 UGFzc3dvcmQ6").await?;
                let word = self.command().await?;
                decode(&name) == user && decode(&word) == password
            }
            _ => false,
        };
        self.login = given.then_some(user);
        let usual = if given { "235 2.7.0 Ok" } else { "535 5.7.8 Wrong" };
        self.answer(At::Auth, line, usual).await
    }

    async fn mail(&mut self, line: &str) -> Result<(), Ended> {
        let (address, rest) = bracketed(line);
        let wants_login = self.shared.script.lock().unwrap().login.is_some() && self.login.is_none();
        let usual = if wants_login {
            "530 5.7.0 Authentication required"
        } else if self.from.is_some() {
            "503 5.5.1 nested MAIL command"
        } else {
            "250 2.1.0 Ok"
        };
        let act = self.act(At::Mail, line);
        if usual.starts_with("250") && takes(&act) {
            self.from = Some((address, rest));
        }
        self.perform(act, usual).await
    }

    async fn rcpt(&mut self, line: &str) -> Result<(), Ended> {
        let usual = if self.from.is_some() { "250 2.1.5 Ok" } else { "503 5.5.1 need MAIL" };
        let act = self.act(At::Rcpt, line);
        if self.from.is_some() && takes(&act) {
            self.to.push(bracketed(line).0);
        }
        self.perform(act, usual).await
    }

    async fn take_message(&mut self, line: &str) -> Result<(), Ended> {
        let act = self.act(At::Data, line);
        if self.to.is_empty() && act.is_none() {
            return self.say("554 5.5.1 no valid recipients").await;
        }
        let goes_on = takes(&act);
        self.perform(act, "354 Go on").await?;
        if !goes_on {
            return Ok(());
        }
        let mut bytes = Vec::new();
        loop {
            let line = self.line().await?;
            if line == b".\r\n" {
                break;
            }
            bytes.extend_from_slice(line.strip_prefix(b".").unwrap_or(&line));
        }
        let (from, parameters) = self.from.take().unwrap_or_default();
        let stored = Stored {
            from,
            to: std::mem::take(&mut self.to),
            parameters,
            bytes,
            connection: self.number,
            encrypted: self.encrypted,
            login: self.login.clone(),
        };
        let mut id = 0;
        self.shared.seen.send_modify(|seen| {
            seen.messages.push(stored);
            id = seen.messages.len();
        });
        self.answer(At::Dot, ".", &format!("250 2.0.0 Ok: queued as STUB{id}")).await
    }

    fn act(&self, at: At, line: &str) -> Option<Act> {
        self.shared.script.lock().unwrap().act(at, line)
    }

    async fn answer(&mut self, at: At, line: &str, usual: &str) -> Result<(), Ended> {
        let act = self.act(at, line);
        self.perform(act, usual).await
    }

    async fn perform(&mut self, act: Option<Act>, usual: &str) -> Result<(), Ended> {
        match act {
            None => self.say(usual).await,
            Some(Act::Reply(text)) => self.say(&text).await,
            Some(Act::ReplyThenCut(text)) => {
                self.say(&text).await?;
                Err(Ended)
            }
            Some(Act::Cut) => Err(Ended),
            Some(Act::Stall) => {
                // Until the other side leaves.
                while self.stream.read(&mut [0; 1024]).await.map_err(|_| Ended)? > 0 {}
                Err(Ended)
            }
            Some(Act::AnswerOnRelease) => {
                self.shared.release.notified().await;
                self.say(usual).await
            }
        }
    }

    async fn say(&mut self, text: &str) -> Result<(), Ended> {
        if self.cut_after == Some(self.read) {
            return Err(Ended);
        }
        let lines: String = text.lines().map(|line| format!("{line}\r\n")).collect();
        self.stream.write_all(lines.as_bytes()).await.map_err(|_| Ended)?;
        self.stream.flush().await.map_err(|_| Ended)
    }

    /// The next command, unless the test wants idle connections closed.
    async fn command(&mut self) -> Result<String, Ended> {
        let mut farewell = self.shared.farewell.subscribe();
        let said = async move {
            let said = farewell.wait_for(Option::is_some).await;
            said.ok().and_then(|it| it.clone()).unwrap_or_default()
        };
        let line = tokio::select! {
            biased;
            line = self.line() => Ok(line?),
            said = said => Err(said),
        };
        let line = match line {
            Ok(line) => line,
            Err(said) => {
                if !said.is_empty() {
                    self.say(&said).await?;
                }
                return Err(Ended);
            }
        };
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        self.shared.seen.send_modify(|seen| seen.commands.push(line.clone()));
        Ok(line)
    }

    /// The next line with its line end; ends the session at the script's byte.
    async fn line(&mut self) -> Result<Vec<u8>, Ended> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                return Ok(self.received.drain(..=end).collect());
            }
            let room = self.cut_after.map_or(64 * 1024, |cut| cut - self.read).min(64 * 1024);
            if room == 0 {
                return Err(Ended);
            }
            let mut chunk = vec![0; room];
            let got = self.stream.read(&mut chunk).await.map_err(|_| Ended)?;
            if got == 0 {
                return Err(Ended);
            }
            self.read += got;
            let total = self.read;
            self.shared.seen.send_modify(|seen| seen.bytes[self.number] = total);
            self.received.extend_from_slice(&chunk[..got]);
        }
    }
}

/// Whether the stub goes on as if it had agreed.
fn takes(act: &Option<Act>) -> bool {
    match act {
        None | Some(Act::AnswerOnRelease) => true,
        Some(Act::Reply(text)) => text.starts_with('2') || text.starts_with('3'),
        Some(Act::ReplyThenCut(_) | Act::Stall | Act::Cut) => false,
    }
}

/// What stands between angle brackets, and what follows.
fn bracketed(line: &str) -> (String, String) {
    let inner = line.split_once('<').and_then(|(_, rest)| rest.rsplit_once('>'));
    inner.map(|(address, rest)| (address.to_owned(), rest.trim().to_owned())).unwrap_or_default()
}
