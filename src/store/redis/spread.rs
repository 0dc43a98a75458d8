//! One question about many keys of many shards: each shard is asked once, and who is away takes nobody's answer along.

use std::future::Future;

use belfry_domain::Key;

use super::codec::Result;
use super::store::RedisStore;
use crate::ports::deliveries::MOST_ITEMS;

impl RedisStore {
    /// The answers in the order of `keys`. `ask` is given keys of one shard and answers as many.
    pub(super) async fn of_each<T, Asked>(&self, keys: &[Key], ask: impl Fn(Vec<Key>) -> Asked) -> Vec<Result<T>>
    where
        Asked: Future<Output = Vec<Result<T>>>,
    {
        let shard = |at: &usize| self.names.shard_of(&keys[*at]);
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by_key(shard);
        let parts = order.chunk_by(|one, other| shard(one) == shard(other)).flat_map(|part| part.chunks(MOST_ITEMS));
        let asks = parts.map(|part| ask(part.iter().map(|at| keys[*at]).collect()));
        let answers = futures::future::join_all(asks).await.into_iter().flatten();
        let mut found: Vec<(usize, Result<T>)> = order.iter().copied().zip(answers).collect();
        found.sort_by_key(|(at, _)| *at);
        found.into_iter().map(|(_, found)| found).collect()
    }
}
