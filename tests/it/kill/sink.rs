//! A mail server that counts. Every message whose final dot arrived is an effect, whether or not
//! anybody heard the answer; its Subject names the intent. Replies can be held back at a phase.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

/// Where a reply can be held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Greeting,
    FinalDot,
}

/// One message as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    pub message_id: String,
    /// Header and body, as they came.
    pub text: String,
}

#[derive(Default)]
struct Seen {
    effects: HashMap<String, Vec<Effect>>,
    total: usize,
    /// Intents in the order of their arrival.
    order: Vec<String>,
    held_at: Option<Phase>,
    /// Connections that wait in a held phase, by the address they came to.
    waiting: HashMap<SocketAddr, usize>,
}

#[derive(Clone)]
pub(crate) struct Sink {
    pub address: SocketAddr,
    seen: Arc<(Mutex<Seen>, Condvar)>,
}

impl Sink {
    pub(crate) fn start() -> Self {
        Self::listening(Arc::default())
    }

    /// The same server at an address of its own, by which to tell who came there.
    pub(crate) fn door(&self) -> Self {
        Self::listening(self.seen.clone())
    }

    fn listening(seen: Arc<(Mutex<Seen>, Condvar)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sink = Self { address: listener.local_addr().unwrap(), seen };
        let accepting = sink.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let sink = accepting.clone();
                // A connection that breaks off is a client that died: what it did was counted.
                thread::spawn(move || sink.serve(stream).ok());
            }
        });
        sink
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.0.lock().unwrap()
    }

    /// All messages so far.
    pub(crate) fn total(&self) -> usize {
        self.seen().total
    }

    /// The intents, in the order of their arrival.
    pub(crate) fn order(&self) -> Vec<String> {
        self.seen().order.clone()
    }

    /// What arrived for an intent.
    pub(crate) fn effects(&self, intent: &str) -> Vec<Effect> {
        self.seen().effects.get(intent).cloned().unwrap_or_default()
    }

    /// Holds back every reply at `phase` from now on.
    pub(crate) fn hold(&self, phase: Phase) {
        self.seen().held_at = Some(phase);
    }

    /// How many connections wait for a reply that is held back.
    pub(crate) fn waiting(&self) -> usize {
        self.seen().waiting.values().sum()
    }

    /// The same of this door alone.
    pub(crate) fn waiting_here(&self) -> usize {
        self.seen().waiting.get(&self.address).copied().unwrap_or(0)
    }

    pub(crate) fn let_go(&self) {
        self.seen().held_at = None;
        self.seen.1.notify_all();
    }

    fn pass(&self, phase: Phase) {
        let mut seen = self.seen();
        *seen.waiting.entry(self.address).or_default() += 1;
        while seen.held_at == Some(phase) {
            seen = self.seen.1.wait(seen).unwrap();
        }
        *seen.waiting.entry(self.address).or_default() -= 1;
    }

    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        self.pass(Phase::Greeting);
        say(&mut lines, "220 sink.example ESMTP")?;
        loop {
            line.clear();
            if lines.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let verb = line.get(..4).unwrap_or_default().to_ascii_uppercase();
            match verb.as_str() {
                "EHLO" => say(&mut lines, "250-sink.example\r\n250-8BITMIME\r\n250 SMTPUTF8")?,
                "DATA" => {
                    say(&mut lines, "354 go ahead")?;
                    self.take(&mut lines)?;
                    self.pass(Phase::FinalDot);
                    say(&mut lines, "250 2.0.0 kept")?;
                }
                "QUIT" => return say(&mut lines, "221 bye"),
                _ => say(&mut lines, "250 ok")?,
            }
        }
    }

    fn take(&self, lines: &mut BufReader<TcpStream>) -> io::Result<()> {
        let mut text = String::new();
        loop {
            let from = text.len();
            if lines.read_line(&mut text)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if &text[from..] == ".\r\n" {
                text.truncate(from);
                break;
            }
        }
        let header = |name: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            found.trim().to_owned()
        };
        let (intent, message_id) = (header("Subject:"), header("Message-ID:"));
        let mut seen = self.seen();
        seen.total += 1;
        seen.order.push(intent.clone());
        seen.effects.entry(intent).or_default().push(Effect { message_id, text });
        Ok(())
    }
}

fn say(lines: &mut BufReader<TcpStream>, text: &str) -> io::Result<()> {
    lines.get_mut().write_all(format!("{text}\r\n").as_bytes())
}
