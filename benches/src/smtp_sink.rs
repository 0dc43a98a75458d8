//! `smtp-sink` from Debian's postfix: takes every message and forgets it.

use std::net::TcpListener;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::child::Server;

pub(crate) struct Sink {
    server: Server,
}

impl Sink {
    pub(crate) async fn start() -> Result<Self> {
        // A port that was free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("smtp-sink");
        command.env("PATH", format!("{path}:/usr/sbin"));
        if is_root() {
            // It gives up root, and will not start without being told for whom.
            command.args(["-u", "nobody"]);
        }
        let server = Server::start_at("smtp-sink", command.arg(&address).arg("256"), address.clone()).await;
        Ok(Self { server: server.context("smtp-sink (Debian's postfix)")? })
    }

    pub(crate) fn address(&self) -> &str {
        &self.server.address
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
