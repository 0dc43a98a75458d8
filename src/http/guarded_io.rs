//! A connection that does not wait for ever: for a head that trickles in, or for a client that has
//! stopped reading.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Whose turn it is on a connection; told by the service, read by the guard.
#[derive(Debug, Default)]
pub struct Turns {
    /// Heads that have been read whole.
    begun: AtomicU64,
    /// A request is being answered: what comes in is its body, which has its own deadline.
    open: AtomicBool,
}

/// Our turn lasts until it is dropped.
pub struct OurTurn(Arc<Turns>);

impl OurTurn {
    #[must_use]
    pub fn begin(turns: &Arc<Turns>) -> Self {
        turns.begun.fetch_add(1, Ordering::Relaxed);
        turns.open.store(true, Ordering::Relaxed);
        Self(Arc::clone(turns))
    }
}

impl Turns {
    /// Whether a request is being answered.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }
}

impl Drop for OurTurn {
    fn drop(&mut self) {
        self.0.open.store(false, Ordering::Relaxed);
    }
}

pub struct GuardedIo<S> {
    stream: S,
    turns: Arc<Turns>,
    begun_seen: u64,
    /// Runs while a head is coming in.
    head: Option<Pin<Box<Sleep>>>,
    head_timeout: Duration,
    /// Runs while the client takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    write_timeout: Duration,
}

impl<S> GuardedIo<S> {
    /// The first head's time runs from now.
    #[must_use]
    pub fn new(stream: S, turns: Arc<Turns>, head_timeout: Duration, write_timeout: Duration) -> Self {
        let head = Some(Box::pin(sleep(head_timeout)));
        Self { stream, turns, begun_seen: 0, head, head_timeout, stalled: None, write_timeout }
    }

    fn check_write<T>(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.stalled = None;
            return poll;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(self.write_timeout)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedIo<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let begun = this.turns.begun.load(Ordering::Relaxed);
        if begun != this.begun_seen {
            this.begun_seen = begun;
            this.head = None;
        }
        let before = buf.filled().len();
        let poll = Pin::new(&mut this.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            if this.head.is_none() && !this.turns.open.load(Ordering::Relaxed) {
                this.head = Some(Box::pin(sleep(this.head_timeout)));
            }
            return poll;
        }
        if let (Poll::Pending, Some(head)) = (&poll, &mut this.head) {
            ready!(head.as_mut().poll(cx));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        poll
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuardedIo<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let poll = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.check_write(cx, poll)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let poll = Pin::new(&mut this.stream).poll_flush(cx);
        this.check_write(cx, poll)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let poll = Pin::new(&mut this.stream).poll_write_vectored(cx, slices);
        this.check_write(cx, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
