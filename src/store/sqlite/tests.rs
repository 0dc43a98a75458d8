//! Faults that cannot be had through the ports: a full disk, a panic, a writer that hangs.

use std::sync::Arc;
use std::sync::mpsc::{self, sync_channel};
use std::time::Duration;

use belfry_domain::UnixMs;
use tempfile::TempDir;

use super::core::{Core, Result};
use super::file::DatabaseFile;
use super::layouts::intent;
use super::store::Shell;
use super::syncer::{Log, Syncer};
use super::threads::SqliteStore;
use super::writer::{self, Answered, Operation, Write, Writer};
use crate::ports::StoreError;
use crate::ports::admin::{ApiKeys, Installation, KeptTemplate};
use crate::ports::clock::{Boot, Clock};
use crate::ports::deliveries::{Deliveries, Owner};
use crate::ports::search::Query;

pub(super) struct StoppedClock;

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

pub(super) fn files(text: &str) -> KeptTemplate {
    KeptTemplate { files: text.to_owned(), attached: Vec::new() }
}

pub(super) fn open() -> (TempDir, Arc<SqliteStore>) {
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
    store.shell.write(Answered::OnDisk, set).await.unwrap();
}

#[tokio::test]
async fn a_full_disk_is_unavailable_and_passes_with_its_cause() {
    let (_place, store) = open();
    store.keep_template("before", &files("files")).await.unwrap();
    pages(&store, 1).await;
    let large = "x".repeat(200_000);
    for _ in 0..3 {
        assert_eq!(unavailable(store.keep_template("large", &files(&large)).await), "the disk is full");
    }
    // What needs no room goes on, reading does too.
    assert_eq!(store.template("before").await.unwrap(), Some(files("files")));
    assert_eq!(store.renew(Vec::new()).await.unwrap(), []);
    assert_eq!(store.template("large").await.unwrap(), None);
    pages(&store, 1_000_000).await;
    store.keep_template("large", &files(&large)).await.unwrap();
    assert_eq!(store.template("large").await.unwrap(), Some(files(&large)));
}

#[tokio::test]
async fn a_panic_costs_its_own_transaction_and_no_more() {
    let (_place, store) = open();
    let panics = |core: &mut Core, _| -> Result<()> {
        core.count("outbox", 7);
        panic!("on purpose")
    };
    unavailable(store.shell.write(Answered::OnDisk, panics).await);
    unavailable(store.shell.read(|_, _| -> Result<()> { panic!("on purpose") }).await);
    store.probe().await.unwrap();
    assert_eq!(store.list().await.unwrap(), []);
    let outbox = store.shell.write(Answered::OnDisk, |core, _| core.counted("outbox")).await.unwrap();
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

/// Syncs when told to, and as told to.
struct Told {
    begun: mpsc::SyncSender<()>,
    answers: mpsc::Receiver<std::io::Result<()>>,
}

impl Log for Told {
    fn sync(&self) -> std::io::Result<()> {
        self.begun.send(()).unwrap();
        self.answers.recv().unwrap_or(Ok(()))
    }
}

struct Noted(Answered, mpsc::SyncSender<Result<()>>);

impl Operation for Noted {
    fn run(&mut self, _core: &mut Core, _now: UnixMs) -> Result<()> {
        Ok(())
    }

    fn run_guarded(&mut self, _core: &mut Core, _now: UnixMs) {}

    fn answered(&self) -> Answered {
        self.0
    }

    fn finish(self: Box<Self>, kept: Result<()>) {
        self.1.send(kept).unwrap();
    }
}

#[test]
fn nothing_is_answered_before_its_sync_and_nothing_is_trusted_after_a_failed_one() {
    let ((begun, begins), (answer, answers)) = (mpsc::sync_channel(8), mpsc::sync_channel(8));
    let (syncer, syncing) = Syncer::new(Box::new(Told { begun, answers }), Box::new(|| {}));
    let thread = std::thread::spawn(move || syncer.run());
    let commit = || {
        let (told, answered) = mpsc::sync_channel(8);
        syncing.committed(vec![Box::new(Noted(Answered::OnDisk, told)) as Box<dyn Operation>]);
        answered
    };
    let first = commit();
    begins.recv().unwrap();
    // Committed while the first sync is under way: covered by the second only.
    let (second, third) = (commit(), commit());
    assert!(first.try_recv().is_err());
    answer.send(Ok(())).unwrap();
    assert_eq!(first.recv().unwrap(), Ok(()));
    begins.recv().unwrap();
    assert!(second.try_recv().is_err());
    answer.send(Err(std::io::ErrorKind::StorageFull.into())).unwrap();
    for refused in [second, third] {
        assert_eq!(unavailable(refused.recv().unwrap()), "the disk did not take it");
    }
    assert!(syncing.failed());
    // The log would sync now, but what it lost before would not come back.
    assert_eq!(unavailable(commit().recv().unwrap()), "the disk did not take it");
    let ((begun, _kept), (_, answers)) = (mpsc::sync_channel(8), mpsc::sync_channel(8));
    syncing.look_at(Box::new(Told { begun, answers }));
    assert!(!syncing.failed());
    assert_eq!(commit().recv().unwrap(), Ok(()));
    drop(syncing);
    thread.join().unwrap();
}

#[tokio::test]
async fn a_store_whose_disk_failed_comes_back_with_all_it_holds() {
    let (place, store) = open();
    store.keep_template("before", &files("files")).await.unwrap();
    // As after a failed sync: the writer makes its connection anew and empties the log into the file.
    store.close().await;
    let file = Arc::new(DatabaseFile::lock(&place.path().join("belfry.db")).unwrap());
    let clock = Arc::new(StoppedClock);
    let core = Core::new(file.writer().unwrap(), UnixMs(1)).unwrap();
    let (commands, queue) = tokio::sync::mpsc::channel(8);
    let wake = commands.downgrade();
    let woken = move || drop(wake.upgrade().map(|commands| commands.try_send(writer::Command::Synced)));
    let (syncer, syncing) = Syncer::new(Box::new(Broken), Box::new(woken));
    let syncs = std::thread::spawn(move || syncer.run());
    let writer = Writer::new(core, file, clock, Arc::default(), syncing);
    let writes = std::thread::spawn(move || writer.run(queue));
    let keep = |version: &'static str| {
        let (reply, answer) = tokio::sync::oneshot::channel();
        let verb = move |core: &mut Core, now| core.keep_template(now, version, &files("files"));
        commands.try_send(writer::Command::Run(Box::new(Write::new(Answered::OnDisk, verb, reply)))).unwrap();
        answer
    };
    assert_eq!(unavailable(keep("unsure").await.unwrap()), "the disk did not take it");
    assert_eq!(keep("after").await.unwrap(), Ok(()));
    drop(commands);
    writes.join().unwrap();
    syncs.join().unwrap();
    let store = SqliteStore::open(&place.path().join("belfry.db"), Arc::new(StoppedClock)).unwrap();
    for version in ["before", "unsure", "after"] {
        assert!(store.template(version).await.unwrap().is_some(), "{version}");
    }
}

struct Broken;

impl Log for Broken {
    fn sync(&self) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Other.into())
    }
}

#[tokio::test]
async fn a_writer_that_hangs_delays_nobody_for_long_and_its_queue_is_bounded() {
    let (_place, store) = open();
    let (release, hang) = sync_channel::<()>(0);
    let mut hangs = Box::pin(store.shell.write(Answered::OnDisk, move |_, _| Ok(hang.recv().is_ok())));
    assert!(futures::poll!(&mut hangs).is_pending());
    // A write is given up on, but not taken back.
    assert_eq!(unavailable(store.keep_template("late", &files("files")).await), "no answer within 2 s");
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
    assert_eq!(store.template("late").await.unwrap(), Some(files("files")));
    store.probe().await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_read_holds_up_no_search_that_it_is_not_in() {
    let (_place, store) = open();
    let mut unreadable = intent("unreadable", None);
    unreadable.notification.class = "digest".into();
    store.accept(vec![intent("readable", None), unreadable]).await.unwrap();
    let spoil =
        |core: &mut Core, _| Ok(core.conn.execute("UPDATE notifications SET body = '{' WHERE class = 'digest'", [])?);
    assert_eq!(store.shell.write(Answered::OnDisk, spoil).await.unwrap(), 1);
    let owner = Owner { tenant: "t".into(), environment: "live".into() };
    let query = Query { class: Some("receipt".into()), accepted_from: Some(UnixMs(1)), ..Query::of(owner) };
    assert_eq!(store.search(query).await.unwrap().records.len(), 1);
}
