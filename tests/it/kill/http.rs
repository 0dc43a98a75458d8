//! As little of an HTTP client as these tests need: one connection that stays open while it can.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use super::server::KEY;

pub(crate) struct Client {
    address: SocketAddr,
    key: String,
    patience: Duration,
    open: Option<BufReader<TcpStream>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self::patient(address, Duration::from_secs(30))
    }

    /// That gives up on an answer after `patience`.
    pub(crate) fn patient(address: SocketAddr, patience: Duration) -> Self {
        Self { address, key: KEY.to_owned(), patience, open: None }
    }

    pub(crate) fn with_key(self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self }
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<Answer> {
        let key = &self.key;
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: kill\r\nAuthorization: Bearer {key}\r\n\r\n"))
    }

    pub(crate) fn post(&mut self, path: &str, key: &str, body: &Value) -> io::Result<Answer> {
        let (body, bearer) = (body.to_string(), &self.key);
        self.ask(&format!(
            "POST {path} HTTP/1.1\r\nHost: kill\r\nAuthorization: Bearer {bearer}\r\nIdempotency-Key: \"{key}\"\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    /// An error leaves open whether it was taken: the caller asks again under the same key.
    fn ask(&mut self, request: &str) -> io::Result<Answer> {
        let mut stream = match self.open.take() {
            Some(stream) => stream,
            None => connect(self.address, self.patience)?,
        };
        stream.get_mut().write_all(request.as_bytes())?;
        let answer = read(&mut stream)?;
        if !answer.head.to_lowercase().contains("connection: close") {
            self.open = Some(stream);
        }
        Ok(answer)
    }
}

fn connect(address: SocketAddr, patience: Duration) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    Ok(BufReader::new(stream))
}

fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Answer> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let status = head.get(9..12).and_then(|digits| digits.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let body = String::from_utf8(body).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(Answer { status, head, body })
}
