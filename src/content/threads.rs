//! The threads on which templates are compiled and filled in: a fixed few, with a stack that is
//! deep enough for whatever the [grammar](super::grammar) lets through, and nobody else's time on
//! them. Whoever asks waits for a bounded while. Work that is not done by then is written off: its
//! asker is told, its thread is replaced, and it runs out its fuel where it disturbs nobody.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// A message is made in a millisecond or a few; fuel alone bounds most work to some hundred.
pub const FINISH_WITHIN: Duration = Duration::from_secs(2);
/// Until a thread is free.
const BEGIN_WITHIN: Duration = Duration::from_secs(5);
const THREADS: usize = 4;
/// Threads that may run on beside those. Past it they are not replaced, and whoever asks is told
/// that none is free.
const MOST_WRITTEN_OFF: usize = 8;
/// Whoever comes when this many wait is told so at once.
const MOST_WAITING: usize = 256;
/// Address space, of which only what is used is memory. A test renders and compiles the deepest that
/// the grammar lets through.
const STACK: usize = 64 * 1024 * 1024;

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// No thread came free in time.
    NoTurn,
    /// It began, and did not end in time.
    RunsOn,
    /// It panicked.
    Panicked,
}

/// How many works of one kind were written off and still run.
pub type RunningOn = Arc<AtomicUsize>;

type Work = Box<dyn FnOnce() + Send>;

struct Job {
    work: Work,
    state: Arc<State>,
}

/// What asker and thread agree on.
struct State {
    phase: AtomicU8,
    running_on: RunningOn,
}

const WAITING: u8 = 0;
const RUNNING: u8 = 1;
const DONE: u8 = 2;
/// The asker has gone before it began.
const WITHDRAWN: u8 = 3;
/// The asker has gone while it ran.
const WRITTEN_OFF: u8 = 4;

impl State {
    fn step(&self, from: u8, to: u8) -> bool {
        self.phase.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

struct Pool {
    queue: SyncSender<Job>,
    next: Arc<Mutex<Receiver<Job>>>,
    lost: Mutex<Lost>,
}

/// Threads that run on with what was written off.
#[derive(Default)]
struct Lost {
    all: usize,
    /// Of these, whose place nobody took: they go on here when they come back.
    unreplaced: usize,
}

static POOL: LazyLock<Pool> = LazyLock::new(|| {
    let (queue, next) = sync_channel(MOST_WAITING);
    let next = Arc::new(Mutex::new(next));
    for _ in 0..THREADS {
        start(&next);
    }
    Pool { queue, next, lost: Mutex::default() }
});

/// One thread more, until it comes back from a work that was written off and has been replaced. Where
/// the machine has none to give, whoever asks is told that none is free.
fn start(next: &Arc<Mutex<Receiver<Job>>>) {
    let next = Arc::clone(next);
    let serve = move || {
        loop {
            let job = next.lock().unwrap_or_else(PoisonError::into_inner).recv();
            // The queue lives as long as the program.
            let Ok(Job { work, state }) = job else { return };
            if !state.step(WAITING, RUNNING) {
                continue;
            }
            work();
            if !POOL.goes_on(&state) {
                return;
            }
        }
    };
    thread::Builder::new().name("templates".into()).stack_size(STACK).spawn(serve).map(drop).unwrap_or_default();
}

impl Pool {
    /// Whether the work was still running, and is given up now.
    fn write_off(&self, state: &State) -> bool {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.step(RUNNING, WRITTEN_OFF) {
            return false;
        }
        state.running_on.fetch_add(1, Ordering::AcqRel);
        if lost.all < MOST_WRITTEN_OFF {
            start(&self.next);
        } else {
            lost.unreplaced += 1;
        }
        lost.all += 1;
        true
    }

    /// Whether the thread that ended this work is to go on, or has been replaced.
    fn goes_on(&self, state: &State) -> bool {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if state.step(RUNNING, DONE) {
            return true;
        }
        state.running_on.fetch_sub(1, Ordering::AcqRel);
        lost.all -= 1;
        let unreplaced = lost.unreplaced > 0;
        lost.unreplaced -= usize::from(unreplaced);
        unreplaced
    }
}

/// Runs `work` there and waits for it, at most [`FINISH_WITHIN`] from when it begins. `running_on`
/// counts it while it runs on after that.
///
/// # Errors
/// [`Unfinished`].
pub fn run<T: Send + 'static>(
    running_on: &RunningOn,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unfinished> {
    run_within(FINISH_WITHIN, running_on, work)
}

fn run_within<T: Send + 'static>(
    limit: Duration,
    running_on: &RunningOn,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unfinished> {
    let state = Arc::new(State { phase: AtomicU8::new(WAITING), running_on: Arc::clone(running_on) });
    let (begin, begun) = sync_channel::<()>(1);
    let (give, given) = sync_channel(1);
    let work = Box::new(move || {
        // Whoever waited may have gone: then nobody wants to know.
        begin.try_send(()).unwrap_or_default();
        give.try_send(catch_unwind(AssertUnwindSafe(work))).unwrap_or_default();
    });
    if POOL.queue.try_send(Job { work, state: Arc::clone(&state) }).is_err() {
        return Err(Unfinished::NoTurn);
    }
    if begun.recv_timeout(BEGIN_WITHIN).is_err() && state.step(WAITING, WITHDRAWN) {
        return Err(Unfinished::NoTurn);
    }
    match given.recv_timeout(limit) {
        Ok(done) => done.map_err(|_| Unfinished::Panicked),
        Err(RecvTimeoutError::Disconnected) => Err(Unfinished::Panicked),
        // It may have ended in this very moment.
        Err(RecvTimeoutError::Timeout) if !POOL.write_off(&state) => {
            given.recv().ok().and_then(Result::ok).ok_or(Unfinished::Panicked)
        }
        Err(RecvTimeoutError::Timeout) => Err(Unfinished::RunsOn),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_on_is_written_off_and_comes_back() {
        let mine = RunningOn::default();
        let (open, gate) = sync_channel::<()>(1);
        let (ended, end) = sync_channel::<()>(1);
        let stuck = run_within(Duration::from_millis(1), &mine, move || {
            gate.recv().ok();
            ended.send(()).ok();
        });
        assert_eq!(stuck, Err(Unfinished::RunsOn));
        assert_eq!(mine.load(Ordering::Acquire), 1);
        // As many as there are threads: its place was taken.
        let at_once: Vec<_> = (0..THREADS).map(|at| run(&RunningOn::default(), move || at)).collect();
        assert!(at_once.into_iter().eq((0..THREADS).map(Ok)));
        open.send(()).unwrap();
        end.recv().unwrap();
        while mine.load(Ordering::Acquire) > 0 {
            thread::yield_now();
        }
    }

    #[test]
    fn a_panic_costs_no_thread() {
        for _ in 0..=THREADS {
            let gone = run(&RunningOn::default(), || std::panic::resume_unwind(Box::new("scripted")));
            assert_eq!(gone, Err::<(), _>(Unfinished::Panicked));
        }
        assert_eq!(run(&RunningOn::default(), || 1), Ok(1));
    }
}
