//! What it costs to forget: tombstones are looked through as often as some come of age.

use std::sync::Arc;
use std::time::Duration;

use belfry::ports::deliveries::{Accepted, PurgeAsk, Purged};
use belfry::ports::store_news::Unwatched;
use belfry::store::redis::keys::Names;
use belfry::store::redis::link::Link;
use belfry::store::redis::{Clocks, RedisStore, StoreClock};
use belfry_domain::State;

use super::Server;
use crate::contract::fixture::intent;
use crate::contract::harness::{Harness, ManualClock};

/// Tombstones in a bucket before it is split, and how often each is looked into in a window, as
/// `lua/purge.lua` has them.
const FULL: usize = 56;
const ROUNDS: usize = 8;
const AT_ONCE: usize = 128;
const MANY: usize = 32 * AT_ONCE;

fn over(server: &Server) -> Harness {
    let clock = ManualClock::new();
    let clocks = Clocks { node: clock.clone(), store: StoreClock::Own(clock.clone()) };
    let link = Link::to(&server.url()).unwrap();
    let names = Names::new("belfry".into(), 1);
    Harness::over(RedisStore::new(link, names, clocks, Arc::new(Unwatched), crate::redis::mark()), &clock)
}

/// Takes in what has ended already.
async fn end(h: &Harness, from: usize, count: usize) {
    let ended = (from..from + count).map(|n| {
        let mut intent = intent(h, &format!("k{n}"));
        intent.deliveries[0].state = State::Suppressed;
        intent.deliveries[0].ended_at = Some(h.now());
        intent
    });
    for batch in ended.collect::<Vec<_>>().chunks(AT_ONCE) {
        h.store.accept(batch.to_vec()).await.unwrap();
    }
}

async fn purge(h: &Harness, limit: usize) -> Purged {
    let limit = limit.try_into().unwrap();
    h.store.purge(PurgeAsk { now: h.now(), keep_record: Duration::ZERO, limit }).await.unwrap()
}

/// Buckets that were looked into since the last time.
fn looked(server: &Server) -> usize {
    let told: String = server.ask(&["INFO", "commandstats"]);
    let () = server.ask(&["CONFIG", "RESETSTAT"]);
    let calls = told.split("cmdstat_hgetall:calls=").nth(1).and_then(|rest| rest.split(',').next());
    calls.map_or(0, |calls| calls.parse().unwrap())
}

#[tokio::test]
async fn forgetting_costs_no_look_at_all_that_is_remembered() {
    let server = Server::plain();
    let h = over(&server);
    end(&h, 0, MANY).await;
    while purge(&h, 4 * AT_ONCE).await.records > 0 {}
    // As many are buried as one call may.
    end(&h, MANY, AT_ONCE).await;
    h.clock.step(1);
    looked(&server);
    let purged = purge(&h, AT_ONCE).await;
    assert_eq!(purged.records as usize, AT_ONCE);
    let splits = AT_ONCE.div_ceil(FULL);
    let seen = looked(&server);
    assert!(seen <= (AT_ONCE * ROUNDS).div_ceil(FULL) + splits + 1, "{seen}");
    // With nothing else to do there is time for more, and not again at once.
    h.clock.step(2_000);
    purge(&h, AT_ONCE).await;
    assert!(looked(&server) > MANY / FULL / 2);
    purge(&h, AT_ONCE).await;
    assert_eq!(looked(&server), 1);

    // Once the window has passed all are forgotten.
    h.clock.step(16 * 86_400_000);
    let mut forgotten = 0;
    for _ in 0..MANY {
        forgotten += purge(&h, AT_ONCE).await.tombstones as usize;
        h.clock.step(1_000);
        if forgotten == MANY + AT_ONCE {
            break;
        }
    }
    assert_eq!(forgotten, MANY + AT_ONCE);
    assert!(matches!(h.store.accept(vec![intent(&h, "k0")]).await.unwrap()[..], [Accepted::Created]));
}
