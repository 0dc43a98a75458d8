//! One thread, virtual time, seeded order: the same seed gives the same run, poll for poll.
//!
//! Tasks belong to nodes. A crash drops all tasks of a node right before its n-th poll, wherever
//! they stand, which is what a power cut does.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use belfry::ports::clock::{Boot, BoxFuture};

pub use crate::peers::rng::Rng;

pub type NodeId = usize;

/// What runs outside every node: callers and the world. Never crashes.
pub const WORLD: NodeId = 0;

struct Ready {
    woken: Mutex<Vec<u64>>,
}

struct TaskWaker {
    id: u64,
    ready: Arc<Ready>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.ready.woken.lock().unwrap().push(self.id);
    }
}

struct State {
    rng: Rng,
    now: Boot,
    next_id: u64,
    /// Started since the last poll.
    fresh: Vec<(u64, NodeId, BoxFuture)>,
    timers: BTreeMap<(Boot, u64), Waker>,
    polls: HashMap<NodeId, u64>,
    crash_before: HashMap<NodeId, u64>,
    crashes: Vec<NodeId>,
    down: BTreeSet<NodeId>,
}

/// Shared by everything in a run.
#[derive(Clone)]
pub struct Sim {
    state: Arc<Mutex<State>>,
    ready: Arc<Ready>,
}

impl Sim {
    pub fn new(seed: u64) -> Self {
        let state = State {
            rng: Rng(seed),
            now: Duration::from_secs(1_000),
            next_id: 0,
            fresh: Vec::new(),
            timers: BTreeMap::new(),
            polls: HashMap::new(),
            crash_before: HashMap::new(),
            crashes: Vec::new(),
            down: BTreeSet::new(),
        };
        Self { state: Arc::new(Mutex::new(state)), ready: Arc::new(Ready { woken: Mutex::new(Vec::new()) }) }
    }

    pub fn now(&self) -> Boot {
        self.state.lock().unwrap().now
    }

    pub fn roll(&self) -> u64 {
        self.state.lock().unwrap().rng.next()
    }

    pub fn below(&self, bound: u64) -> u64 {
        self.state.lock().unwrap().rng.below(bound)
    }

    pub fn chance(&self, percent: u64) -> bool {
        self.state.lock().unwrap().rng.chance(percent)
    }

    pub fn start(&self, node: NodeId, task: BoxFuture) {
        let mut state = self.state.lock().unwrap();
        if state.down.contains(&node) {
            // Dropped outside the lock: what is dropped may wake others.
            drop(state);
            return drop(task);
        }
        let id = state.next_id;
        state.next_id += 1;
        state.fresh.push((id, node, task));
    }

    /// A crashed node takes tasks again.
    pub fn up(&self, node: NodeId) {
        self.state.lock().unwrap().down.remove(&node);
    }

    /// All tasks of `node` are dropped before its `nth` poll from its start.
    pub fn crash_before(&self, node: NodeId, nth: u64) {
        self.state.lock().unwrap().crash_before.insert(node, nth);
    }

    /// Nodes that crashed since the last call.
    pub fn crashed(&self) -> Vec<NodeId> {
        std::mem::take(&mut self.state.lock().unwrap().crashes)
    }

    pub fn polls(&self, node: NodeId) -> u64 {
        self.state.lock().unwrap().polls.get(&node).copied().unwrap_or(0)
    }

    pub async fn sleep_until(&self, until: Boot) {
        Sleep { sim: self.clone(), until, timer: None }.await;
    }

    pub async fn sleep(&self, wait: Duration) {
        self.sleep_until(self.now() + wait).await;
    }

    /// Gives others a turn, `times` over.
    pub async fn yields(&self, times: u64) {
        for _ in 0..times {
            Yield(false).await;
        }
    }

    /// Runs until `done` says so (asked whenever nothing is ready), or no timer is left, or virtual
    /// time passes `limit`. Returns whether `done` was reached.
    pub fn run(&self, limit: Boot, mut done: impl FnMut() -> bool) -> bool {
        let mut tasks: BTreeMap<u64, (NodeId, BoxFuture)> = BTreeMap::new();
        let mut ready: Vec<u64> = Vec::new();
        loop {
            self.admit(&mut tasks, &mut ready);
            if ready.is_empty() {
                if done() {
                    return true;
                }
                if !self.advance(limit) {
                    return false;
                }
                continue;
            }
            let at = usize::try_from(self.below(ready.len() as u64)).unwrap();
            let id = ready.swap_remove(at);
            let Some((node, _)) = tasks.get(&id) else { continue };
            let node = *node;
            if self.crash_due(node) {
                self.crash(node, &mut tasks);
                continue;
            }
            let waker = Waker::from(Arc::new(TaskWaker { id, ready: self.ready.clone() }));
            let (_, mut task) = tasks.remove(&id).unwrap();
            if Pin::new(&mut task).poll(&mut Context::from_waker(&waker)).is_pending() {
                tasks.insert(id, (node, task));
            }
        }
    }

    fn admit(&self, tasks: &mut BTreeMap<u64, (NodeId, BoxFuture)>, ready: &mut Vec<u64>) {
        let fresh = std::mem::take(&mut self.state.lock().unwrap().fresh);
        for (id, node, task) in fresh {
            tasks.insert(id, (node, task));
            ready.push(id);
        }
        for id in self.ready.woken.lock().unwrap().drain(..) {
            if !ready.contains(&id) {
                ready.push(id);
            }
        }
    }

    /// Counts the poll; true where the node has to crash instead.
    fn crash_due(&self, node: NodeId) -> bool {
        let mut state = self.state.lock().unwrap();
        let polls = state.polls.entry(node).or_default();
        *polls += 1;
        let polls = *polls;
        state.crash_before.get(&node) == Some(&polls)
    }

    fn crash(&self, node: NodeId, tasks: &mut BTreeMap<u64, (NodeId, BoxFuture)>) {
        let gone: Vec<u64> = tasks.iter().filter(|(_, (of, _))| *of == node).map(|(id, _)| *id).collect();
        let mut dropped: Vec<_> = gone.iter().filter_map(|id| tasks.remove(id)).collect();
        {
            let mut state = self.state.lock().unwrap();
            state.crashes.push(node);
            state.down.insert(node);
            state.crash_before.remove(&node);
            state.polls.remove(&node);
            let (own, others) = std::mem::take(&mut state.fresh).into_iter().partition(|(_, of, _)| *of == node);
            state.fresh = others;
            let own: Vec<(u64, NodeId, BoxFuture)> = own;
            dropped.extend(own.into_iter().map(|(_, of, task)| (of, task)));
        }
        // Outside the lock: what is dropped may wake others.
        drop(dropped);
    }

    /// To the next timer. False where there is none before `limit`.
    fn advance(&self, limit: Boot) -> bool {
        let woken = {
            let mut state = self.state.lock().unwrap();
            let Some(((at, _), _)) = state.timers.first_key_value() else { return false };
            let at = *at;
            if at > limit {
                return false;
            }
            state.now = state.now.max(at);
            let later = state.timers.split_off(&(at + Duration::from_nanos(1), 0));
            std::mem::replace(&mut state.timers, later)
        };
        for waker in woken.into_values() {
            waker.wake();
        }
        true
    }
}

struct Sleep {
    sim: Sim,
    until: Boot,
    timer: Option<(Boot, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let sim = self.sim.clone();
        let mut state = sim.state.lock().unwrap();
        if state.now >= self.until {
            return Poll::Ready(());
        }
        let timer = self.timer.unwrap_or_else(|| {
            state.next_id += 1;
            (self.until, state.next_id)
        });
        state.timers.insert(timer, context.waker().clone());
        self.timer = Some(timer);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            self.sim.state.lock().unwrap().timers.remove(&timer);
        }
    }
}

struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
