//! The store's accept beside a bare group-commit loop over SQLite: one writer thread, everything that waits goes into the
//! next commit, the same durability, one time-ordered table and a narrow unique index. No guard,
//! no plan, no state. Both get the same content from as many callers, one item at a time.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Instant;

use anyhow::{Context, Result};
use belfry::machine::MachineClock;
use belfry::ports::clock::Clock;
use belfry::ports::deliveries::Deliveries;
use belfry::store::sqlite::SqliteStore;
use rusqlite::Connection;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::plan::Plan;
use crate::records::Shape;
use crate::rows::{Report, Row};

const CALLERS: usize = 64;
const ITEMS: usize = 40_000;
const MOST_PER_COMMIT: usize = 128;

struct Item {
    id: [u8; 12],
    body: Vec<u8>,
    done: oneshot::Sender<()>,
}

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    let mut accepted = Row::higher("store's accept, SQLite", "accepts/s", 0.5, 0.8).beside("bare group-commit loop");
    for _ in 0..plan.rounds {
        let other = bare().await?;
        accepted.rounds.push((ours().await?, other));
    }
    report.add([accepted]);
    Ok(())
}

/// The store's own accept.
async fn ours() -> Result<f64> {
    let folder = tempfile::tempdir_in(crate::child::target())?;
    let clock = Arc::new(MachineClock);
    let store = SqliteStore::open(&folder.path().join("belfry.db"), clock.clone())?;
    let planned: Vec<_> =
        (0..ITEMS).map(|number| Shape::mail("outbox").in_a_month().planned(number, clock.now())).collect();
    let mut shares: Vec<Vec<_>> = (0..CALLERS).map(|_| Vec::new()).collect();
    for (at, one) in planned.into_iter().enumerate() {
        shares[at % CALLERS].push(one);
    }
    let started = Instant::now();
    let mut callers = JoinSet::new();
    for share in shares {
        let store = store.clone();
        callers.spawn(async move {
            for one in share {
                store.accept(vec![one]).await?;
            }
            anyhow::Ok(())
        });
    }
    let seconds = all(callers, started).await?;
    store.close().await;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    Ok(ITEMS as f64 / seconds)
}

async fn all(mut callers: JoinSet<Result<()>>, started: Instant) -> Result<f64> {
    while let Some(caller) = callers.join_next().await {
        caller??;
    }
    Ok(started.elapsed().as_secs_f64())
}

/// Commits items asked for one by one by [`CALLERS`].
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
    let seconds = all(callers, started).await?;
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
