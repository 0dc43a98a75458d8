//! Several real processes on one Redis: killed, stopped and restarted while the servers under them
//! falter, with nothing acknowledged lost and nothing doubled without a recorded reason.

mod asleep;
mod books;
mod case_106;
mod case_25;
mod case_31;
mod clocks;
mod failover;
mod fleet;
mod memory;
mod moving;
mod replica_away;
mod report;
mod rolling;
mod scenarios;
mod servers;
mod storm;
mod under;
