//! `smtp-sink` from Debian's postfix: takes every message and forgets it.

use std::net::TcpListener;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::child::Server;

pub(crate) struct Sink {
    server: Server,
    address: String,
    /// Mails so far, where it counts.
    count: Arc<AtomicUsize>,
}

impl Sink {
    pub(crate) async fn start() -> Result<Self> {
        Self::started(&[], Stdio::null()).await
    }

    /// One that tells after each mail how many have come.
    pub(crate) async fn counting() -> Result<Self> {
        let mut own = Self::started(&["-c"], Stdio::piped()).await?;
        let mut told = own.server.output().context("its counters")?;
        let count = own.count.clone();
        tokio::spawn(async move {
            let mut text = [0; 4096];
            while let Ok(read @ 1..) = told.read(&mut text).await {
                if let Some(mails) = last_count(&text[..read]) {
                    count.store(mails, Ordering::Relaxed);
                }
            }
        });
        Ok(own)
    }

    async fn started(options: &[&str], output: Stdio) -> Result<Self> {
        // A port that was free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("smtp-sink");
        command.env("PATH", format!("{path}:/usr/sbin")).stdin(Stdio::null()).stdout(output).args(options);
        if is_root() {
            // It gives up root, and will not start without being told for whom.
            command.args(["-u", "nobody"]);
        }
        command.arg(&address).arg("256");
        let mut server = Server::spawn("smtp-sink", &mut command).context("smtp-sink (Debian's postfix)")?;
        server.listens(&address).await?;
        Ok(Self { server, address, count: Arc::default() })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns once `count` have come, and says when that was seen.
    pub(crate) async fn has(&self, count: usize, within: Duration) -> Result<Instant> {
        let until = Instant::now() + within;
        while Instant::now() < until {
            let came = self.count();
            ensure!(came <= count, "{came} came where {count} were due");
            if came == count {
                return Ok(Instant::now());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        bail!("only {} of {count} came within {within:?}", self.count())
    }

    pub(crate) async fn stop(self) -> Result<()> {
        self.server.stop().await
    }

    /// Sends `messages` on one connection as fast as the protocol lets: each message's dot leaves
    /// together with the next one's MAIL, RCPT and DATA.
    pub(crate) async fn pipelined(address: &str, messages: usize, body: &str) -> Result<()> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut lines = BufReader::new(stream);
        reply(&mut lines, "220").await?;
        lines.get_mut().write_all(b"EHLO bench.example\r\n").await?;
        reply(&mut lines, "250").await?;
        const OPEN: &str = "MAIL FROM:<shop@example.com>\r\nRCPT TO:<customer@example.com>\r\nDATA\r\n";
        let next = format!("{body}.\r\n{OPEN}");
        lines.get_mut().write_all(OPEN.as_bytes()).await?;
        for number in 1..=messages {
            for code in ["250", "250", "354"] {
                reply(&mut lines, code).await?;
            }
            let last = format!("{body}.\r\n");
            let text = if number == messages { &last } else { &next };
            lines.get_mut().write_all(text.as_bytes()).await?;
            reply(&mut lines, "250").await?;
        }
        lines.get_mut().write_all(b"QUIT\r\n").await?;
        Ok(())
    }
}

/// The last whole `mesg=N` in what it tells.
fn last_count(text: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(text).ok()?;
    let whole = &text[..text.rfind(['\r', '\n'])?];
    let from = whole.rfind("mesg=")? + "mesg=".len();
    whole[from..].split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// Reads one reply, however many lines it has.
async fn reply(lines: &mut BufReader<TcpStream>, code: &str) -> Result<()> {
    let mut line = String::new();
    loop {
        line.clear();
        if lines.read_line(&mut line).await? == 0 || !line.starts_with(code) {
            bail!("expected {code}: {line}");
        }
        if line.as_bytes().get(3) == Some(&b' ') {
            return Ok(());
        }
    }
}
