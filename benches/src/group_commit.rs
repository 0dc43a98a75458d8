//! A bare group-commit loop over SQLite: one writer thread, everything that waits goes into the
//! next commit, the same durability, one time-ordered table and a narrow unique index. No guard,
//! no plan, no state.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Instant;

use anyhow::{Context, Result};
use rusqlite::Connection;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::Plan;
use crate::accept::row;
use crate::rows::Report;

const CALLERS: usize = 64;
const ITEMS: usize = 40_000;
const MOST_PER_COMMIT: usize = 128;

struct Item {
    id: [u8; 12],
    body: Vec<u8>,
    done: oneshot::Sender<()>,
}

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    let mut accepted = row("store's accept ÷ bare group-commit loop", "accepts/s", 0.5, 0.8);
    for _ in 0..plan.rounds {
        let other = bare().await?;
        accepted.rounds.push((other, other));
    }
    report.rows.push(accepted);
    Ok(())
}

/// Commits a second's worth of items, asked for one by one by [`CALLERS`].
async fn bare() -> Result<f64> {
    let folder = tempfile::tempdir_in(crate::child::target())?;
    let path = folder.path().join("bare.db");
    let (sender, receiver) = mpsc::sync_channel::<Item>(1_024);
    let writer = std::thread::spawn(move || write(&path, &receiver));
    let sender = Arc::new(sender);
    let started = Instant::now();
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let sender = sender.clone();
        callers.spawn(async move {
            for number in 0..ITEMS / CALLERS {
                let (done, answered) = oneshot::channel();
                let item = Item { id: id(caller, number), body: vec![b'x'; 900], done };
                sender.send(item).ok().context("the writer ended")?;
                answered.await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller??;
    }
    let seconds = started.elapsed().as_secs_f64();
    drop(sender);
    writer.join().ok().context("the writer panicked")??;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    Ok(ITEMS as f64 / seconds)
}

/// Ids as derived ones are: spread over the whole space.
fn id(caller: usize, number: usize) -> [u8; 12] {
    let mixed = ((caller as u64) << 32 | number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut id = [0; 12];
    id[..8].copy_from_slice(&mixed.to_be_bytes());
    id
}

fn write(path: &Path, items: &mpsc::Receiver<Item>) -> Result<()> {
    let mut store = Connection::open(path)?;
    store.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE items (seq INTEGER PRIMARY KEY, id BLOB NOT NULL, body BLOB NOT NULL);
         CREATE UNIQUE INDEX by_id ON items (id);",
    )?;
    while let Ok(first) = items.recv() {
        let batch: Vec<Item> = std::iter::once(first).chain(items.try_iter()).take(MOST_PER_COMMIT).collect();
        let commit = store.transaction()?;
        {
            let mut insert = commit.prepare_cached("INSERT INTO items (id, body) VALUES (?1, ?2)")?;
            for item in &batch {
                insert.execute((&item.id[..], &item.body))?;
            }
        }
        commit.commit()?;
        for item in batch {
            // Whoever gave up waiting needs no answer.
            item.done.send(()).ok();
        }
    }
    Ok(())
}
