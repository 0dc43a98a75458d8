//! Time, dice and tasks as ports: production uses the machine's, the simulation its own.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use belfry_domain::UnixMs;

pub type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send + 'static>>;

/// An instant on a clock that never steps and goes on while the machine is suspended
/// (Linux: `CLOCK_BOOTTIME`), counted from an arbitrary start. Leases are counted on it: a worker
/// that slept through its lease must notice.
pub type Boot = Duration;

#[async_trait::async_trait]
pub trait Clock: Send + Sync + 'static {
    /// Wall clock.
    fn now(&self) -> UnixMs;
    fn boot(&self) -> Boot;
    /// Returns at or after `until`; at once where it has passed.
    async fn sleep_until(&self, until: Boot);
}

pub trait Dice: Send + Sync + 'static {
    /// Uniform over all of `u64`.
    fn roll(&self) -> u64;
}

/// Starts tasks. Production hands them to tokio; the simulation counts their polls and drops them
/// all at a crash.
pub trait Tasks: Send + Sync + 'static {
    fn start(&self, name: &'static str, task: BoxFuture);
}
