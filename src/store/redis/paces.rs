//! Shares of the providers' paces: one hash per pace, all in the installation's slot.

use async_trait::async_trait;

use super::answers;
use super::codec::{Result, corrupt};
use super::link::{Call, Need};
use super::store::{RedisStore, decimal, signed};
use crate::ports::paces::{MOST_PACES, Paces, SHARE_LEASE, ShareAsk};

#[async_trait]
impl Paces for RedisStore {
    async fn shares(&self, node: &str, number: u64, asks: Vec<ShareAsk>) -> Result<Vec<u32>> {
        let mut shares = Vec::with_capacity(asks.len());
        for asks in asks.chunks(MOST_PACES) {
            shares.extend(self.some_shares(node, number, asks).await?);
        }
        Ok(shares)
    }
}

impl RedisStore {
    async fn some_shares(&self, node: &str, number: u64, asks: &[ShareAsk]) -> Result<Vec<u32>> {
        let keys = asks.iter().map(|ask| self.names.installation(&format!("pace:{}", ask.pace))).collect();
        let lease = i64::try_from(SHARE_LEASE.as_millis()).unwrap_or(i64::MAX);
        let mut args = vec![self.time_arg(), node.as_bytes().to_vec(), decimal(number), signed(lease)];
        args.extend(asks.iter().flat_map(|ask| [decimal(ask.parts), decimal(ask.using)]));
        let script = &self.scripts.share;
        let call = Call { script, keys, args, need: Need::Done, generation: None };
        let answer = answers::list(self.link.run(call).await?)?;
        let shares = answer
            .iter()
            .map(|share| u32::try_from(answers::number(share)?).map_err(|_| corrupt("a share")))
            .collect::<Result<Vec<u32>>>()?;
        if shares.len() == asks.len() { Ok(shares) } else { Err(corrupt("the shares")) }
    }
}
