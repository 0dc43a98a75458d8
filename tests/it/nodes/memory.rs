//! Steady load with short ages: what the store needs comes to rest.

use std::sync::Arc;
use std::time::Duration;

use belfry::ports::deliveries::{Accepted, MOST_ITEMS, PurgeAsk, Settle, Written};
use belfry::ports::store_news::Unwatched;
use belfry::store::redis::keys::Names;
use belfry::store::redis::link::Link;
use belfry::store::redis::{Clocks, RedisStore, StoreClock};
use belfry_domain::{State, UnixMs};

use crate::contract::fixture::{ask, ended, intent};
use crate::contract::harness::{Harness, ManualClock};
use crate::redis::Server;
use crate::redis::server::Options;

const HOUR_MS: i64 = 3_600_000;
/// Hours that a record is kept, and its window.
const RECORD: i64 = 1;
const WINDOW: i64 = 3;
/// Indexes go by epochs of 4,096 records: four hours of it.
const PER_HOUR: usize = 1_024;
const HOURS_OF_EPOCH: usize = 4;
const HOURS: usize = 24;

async fn hour(h: &Harness, hour: usize) {
    for from in (0..PER_HOUR).step_by(MOST_ITEMS) {
        let one = |number: usize| {
            let mut one = intent(h, &format!("{hour}-{number}"));
            one.notification.keep_content_ms = 0;
            one.notification.remembered_until = UnixMs(h.now().0 + WINDOW * HOUR_MS);
            one
        };
        let answers = h.store.accept((from..from + MOST_ITEMS).map(one).collect()).await.unwrap();
        assert!(answers.iter().all(|answer| matches!(answer, Accepted::Created)));
        let claims = h.claims(ask((hour * PER_HOUR + from) as u64, MOST_ITEMS as u16)).await.claims;
        assert_eq!(claims.len(), MOST_ITEMS);
        let settles = claims
            .iter()
            .map(|claim| Settle { next: ended(h, &claim.delivery, State::Accepted), token: claim.token })
            .collect();
        let written = h.store.settle(settles).await.unwrap();
        assert!(written.iter().all(|one| *one == Written::Done));
    }
    h.clock.step(HOUR_MS);
    let keep_record = Duration::from_millis((RECORD * HOUR_MS) as u64);
    loop {
        let purged = h.store.purge(PurgeAsk { now: h.now(), keep_record, limit: 512 }).await.unwrap();
        if purged.contents + purged.records + purged.tombstones == 0 {
            return;
        }
    }
}

/// What a store has at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    keys: usize,
    /// Of all keys and values.
    kept: usize,
    /// The server's own word, in which there are tables that grow and connections too.
    used: usize,
}

fn size(server: &Server) -> Size {
    let mut connection = server.connection();
    let keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    let of_key = |key: &Vec<u8>| -> usize {
        redis::cmd("MEMORY").arg("USAGE").arg(key).arg(&["SAMPLES", "0"]).query(&mut connection).unwrap()
    };
    let kept = keys.iter().map(of_key).sum();
    let info: String = server.ask(&["INFO", "memory"]);
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory_dataset:")).unwrap();
    Size { keys: keys.len(), kept, used: used.trim().parse().unwrap() }
}

/// Once the first three epochs have passed, an hour has as many keys as the same hour of any other epoch, their
/// size is at most a hundredth over that of the first full one (packed lists differ by the numbers in
/// them), and what the server uses a tenth.
#[tokio::test]
async fn case_77_under_steady_load_what_is_kept_comes_to_rest() {
    // The log of slow calls grows on a busy machine, and is none of ours.
    let server = Server::start(Options::default().with("slowlog-max-len 0"));
    let clock = ManualClock::new();
    let clocks = Clocks { node: clock.clone(), store: StoreClock::Own(clock.clone()) };
    let names = Names::new("belfry".into(), 1);
    let store =
        RedisStore::new(Link::to(&server.url()).unwrap(), names, clocks, Arc::new(Unwatched), crate::redis::mark());
    let h = Harness::over(store, &clock);
    let mut measured = Vec::new();
    for number in 0..HOURS {
        hour(&h, number).await;
        measured.push(size(&server));
    }
    println!("by the hour: {measured:?}");
    // Buckets of tombstones are as many as were ever needed: how many wait to be forgotten when new ones come differs
    // by where the round has got to, and has been all that it can be by then.
    let epochs: Vec<&[Size]> = measured.chunks(HOURS_OF_EPOCH).skip(3).collect();
    let most = |epoch: &[Size], which: fn(&Size) -> usize| epoch.iter().map(which).max().unwrap();
    let (kept, used) = (most(epochs[0], |one| one.kept), most(epochs[0], |one| one.used));
    for epoch in &epochs {
        for (hour, same) in epoch.iter().zip(epochs[0]) {
            assert_eq!(hour.keys, same.keys, "{measured:?}");
        }
        assert!(most(epoch, |one| one.kept) <= kept + kept / 100, "{measured:?}");
        assert!(most(epoch, |one| one.used) <= used + used / 10, "{measured:?}");
    }
}
