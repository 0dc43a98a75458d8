//! What search needs goes with what it finds, even where a few records live much longer than all others.

use std::sync::Arc;
use std::time::Duration;

use belfry::ports::deliveries::PurgeAsk;
use belfry::ports::search::Query;
use belfry::ports::store_news::Unwatched;
use belfry::store::redis::keys::Names;
use belfry::store::redis::link::Link;
use belfry::store::redis::{Clocks, RedisStore, StoreClock};
use belfry_domain::State;

use super::Server;
use crate::contract::fixture::{acme, ask, due_in, ended, everything, id_of, intent};
use crate::contract::harness::{Harness, ManualClock};

/// Records of one epoch, as `lua/record.lua` has it.
const EPOCH: usize = 4_096;
const ENTRY: usize = 26;
const KEEP: Duration = Duration::from_secs(60);
/// The owner, the reference and the address.
const ENTRIES: usize = 3;

/// Bytes of all texts of an epoch.
fn bytes_of(server: &Server, epoch: usize) -> usize {
    let texts: Vec<String> = server.ask(&["KEYS", &format!("belfry:{{0}}:x{epoch}:*")]);
    texts.iter().map(|text| server.ask::<usize>(&["STRLEN", text])).sum()
}

async fn purge(h: &Harness) {
    // Each call takes a step.
    for _ in 0..20 {
        h.store.purge(PurgeAsk { now: h.now(), keep_record: KEEP, limit: 60_000 }).await.unwrap();
    }
}

#[tokio::test]
async fn an_epoch_is_cleared_of_all_but_what_is_left_of_it_and_goes_with_the_last() {
    let server = Server::plain();
    let clock = ManualClock::new();
    let clocks = Clocks { node: clock.clone(), store: StoreClock::Own(clock.clone()) };
    let link = Link::to(&server.url()).unwrap();
    let names = Names::new("belfry".into(), 1);
    let h = Harness::over(RedisStore::new(link, names, clocks, Arc::new(Unwatched), crate::redis::mark()), &clock);
    let mut lasting = due_in(intent(&h, "lasting"), 3_600_000);
    lasting.notification.reference = Some("crm".into());
    h.create(lasting).await;
    // One more than the epoch has, so that it is complete.
    let others: Vec<_> = (0..EPOCH)
        .map(|n| {
            let mut intent = intent(&h, &format!("k{n}"));
            intent.notification.reference = Some("crm".into());
            intent.deliveries[0].state = State::Suppressed;
            intent.deliveries[0].ended_at = Some(h.now());
            intent
        })
        .collect();
    for batch in others.chunks(128) {
        h.store.accept(batch.to_vec()).await.unwrap();
    }
    assert_eq!(bytes_of(&server, 0), EPOCH * ENTRIES * ENTRY);

    h.clock.step(61_000);
    purge(&h).await;
    assert_eq!(bytes_of(&server, 0), ENTRIES * ENTRY);
    let of_reference = Query { reference: Some("crm".into()), ..everything(acme()) };
    for query in [of_reference, everything(acme())] {
        let found = h.store.search(query).await.unwrap();
        assert_eq!(found.records.iter().map(|record| record.notification.id).collect::<Vec<_>>(), [id_of("lasting")]);
    }

    h.clock.step(3_600_000);
    let claim = h.claims(ask(1, 1)).await.claims.remove(0);
    h.settle(&claim, &ended(&h, &claim.delivery, State::Accepted)).await;
    h.clock.step(61_000);
    purge(&h).await;
    assert_eq!(bytes_of(&server, 0), 0);
    let epochs: Vec<String> = server.ask(&["ZRANGE", "belfry:{0}:epochs", "0", "-1"]);
    assert_eq!(epochs, ["1"]);
}
