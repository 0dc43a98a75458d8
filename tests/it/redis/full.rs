//! A server whose memory is full: nothing new comes in, and what is under way is ended.

use std::sync::Arc;
use std::time::Duration;

use belfry::ports::caps::{Room, TakeAsk, Taken};
use belfry::ports::deliveries::{PurgeAsk, Settle, Written};
use belfry::ports::store_news::Unwatched;
use belfry::store::redis::keys::Names;
use belfry::store::redis::link::Link;
use belfry::store::redis::{Clocks, RedisStore, StoreClock};
use belfry_domain::{KeyKind, State, child_key};

use super::Server;
use crate::contract::fixture::{ask, ended, intent};
use crate::contract::harness::{Harness, ManualClock};

#[tokio::test]
async fn what_is_under_way_is_ended_and_aged_where_memory_is_full() {
    let server = Server::plain();
    let clock = ManualClock::new();
    let clocks = Clocks { node: clock.clone(), store: StoreClock::Own(clock.clone()) };
    let names = Names::new("belfry".into(), 2);
    let link = Link::to(&server.url()).unwrap();
    let store = RedisStore::new(link, names, clocks, Arc::new(Unwatched), crate::redis::mark());
    let h = Harness::over(store, &clock);
    for n in 0..8 {
        let mut intent = intent(&h, &format!("k{n}"));
        intent.notification.keep_content_ms = 0;
        h.create(intent).await;
    }
    let mut claims = h.claims(ask(1, 6)).await.claims;
    assert_eq!(claims.len(), 6);

    let () = server.ask(&["CONFIG", "SET", "maxmemory", "1mb"]);
    // What is due goes out: that is what makes room in the end.
    claims.extend(h.claims(ask(2, 8)).await.claims);
    assert_eq!(claims.len(), 8);
    let refused = h.store.accept(vec![intent(&h, "new")]).await.unwrap_err().to_string();
    assert!(refused.contains("out of memory"), "{refused}");
    let room = Room { ledger: child_key(KeyKind::Cap, &[b"cap"]), limit: 1, window: Duration::from_secs(60) };
    let reservation = child_key(KeyKind::Take, &[b"call"]);
    let take = TakeAsk { rooms: vec![room], reservation, longest: Duration::ZERO };
    assert_eq!(h.store.take(vec![take]).await.unwrap(), [Taken::All]);
    for claim in &claims {
        assert!(h.renew(claim).await);
        assert_eq!(h.spend(claim, claim.delivery.rev).await, Written::Done);
    }
    let settles = claims.iter().map(|claim| {
        let mut next = ended(&h, &claim.delivery, State::Accepted);
        next.rev += 1;
        Settle { next, token: claim.token }
    });
    assert_eq!(h.store.settle(settles.collect()).await.unwrap(), vec![Written::Done; 8]);
    let ages = PurgeAsk { now: h.now(), keep_record: Duration::from_secs(60), limit: 100 };
    assert_eq!(h.store.purge(ages).await.unwrap().contents, 8);
}
