//! A connection's bytes: plain or TLS, read line by line. Knows nothing of SMTP's meaning.
//!
//! Lines are handed out one at a time and what lies beyond is kept here, so that it is known at any
//! moment whether the server said something unasked: before a reuse (a waiting 421), before the
//! final dot, and before TLS (what came in plain text must not be read as if it had come over TLS).

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A server that never ends its line is cut off here.
const MAX_LINE: usize = 4096;

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

pub struct Wire {
    stream: Stream,
    /// The same socket once more, to look without waiting and past tokio's readiness cache.
    probe: std::net::TcpStream,
    received: Vec<u8>,
    taken: usize,
}

impl Wire {
    /// Connects without Nagle's delay: commands are small and each waits for its reply.
    ///
    /// # Errors
    /// As the socket says.
    pub async fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let probe = std::net::TcpStream::from(stream.as_fd().try_clone_to_owned()?);
        Ok(Self { stream: Stream::Plain(stream), probe, received: Vec::with_capacity(1024), taken: 0 })
    }

    #[must_use]
    pub const fn is_encrypted(&self) -> bool {
        matches!(self.stream, Stream::Tls(_))
    }

    /// # Errors
    /// As the socket says.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.probe.local_addr()
    }

    /// Continues in TLS.
    ///
    /// # Errors
    /// The handshake failed, or something was received in plain text that nobody asked for.
    pub async fn into_tls(self, config: Arc<rustls::ClientConfig>, name: ServerName<'static>) -> io::Result<Self> {
        if self.taken < self.received.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "plain text after STARTTLS"));
        }
        let Stream::Plain(plain) = self.stream else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "already encrypted"));
        };
        let tls = TlsConnector::from(config).connect(name, plain).await?;
        Ok(Self { stream: Stream::Tls(Box::new(tls)), received: Vec::with_capacity(1024), taken: 0, ..self })
    }

    /// Hands over as much of `bytes` as the socket takes now; flushed once nothing is left.
    ///
    /// # Errors
    /// As the socket says.
    pub async fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.stream {
            Stream::Plain(stream) => stream.write(bytes).await?,
            Stream::Tls(stream) => stream.write(bytes).await?,
        };
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(written)
    }

    /// # Errors
    /// As the socket says.
    pub async fn flush(&mut self) -> io::Result<()> {
        match &mut self.stream {
            Stream::Plain(stream) => stream.flush().await,
            Stream::Tls(stream) => stream.flush().await,
        }
    }

    /// # Errors
    /// As the socket says.
    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Plain(stream) => stream.write_all(bytes).await?,
            Stream::Tls(stream) => stream.write_all(bytes).await?,
        }
        self.flush().await
    }

    /// The next line, without its line end.
    ///
    /// # Errors
    /// `UnexpectedEof` where the server closed, `InvalidData` where the line has no end.
    pub async fn read_line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(end) = self.received[self.taken..].iter().position(|byte| *byte == b'\n') {
                let line = &self.received[self.taken..self.taken + end];
                let line = line.strip_suffix(b"\r").unwrap_or(line).to_vec();
                self.taken += end + 1;
                if self.taken == self.received.len() {
                    self.received.clear();
                    self.taken = 0;
                }
                return Ok(line);
            }
            if self.received.len() - self.taken > MAX_LINE {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a reply line without an end"));
            }
            let read = match &mut self.stream {
                Stream::Plain(stream) => stream.read_buf(&mut self.received).await?,
                Stream::Tls(stream) => stream.read_buf(&mut self.received).await?,
            };
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Whether there is anything to read, the end included, although nothing was asked.
    pub fn has_news(&mut self) -> bool {
        if self.taken < self.received.len() {
            return true;
        }
        if let Stream::Tls(stream) = &mut self.stream {
            // A 421 may have come in the record of the reply before it.
            match stream.get_mut().1.process_new_packets() {
                Ok(state) if state.plaintext_bytes_to_read() == 0 && !state.peer_has_closed() => {}
                Ok(_) | Err(_) => return true,
            }
        }
        !matches!(self.probe.peek(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Wire(encrypted: {})", self.is_encrypted())
    }
}
