//! What only a store in a file has to keep: its file, its lock, and what outlives its process.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use belfry::ports::StoreError;
use belfry::ports::admin::KeptTemplate;
use belfry::ports::attachments::Attached;
use belfry::ports::clock::Clock;
use belfry::ports::deliveries::{Accepted, Deliveries, PurgeAsk, Reclaim, Settle, Written};
use belfry::store::sqlite::{OpenError, SqliteStore};
use belfry_domain::{State, UnixMs};
use tempfile::TempDir;

use super::fixture::{LEASE_MS, WINDOW_MS, acme, ask, ended, id_of, intent, intent_of, queued, with_template};
use super::harness::{Harness, ManualClock};
use super::installation::files;

fn open(place: &Path, clock: &Arc<ManualClock>) -> Result<Harness, OpenError> {
    let store = SqliteStore::open(&place.join("belfry.db"), clock.clone())?;
    Ok(Harness::over(store, clock))
}

fn refused(place: &Path) -> String {
    match open(place, &ManualClock::new()) {
        Ok(_) => panic!("opened"),
        Err(error) => error.to_string(),
    }
}

/// What the disk would hold if the process died now: nothing is closed or flushed for it.
fn killed(place: &Path) -> TempDir {
    let image = tempfile::tempdir().unwrap();
    for name in ["belfry.db", "belfry.db-wal"] {
        fs::copy(place.join(name), image.path().join(name)).unwrap();
    }
    image
}

async fn close(place: &Path, clock: &Arc<ManualClock>, with: impl AsyncFnOnce(&Harness)) {
    let store = SqliteStore::open(&place.join("belfry.db"), clock.clone()).unwrap();
    with(&Harness::over(store.clone(), clock)).await;
    store.close().await;
}

#[tokio::test]
async fn case_40_what_was_acknowledged_is_there_after_a_kill() {
    let (place, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let first = open(place.path(), &clock).unwrap();
    first.create(intent_of(&first, "sent", "acme", 2)).await;
    let claims = first.claims(ask(1, 10)).await.claims;
    let done = ended(&first, &claims[0].delivery, State::Accepted);
    assert_eq!(first.settle(&claims[0], &done).await, Written::Done);
    assert_eq!(first.spend(&claims[1], 1).await, Written::Done);
    first.create(intent(&first, "waiting")).await;
    let depths = first.store.depths().await.unwrap();

    let image = killed(place.path());
    let second = open(image.path(), &clock).unwrap();
    for key in ["sent", "waiting"] {
        assert_eq!(second.record(key).await, first.record(key).await);
        assert_eq!(second.store.inputs(id_of(key)).await.unwrap(), first.store.inputs(id_of(key)).await.unwrap());
    }
    assert_eq!(second.store.depths().await.unwrap(), depths);
    assert!(matches!(second.accept(intent(&second, "waiting")).await, Accepted::Repeat(_)));
}

#[tokio::test]
async fn case_25_claims_of_a_process_that_is_gone_lapse_at_once_and_keep_their_tokens() {
    let (place, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let first = open(place.path(), &clock).unwrap();
    first.create(intent(&first, "k")).await;
    let claim = first.claim(1).await;

    let image = killed(place.path());
    clock.step(10);
    let second = open(image.path(), &clock).unwrap();
    let seen = second.store.held(10).await.unwrap().remove(0);
    assert_eq!((seen.token, seen.lapsed, seen.lease_until), (claim.token, true, clock.now()));
    let back = queued(&second, &claim.delivery);
    assert_eq!(second.reclaim(Reclaim { next: back, seen }).await, Written::Done);
    assert_eq!(second.claim(2).await.token.fence, claim.token.fence + 1);
    // The first process, should it live after all, settles nothing here.
    assert_eq!(second.settle(&claim, &ended(&second, &claim.delivery, State::Accepted)).await, Written::Stale);
}

#[tokio::test]
async fn a_lapse_of_before_the_opening_stays_when_it_was() {
    let (place, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let first = open(place.path(), &clock).unwrap();
    first.create(intent(&first, "k")).await;
    first.claim(1).await;
    let lapsed_at = UnixMs(clock.now().0 + LEASE_MS);
    let image = killed(place.path());
    clock.step(5 * LEASE_MS);
    let second = open(image.path(), &clock).unwrap();
    assert_eq!(second.store.held(10).await.unwrap()[0].lease_until, lapsed_at);
}

#[tokio::test]
async fn a_second_opening_is_refused_until_the_first_is_closed() {
    let (place, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let store = SqliteStore::open(&place.path().join("belfry.db"), clock.clone()).unwrap();
    let error = refused(place.path());
    assert!(error.contains("another Belfry has") && error.contains("belfry.db"), "{error}");
    let first = Harness::over(store.clone(), &clock);
    first.create(intent(&first, "k")).await;
    store.close().await;
    let second = open(place.path(), &clock).unwrap();
    assert!(second.record("k").await.is_some());
}

#[tokio::test]
async fn a_closed_store_is_unavailable_and_its_file_is_whole() {
    let (place, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let store = SqliteStore::open(&place.path().join("belfry.db"), clock.clone()).unwrap();
    let h = Harness::over(store.clone(), &clock);
    h.create(intent(&h, "k")).await;
    store.close().await;
    assert!(matches!(store.probe().await, Err(StoreError::Unavailable(_))));
    assert!(matches!(store.read(&acme(), id_of("k")).await, Err(StoreError::Unavailable(_))));
    store.close().await;
    let wal = place.path().join("belfry.db-wal");
    assert!(fs::metadata(wal).map_or(0, |log| log.len()) == 0);
}

#[tokio::test]
async fn a_file_that_was_taken_away_takes_no_writes_until_it_is_back() {
    let (place, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let h = open(place.path(), &clock).unwrap();
    h.create(intent(&h, "k")).await;
    let (path, away) = (place.path().join("belfry.db"), place.path().join("away"));
    fs::rename(&path, &away).unwrap();
    for put in [false, true] {
        if put {
            fs::write(&path, fs::read(&away).unwrap()).unwrap();
        }
        assert!(matches!(h.store.accept(vec![intent(&h, "l")]).await, Err(StoreError::Unavailable(_))), "{put}");
        assert!(matches!(h.store.probe().await, Err(StoreError::Unavailable(_))), "{put}");
    }
    fs::rename(&away, &path).unwrap();
    h.store.probe().await.unwrap();
    h.create(intent(&h, "l")).await;
    assert!(matches!(h.accept(intent(&h, "k")).await, Accepted::Repeat(_)));
}

#[tokio::test]
async fn an_empty_file_is_not_taken_for_a_store_that_remembers_nothing() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("belfry.db"), "").unwrap();
    let error = refused(place.path());
    assert!(error.contains("belfry.db is empty"), "{error}");
    fs::remove_file(place.path().join("belfry.db")).unwrap();
    // What an opening that was killed left aside is no obstacle.
    for ending in ["", "-wal", "-journal"] {
        fs::write(place.path().join(format!("belfry.db.new{ending}")), "half").unwrap();
    }
    let h = open(place.path(), &ManualClock::new()).unwrap();
    h.create(intent(&h, "k")).await;
    let left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains(".new")), "{left:?}");
}

#[tokio::test]
async fn nobody_else_may_read_it() {
    let (place, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let folder = place.path().join("a").join(".belfry");
    let h = open(&folder, &clock).unwrap();
    h.create(intent(&h, "k")).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for name in ["belfry.db", "belfry.db-wal", "belfry.db-shm", "belfry.db.lock"] {
        assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_newer_layout_and_a_foreign_file_are_refused() {
    let place = tempfile::tempdir().unwrap();
    close(place.path(), &ManualClock::new(), async |h| h.create(intent(h, "k")).await).await;
    // The layout's number stands at byte 60 of the file, big endian (sqlite.org/fileformat.html).
    let path = place.path().join("belfry.db");
    let mut bytes = fs::read(&path).unwrap();
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    fs::write(&path, &bytes).unwrap();
    let error = refused(place.path());
    assert!(error.contains("layout 99") && error.contains("layout 9"), "{error}");
    // The application's number at byte 68.
    bytes[68..72].copy_from_slice(&1_u32.to_be_bytes());
    fs::write(&path, &bytes).unwrap();
    assert!(refused(place.path()).contains("another program"));
    fs::write(&path, "not a database at all, but long enough to look like one to somebody in a hurry").unwrap();
    assert!(refused(place.path()).contains("cannot open"));
}

#[tokio::test]
async fn templates_that_nothing_needs_go_after_a_restart() {
    let (place, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let keep_record = Duration::from_millis(WINDOW_MS as u64);
    close(place.path(), &clock, async |h| {
        for (version, seed) in [("used", 1), ("unused", 2), ("current", 3)] {
            let attached = [0, seed].map(|seed| Attached::of_template(vec![seed; 5_000])).to_vec();
            h.store.keep_template(version, &KeptTemplate { attached, ..files("files") }).await.unwrap();
        }
        h.create(with_template(intent(h, "k"), "used")).await;
        // While the process that keeps them runs, none goes: it may need any of them at any time.
        h.clock.step(2 * WINDOW_MS);
        h.store.purge(PurgeAsk { now: h.now(), keep_record, limit: 10 }).await.unwrap();
        assert!(h.store.template("unused").await.unwrap().is_some());
    })
    .await;
    close(place.path(), &clock, async |h| {
        h.store.keep_template("current", &files("files")).await.unwrap();
        h.store.purge(PurgeAsk { now: h.now(), keep_record, limit: 10 }).await.unwrap();
        for (version, kept) in [("used", true), ("unused", false), ("current", true)] {
            assert_eq!(h.store.template(version).await.unwrap().is_some(), kept, "{version}");
        }
        let conn = rusqlite::Connection::open(place.path().join("belfry.db")).unwrap();
        let left: i64 = conn.query_row("SELECT count(*) FROM attachments", [], |row| row.get(0)).unwrap();
        assert_eq!(left, 3, "what all share, and each one's own");
    })
    .await;
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_its_write_and_the_store_behind() {
    let (place, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let h = open(place.path(), &clock).unwrap();
    let mut accept = Box::pin(h.store.accept(vec![intent(&h, "k")]));
    // Polled once, so that it is queued; then dropped before its answer.
    assert!(futures::poll!(&mut accept).is_pending());
    drop(accept);
    // The queue is in order: once this is answered the first has been done.
    h.create(intent(&h, "l")).await;
    assert!(h.record("k").await.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_of_a_thousand_intents_is_won_by_one_of_eight_threads() {
    const INTENTS: usize = 1_000;
    let (place, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let h = Arc::new(open(place.path(), &clock).unwrap());
    let mut threads = tokio::task::JoinSet::new();
    for thread in 0..8_u64 {
        let h = h.clone();
        threads.spawn(async move {
            for part in 0..INTENTS / 50 {
                let batch: Vec<_> = (0..50).map(|n| intent(&h, &format!("k{}", part * 50 + n))).collect();
                h.store.accept(batch).await.unwrap();
                let claims = h.claims(ask(thread << 32 | part as u64, 20)).await.claims;
                h.store.read(&acme(), id_of("k0")).await.unwrap();
                let settles = claims
                    .iter()
                    .map(|claim| Settle { next: ended(&h, &claim.delivery, State::Accepted), token: claim.token });
                let written = h.store.settle(settles.collect()).await.unwrap();
                assert!(written.iter().all(|one| *one == Written::Done));
            }
        });
    }
    while let Some(ended) = threads.join_next().await {
        ended.unwrap();
    }
    for n in 0..INTENTS {
        let record = h.record(&format!("k{n}")).await.unwrap();
        // One accept was the first, the other seven were recognised.
        assert_eq!(record.repeats, 7);
        // Claimed once and settled once, or not yet claimed.
        assert!(matches!((record.deliveries[0].rev, record.deliveries[0].state), (2, State::Accepted) | (0, _)));
    }
    let depths = h.store.depths().await.unwrap();
    let left = depths.lanes[0].waiting as usize;
    assert_eq!((left + count_ended(&h, INTENTS).await, depths.lanes[0].sending), (INTENTS, 0));
}

async fn count_ended(h: &Harness, intents: usize) -> usize {
    let mut count = 0;
    for n in 0..intents {
        count += usize::from(h.record(&format!("k{n}")).await.unwrap().deliveries[0].ended());
    }
    count
}
