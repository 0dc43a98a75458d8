//! Faults that cannot be had through the ports: a full disk, a panic, a writer that hangs.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use belfry_domain::UnixMs;
use tempfile::TempDir;

use super::core::{Core, Result};
use super::store::Shell;
use super::threads::SqliteStore;
use crate::ports::StoreError;
use crate::ports::admin::{ApiKeys, Installation};
use crate::ports::clock::{Boot, Clock};
use crate::ports::deliveries::{Deliveries, Owner};

struct StoppedClock;

#[async_trait::async_trait]
impl Clock for StoppedClock {
    fn now(&self) -> UnixMs {
        UnixMs(1)
    }

    fn boot(&self) -> Boot {
        Duration::ZERO
    }

    async fn sleep_until(&self, _until: Boot) {}
}

fn open() -> (TempDir, Arc<SqliteStore>) {
    let place = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&place.path().join("belfry.db"), Arc::new(StoppedClock)).unwrap();
    (place, store)
}

fn unavailable<T: std::fmt::Debug>(answer: Result<T>) -> String {
    match answer {
        Err(StoreError::Unavailable(why)) => why,
        other => panic!("{other:?}"),
    }
}

async fn pages(store: &SqliteStore, most: i64) {
    let set = move |core: &mut Core, _| {
        // Takes effect at once, transaction or not; below the file's size it means the file's size.
        Ok(core.conn.pragma_update_and_check(None, "max_page_count", most, |_| Ok(()))?)
    };
    store.shell.write(set).await.unwrap();
}

#[tokio::test]
async fn a_full_disk_is_unavailable_and_passes_with_its_cause() {
    let (_place, store) = open();
    store.keep_template("before", "files").await.unwrap();
    pages(&store, 1).await;
    let large = "x".repeat(200_000);
    for _ in 0..3 {
        assert_eq!(unavailable(store.keep_template("large", &large).await), "the disk is full");
    }
    // What needs no room goes on, reading does too.
    assert_eq!(store.template("before").await.unwrap().as_deref(), Some("files"));
    assert_eq!(store.renew(Vec::new()).await.unwrap(), []);
    assert_eq!(store.template("large").await.unwrap(), None);
    pages(&store, 1_000_000).await;
    store.keep_template("large", &large).await.unwrap();
    assert_eq!(store.template("large").await.unwrap(), Some(large));
}

#[tokio::test]
async fn a_panic_costs_its_own_transaction_and_no_more() {
    let (_place, store) = open();
    let panics = |core: &mut Core, _| -> Result<()> {
        core.count("outbox", 7);
        panic!("on purpose")
    };
    unavailable(store.shell.write(panics).await);
    unavailable(store.shell.read(|_, _| -> Result<()> { panic!("on purpose") }).await);
    store.probe().await.unwrap();
    assert_eq!(store.list().await.unwrap(), []);
    let outbox = store.shell.write(|core, _| core.counted("outbox")).await.unwrap();
    assert_eq!(outbox, 0);
}

#[test]
fn an_operation_that_fails_takes_no_neighbour_with_it() {
    let mut core = Core::in_memory(UnixMs(1)).unwrap();
    let owner = |tenant: &str| Owner { tenant: tenant.into(), environment: "live".into() };
    core.begin().unwrap();
    core.operation(|core| core.owner(&owner("first"))).unwrap();
    let failed = core.operation(|core| {
        core.owner(&owner("second"))?;
        core.count("parked", 1);
        core.due = true;
        Err::<(), _>(StoreError::Corrupt("on purpose".into()))
    });
    assert_eq!(failed, Err(StoreError::Corrupt("on purpose".into())));
    core.operation(|core| core.owner(&owner("third"))).unwrap();
    assert!(!core.commit().unwrap());
    let known = |tenant| core.reads().owner(&owner(tenant)).unwrap().is_some();
    assert_eq!((known("first"), known("second"), known("third")), (true, false, true));
    assert_eq!(core.counted("parked").unwrap(), 0);
}

#[tokio::test]
async fn a_writer_that_hangs_delays_nobody_for_long_and_its_queue_is_bounded() {
    let (_place, store) = open();
    let (release, hang) = sync_channel::<()>(0);
    let mut hangs = Box::pin(store.shell.write(move |_, _| Ok(hang.recv().is_ok())));
    assert!(futures::poll!(&mut hangs).is_pending());
    // A write is given up on, but not taken back.
    assert_eq!(unavailable(store.keep_template("late", "files").await), "no answer within 2 s");
    let mut queued = Vec::new();
    let refused = loop {
        let mut probe = Box::pin(store.probe());
        match futures::poll!(&mut probe) {
            std::task::Poll::Pending => queued.push(probe),
            std::task::Poll::Ready(answer) => break unavailable(answer),
        }
    };
    assert_eq!(refused, "too much is waiting for it");
    // Readers have a queue of their own.
    assert_eq!(store.template("late").await.unwrap(), None);
    release.send(()).unwrap();
    for probe in queued {
        probe.await.unwrap();
    }
    assert_eq!(store.template("late").await.unwrap().as_deref(), Some("files"));
    store.probe().await.unwrap();
}
