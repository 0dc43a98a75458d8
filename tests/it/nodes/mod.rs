//! Several real processes on one Redis: killed, stopped and restarted while the servers under them
//! falter, with nothing acknowledged lost and nothing doubled without a recorded reason.

mod asleep;
mod books;
mod case_25;
mod clocks;
mod failover;
mod fleet;
mod memory;
mod moving;
mod rolling;
mod servers;
mod storm;
