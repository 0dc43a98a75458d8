//! Calls as the store makes them, for tests of the link.

use std::time::Duration;

use belfry::ports::StoreError;
use belfry::store::redis::link::{Call, Durability, Link, LinkSettings, Need};
use belfry::store::redis::script::Script;
use redis::Value;

/// The same answer to the same token, as every verb of the store gives: once counted, it stays.
const ADD: &str = "\
if redis.call('SADD', KEYS[1], ARGV[1]) == 1 then redis.call('INCR', KEYS[2]) end
return redis.call('GET', KEYS[2])";
/// Counts every run.
const COUNT: &str = "return redis.call('INCR', KEYS[1])";
const READ: &str = "return redis.call('SISMEMBER', KEYS[1], ARGV[1])";

pub struct Calls {
    pub link: Link,
    tag: String,
    add: Script,
    count: Script,
    read: Script,
}

impl Calls {
    pub fn new(link: Link, tag: &str) -> Self {
        let add = Script::new("add", &[ADD]);
        Self {
            link,
            tag: tag.to_owned(),
            add,
            count: Script::new("count", &[COUNT]),
            read: Script::new("read", &[READ]),
        }
    }

    pub fn to(url: &str, tag: &str) -> Self {
        Self::new(Link::to(url).unwrap(), tag)
    }

    pub fn durable(url: &str, tag: &str, durability: Durability) -> Self {
        Self::new(Link::with(settings(url, durability)).unwrap(), tag)
    }

    pub fn key(&self, name: &str) -> Vec<u8> {
        format!("test:{{{}}}:{name}", self.tag).into_bytes()
    }

    /// Adds `token`, which may be repeated.
    pub async fn add(&self, token: &str, need: Need) -> Result<Value, StoreError> {
        let keys = vec![self.key("set"), self.key("number")];
        self.link.run(Call { script: &self.add, keys, args: vec![token.into()], need, generation: None }).await
    }

    /// Counts up, once per run.
    pub async fn count(&self, need: Need) -> Result<Value, StoreError> {
        let call = Call { script: &self.count, keys: vec![self.key("runs")], args: Vec::new(), need, generation: None };
        self.link.run(call).await
    }

    /// Whether `token` was added; writes nothing.
    pub async fn has(&self, token: &str, need: Need) -> Result<Value, StoreError> {
        let call =
            Call { script: &self.read, keys: vec![self.key("set")], args: vec![token.into()], need, generation: None };
        self.link.run(call).await
    }
}

pub fn settings(url: &str, durability: Durability) -> LinkSettings {
    LinkSettings { durability, ..LinkSettings::for_url(url).unwrap() }
}

/// Calls until one succeeds.
pub async fn until_ok<T>(within: Duration, mut call: impl AsyncFnMut() -> Result<T, StoreError>) -> T {
    let end = std::time::Instant::now() + within;
    loop {
        match call().await {
            Ok(value) => return value,
            Err(error) => assert!(std::time::Instant::now() < end, "not within {within:?}: {error}"),
        }
        tokio::task::yield_now().await;
    }
}
