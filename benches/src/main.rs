//! Belfry beside what it is measured against: ratios, interleaved in one run, at least five rounds,
//! medians. Absolute figures say more about the machine than about the code.
//!
//! Everything listens on loopback, every loop is bounded, every child is stopped.

#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

mod accept;
mod child;
mod group_commit;
mod http_load;
mod idle;
mod parse_only;
mod records;
mod rows;
mod smtp;
mod smtp_sink;

use anyhow::{Result, bail};

use rows::Report;

/// What a run is made of; `scripts/bench` sets it.
struct Plan {
    rounds: usize,
    /// Names of the parts to run; empty: all.
    only: Vec<String>,
}

impl Plan {
    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|one| one == part)
    }
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut plan = Plan { rounds: 5, only: Vec::new() };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "parse-only" => return parse_only::serve(),
            "--rounds" => plan.rounds = arguments.next().unwrap_or_default().parse()?,
            part if !part.starts_with('-') => plan.only.push(part.to_owned()),
            other => bail!("unknown argument {other}"),
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut report = Report::default();
    if plan.wants("accept") {
        runtime.block_on(accept::measure(&plan, &mut report))?;
    }
    if plan.wants("store") {
        runtime.block_on(group_commit::measure(&plan, &mut report))?;
    }
    if plan.wants("smtp") {
        runtime.block_on(smtp::measure(&plan, &mut report))?;
    }
    if plan.wants("idle") {
        runtime.block_on(idle::measure(&plan, &mut report))?;
    }
    report.print();
    report.write()
}
