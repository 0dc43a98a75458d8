//! Belfry beside what it is measured against: ratios, interleaved in one run, at least five rounds,
//! medians. Absolute figures say more about the machine than about the code.
//!
//! Everything listens on loopback, every loop is bounded, every child is stopped.

#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

mod accept;
mod apns;
mod apns_sink;
mod child;
mod code;
mod delivered;
mod group_commit;
mod growth;
mod http_load;
mod idle;
mod node;
mod parse_only;
mod peers;
mod plan;
mod records;
mod redis_server;
mod rows;
mod smtp;
mod smtp_sink;
mod stores;
mod webhook;
mod webhook_sender;
mod webhook_sink;

use anyhow::{Result, bail};
use tokio::signal::unix::{SignalKind, signal};

use plan::Plan;
use rows::Report;
use stores::StoreKind;

/// The program's own, for both sides.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).peekable();
    let child =
        arguments.next_if(|first| ["parse-only", "webhook-sink", "apns-sink", "node"].contains(&first.as_str()));
    match child.as_deref() {
        Some("parse-only") => return parse_only::serve(arguments.next()),
        Some("webhook-sink") => return webhook_sink::serve(),
        Some("apns-sink") => return apns_sink::serve(arguments.next()),
        Some("node") => return node::serve(arguments),
        _ => {}
    }
    let plan = Plan::read(arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut report = Report::default();
    let outcome = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        // Broken off, everything that was started is dropped, and with that killed.
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => bail!("broken off"),
            _ = terminate.recv() => bail!("broken off"),
            done = measure(&plan, &mut report) => done,
        }
    });
    report.print();
    report.write(plan.quick)?;
    outcome
}

async fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    // What is asked of SQLite is measured on SQLite whatever lies under the others.
    let kinds: &[StoreKind] = match plan.store {
        StoreKind::Sqlite => &[StoreKind::Sqlite],
        StoreKind::Redis => &[StoreKind::Sqlite, StoreKind::Redis],
    };
    for kind in kinds {
        if plan.wants("accept") {
            accept::measure(plan, *kind, report).await?;
        }
    }
    if plan.wants("store") {
        group_commit::measure(plan, report).await?;
    }
    if plan.wants("smtp") {
        smtp::measure(plan, plan.store, report).await?;
    }
    if plan.wants("webhook") {
        webhook::measure(plan, report).await?;
    }
    if plan.wants("apns") {
        apns::measure(plan, report).await?;
    }
    if plan.wants("code") {
        code::measure(plan, report).await?;
    }
    if plan.wants("peers") {
        peers::measure(plan, report).await?;
    }
    for kind in kinds {
        if plan.wants("idle") {
            idle::measure(plan, *kind, report).await?;
        }
    }
    if plan.wants("growth") {
        growth::measure(plan, report).await?;
    }
    Ok(())
}
