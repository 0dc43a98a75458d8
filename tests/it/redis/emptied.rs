//! A server that is emptied, or taken for another installation, under a running node.

use std::sync::Arc;
use std::time::Duration;

use belfry::machine::MachineClock;
use belfry::ports::StoreError;
use belfry::ports::admin::{ApiKeys, Installation};
use belfry::ports::deliveries::Deliveries;
use belfry::ports::store_news::Unwatched;
use belfry::store::redis::keys::Names;
use belfry::store::redis::link::Link;
use belfry::store::redis::{Clocks, RedisStore, StoreClock};

use super::Server;
use super::calls::until_ok;
use crate::contract::api_keys::key;
use crate::peers::until::until;

const SECRET: [u8; 32] = [7; 32];
const INSTALL: &str = "belfry:{i}:install";
const LOOKED: Duration = Duration::from_secs(10);

/// A node that has done nothing yet.
fn starting(server: &Server) -> Arc<RedisStore> {
    let clocks = Clocks { node: Arc::new(MachineClock), store: StoreClock::Server };
    let link = Link::to(&server.url()).unwrap();
    RedisStore::new(link, Names::new("belfry".into(), 4), clocks, Arc::new(Unwatched), super::mark())
}

/// A node that has begun an installation and keeps an eye on it.
async fn node(server: &Server) -> Arc<RedisStore> {
    let store = starting(server);
    store.prepare().await.unwrap();
    assert_eq!(store.secret(SECRET).await.unwrap(), SECRET);
    store.look_after_installation();
    store
}

fn unavailable<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> String {
    match answer {
        Err(StoreError::Unavailable(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// Else whoever starts next draws another secret, by which every repeat is another request; and callers whose
/// keys are gone would hear 401 and give up, where 503 makes them come again.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_installation_is_made_of_is_put_back_and_that_its_keys_are_gone_is_told() {
    let server = Server::plain();
    let store = node(&server).await;
    store.create(key(1)).await.unwrap();
    assert_eq!(store.by_hash(&key(2).hash).await.unwrap(), None);
    let () = server.ask(&["FLUSHALL"]);
    let why = unavailable(store.by_hash(&key(1).hash).await);
    assert!(why.contains("the API keys were lost"), "{why}");
    until("it is put back", LOOKED, || {
        server
            .try_ask::<Vec<Option<Vec<u8>>>>(&["HMGET", INSTALL, "layout", "shards", "secret"])
            .is_ok_and(|fields| fields[1..] == [Some(b"4".to_vec()), Some(SECRET.to_vec())] && fields[0].is_some())
            .then_some(())
    });
    assert_eq!(node(&server).await.secret([9; 32]).await.unwrap(), SECRET);
    unavailable(store.by_hash(&key(1).hash).await);
    // Whoever makes new ones knows, and what is not there is not there again.
    store.create(key(2)).await.unwrap();
    assert_eq!(store.by_hash(&key(1).hash).await.unwrap(), None);
    assert_eq!(store.by_hash(&key(2).hash).await.unwrap(), Some(key(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn on_another_installation_a_node_does_nothing_until_its_own_is_back() {
    let server = Server::plain();
    let store = node(&server).await;
    store.probe().await.unwrap();
    let says = async |text: &str| match store.probe().await.err().map(|why| why.to_string()).unwrap_or_default() {
        said if said.contains(text) && said.is_empty() == text.is_empty() => Ok(()),
        said => Err(StoreError::Unavailable(said)),
    };
    for (field, others) in [("secret", "another"), ("shards", "16"), ("layout", "99")] {
        let own: Vec<u8> = server.ask(&["HGET", INSTALL, field]);
        let () = server.ask(&["HSET", INSTALL, field, others]);
        until_ok(LOOKED, async || says("another installation").await).await;
        unavailable(store.by_hash(&key(1).hash).await);
        let () = server.ask_bytes(&[b"HSET", INSTALL.as_bytes(), field.as_bytes(), &own]);
        until_ok(LOOKED, async || says("").await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_of_shards_that_cannot_be_is_refused() {
    let server = Server::plain();
    starting(&server).prepare().await.unwrap();
    for shards in ["0", "257", "-1", "many"] {
        let () = server.ask(&["HSET", INSTALL, "shards", shards]);
        // One that is there already may have seen it by itself, and says so in other words.
        let refused = starting(&server).prepare().await.unwrap_err().to_string();
        assert!(refused.contains("a number") || refused.contains("the number of shards"), "{shards}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_keys_than_one_answer_holds_are_all_listed() {
    let server = Server::plain();
    let store = node(&server).await;
    for n in 0..1_003 {
        store.create(key(n)).await.unwrap();
    }
    let listed: Vec<String> = store.list().await.unwrap().into_iter().map(|one| one.id).collect();
    assert_eq!(listed, (0..1_003).map(|n| key(n).id).collect::<Vec<_>>());
}
