//! Signals to processes.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::until::until;

const WITHIN: Duration = Duration::from_secs(10);

/// Sends it. A stop returns once it has stopped: on a busy machine the thread that is to stop the others
/// may be long in coming to it, and they go on meanwhile.
pub(crate) fn send(pid: Pid, signal: Signal) {
    kill_process(pid, signal).unwrap();
    if signal == Signal::STOP {
        until("every thread has stopped", WITHIN, || has_stopped(pid).then_some(()));
    }
}

fn has_stopped(pid: Pid) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).unwrap();
    threads.flatten().all(|thread| {
        // One that has ended meanwhile does nothing more.
        let Ok(stat) = std::fs::read_to_string(thread.path().join("stat")) else { return true };
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    })
}
