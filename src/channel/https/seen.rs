//! What went over a connection: how far requests got, and what the other side said of them.
//!
//! `h2` tells neither the last stream of a GOAWAY nor whether a request's first frame was written, and on
//! these two hangs whether a request may be sent again. So its frames' first nine bytes (RFC 9113 4.1) are
//! read along, in both directions, right where they become TLS.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

const HEADERS: u8 = 1;
const GOAWAY: u8 = 7;
/// "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": what a client says before its first frame.
const PREFACE: usize = 24;
const NO_LIMIT: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Seen {
    born: Instant,
    /// Milliseconds after `born`.
    heard: AtomicU64,
    anything: AtomicBool,
    written: AtomicU64,
    /// The highest stream whose HEADERS were written.
    opened: AtomicU32,
    /// The last stream that the other side will see through.
    last: AtomicU32,
    tls_failed: AtomicBool,
}

impl Seen {
    pub fn new() -> Self {
        Self {
            born: Instant::now(),
            heard: AtomicU64::new(0),
            anything: AtomicBool::new(false),
            written: AtomicU64::new(0),
            opened: AtomicU32::new(0),
            last: AtomicU32::new(NO_LIMIT),
            tls_failed: AtomicBool::new(false),
        }
    }

    /// Whether anything was heard yet.
    pub fn anything(&self) -> bool {
        self.anything.load(Ordering::SeqCst)
    }

    /// When something was heard last.
    pub fn heard_at(&self) -> Instant {
        self.born + Duration::from_millis(self.heard.load(Ordering::SeqCst))
    }

    /// Bytes handed to the connection.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::SeqCst)
    }

    /// Whether the other side takes no further streams.
    pub fn is_going(&self) -> bool {
        self.last.load(Ordering::SeqCst) != NO_LIMIT
    }

    /// Whether `stream` lies above what the other side said it would see through (RFC 9113 6.8).
    pub fn was_left_out(&self, stream: u32) -> bool {
        stream > self.last.load(Ordering::SeqCst)
    }

    /// Whether any byte of `stream` may have left. Final only once the connection has ended.
    pub fn was_opened(&self, stream: u32) -> bool {
        stream <= self.opened.load(Ordering::SeqCst)
    }

    /// Whether it is TLS that broke it, such as by an alert: `h2` keeps of an error its words alone.
    pub fn tls_failed(&self) -> bool {
        self.tls_failed.load(Ordering::SeqCst)
    }

    fn broke(&self, error: &io::Error) {
        if error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
            self.tls_failed.store(true, Ordering::SeqCst);
        }
    }

    fn hear(&self) {
        let millis = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard.store(millis, Ordering::SeqCst);
        self.anything.store(true, Ordering::SeqCst);
    }
}

/// Reads frames along, whatever pieces they come in.
#[derive(Debug)]
struct Along {
    /// What is passed over: a preface, or a payload.
    skip: usize,
    head: [u8; 9],
    have: usize,
    /// A GOAWAY's last stream, read so far.
    last: Option<([u8; 4], usize)>,
}

/// What a frame's beginning says.
enum Frame {
    Opens(u32),
    Leaves(u32),
}

impl Along {
    const fn after(skip: usize) -> Self {
        Self { skip, head: [0; 9], have: 0, last: None }
    }

    fn read(&mut self, mut bytes: &[u8], mut told: impl FnMut(Frame)) {
        while !bytes.is_empty() {
            if self.skip > 0 {
                let part = self.skip.min(bytes.len());
                self.payload(&bytes[..part], &mut told);
                self.skip -= part;
                bytes = &bytes[part..];
                continue;
            }
            let part = (9 - self.have).min(bytes.len());
            self.head[self.have..self.have + part].copy_from_slice(&bytes[..part]);
            self.have += part;
            bytes = &bytes[part..];
            if self.have == 9 {
                self.have = 0;
                let [a, b, c, kind, _, stream @ ..] = self.head;
                self.skip = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
                match kind {
                    HEADERS => told(Frame::Opens(stream_id(stream))),
                    GOAWAY => self.last = Some(([0; 4], 0)),
                    _ => {}
                }
            }
        }
    }

    fn payload(&mut self, bytes: &[u8], told: &mut impl FnMut(Frame)) {
        let Some((last, have)) = &mut self.last else { return };
        let part = (4 - *have).min(bytes.len());
        last[*have..*have + part].copy_from_slice(&bytes[..part]);
        *have += part;
        if *have == 4 {
            told(Frame::Leaves(stream_id(*last)));
            self.last = None;
        }
    }
}

/// The highest bit is reserved.
const fn stream_id(bytes: [u8; 4]) -> u32 {
    u32::from_be_bytes(bytes) & 0x7fff_ffff
}

/// A connection whose frames (HTTP/2) and bytes are read along.
#[derive(Debug)]
pub(super) struct Watched<S> {
    inner: S,
    seen: Arc<Seen>,
    /// Of HTTP/2: what comes in, what goes out.
    frames: Option<(Along, Along)>,
}

impl<S> Watched<S> {
    pub fn http2(inner: S, seen: Arc<Seen>) -> Self {
        Self { inner, seen, frames: Some((Along::after(0), Along::after(PREFACE))) }
    }

    pub fn http1(inner: S, seen: Arc<Seen>) -> Self {
        Self { inner, seen, frames: None }
    }

    fn came(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.seen.hear();
        if let Some((incoming, _)) = &mut self.frames {
            incoming.read(bytes, |frame| {
                if let Frame::Leaves(last) = frame {
                    // A graceful one comes twice, the first with the highest number there is.
                    self.seen.last.fetch_min(last, Ordering::SeqCst);
                }
            });
        }
    }

    fn went<'a>(&mut self, pieces: impl Iterator<Item = &'a [u8]>, mut count: usize) {
        self.seen.written.fetch_add(u64::try_from(count).unwrap_or(0), Ordering::SeqCst);
        let Some((_, outgoing)) = &mut self.frames else { return };
        for piece in pieces {
            let part = count.min(piece.len());
            outgoing.read(&piece[..part], |frame| {
                if let Frame::Opens(stream) = frame {
                    self.seen.opened.fetch_max(stream, Ordering::SeqCst);
                }
            });
            count -= part;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf)).inspect_err(|error| self.seen.broke(error))?;
        self.came(&buf.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.inner).poll_write(cx, buf))?;
        self.went(std::iter::once(buf), count);
        Poll::Ready(Ok(count))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.inner).poll_write_vectored(cx, bufs))?;
        self.went(bufs.iter().map(|piece| &**piece), count);
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, 0], &stream.to_be_bytes(), payload].concat()
    }

    fn read_in_pieces(bytes: &[u8], skip: usize, piece: usize) -> Vec<String> {
        let mut along = Along::after(skip);
        let mut told = Vec::new();
        for part in bytes.chunks(piece) {
            along.read(part, |frame| {
                told.push(match frame {
                    Frame::Opens(stream) => format!("opens {stream}"),
                    Frame::Leaves(last) => format!("leaves {last}"),
                });
            });
        }
        told
    }

    #[test]
    fn frames_are_read_along_in_whatever_pieces() {
        let bytes = [
            vec![7; PREFACE],
            frame(4, 0, &[0, 3, 0, 0, 0, 1]),
            frame(HEADERS, 1, b"abc"),
            // Data that looks like a HEADERS frame.
            frame(0, 1, &frame(HEADERS, 99, b"x")),
            frame(HEADERS, 0x8000_0003, &[]),
            frame(GOAWAY, 0, &[0x80, 0, 0, 3, 0, 0, 0, 0, b'w', b'h', b'y']),
            frame(6, 0, &[0; 8]),
            frame(GOAWAY, 0, &[0, 0, 0, 1, 0, 0, 0, 0]),
        ]
        .concat();
        for piece in [1, 2, 3, 8, 9, 10, 1000] {
            assert_eq!(
                read_in_pieces(&bytes, PREFACE, piece),
                ["opens 1", "opens 3", "leaves 3", "leaves 1"],
                "{piece}"
            );
        }
    }

    #[tokio::test]
    async fn the_last_stream_only_falls() {
        let seen = Arc::new(Seen::new());
        let (near, _far) = tokio::io::duplex(64);
        let mut watched = Watched::http2(near, seen.clone());
        assert!(!seen.is_going() && !seen.was_left_out(u32::MAX) && !seen.was_opened(1));
        watched.came(&frame(GOAWAY, 0, &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]));
        assert!(seen.is_going() && !seen.was_left_out(9));
        watched.came(&frame(GOAWAY, 0, &[0, 0, 0, 7, 0, 0, 0, 0]));
        watched.came(&frame(GOAWAY, 0, &[0, 0, 0, 11, 0, 0, 0, 0]));
        assert!(seen.was_left_out(9) && !seen.was_left_out(7));
        let out = [vec![0; PREFACE], frame(HEADERS, 5, b"x")].concat();
        watched.went([&out[..30], &out[30..]].into_iter(), PREFACE + 8);
        assert!(!seen.was_opened(5), "part of a frame's head opens nothing");
        watched.went(std::iter::once(&out[PREFACE + 8..]), 2);
        assert!(seen.was_opened(5) && !seen.was_opened(7));
        assert_eq!(seen.written(), 34);
    }
}
