//! What the outbox provider would have sent.

use async_trait::async_trait;
use redis::Value;

use super::answers;
use super::codec::{Result, corrupt};
use super::link::{Call, Need};
use super::store::{RedisStore, decimal};
use crate::ports::StoreError;
use crate::ports::deliveries::Owner;
use crate::ports::outbox::{OutboxMessage, OutboxMessages, folded};

/// Most messages cleared by one script.
const CLEARED: u64 = 128;

fn owned_by(tenant: &str, environment: &str) -> Vec<u8> {
    format!("{}:{tenant}:{environment}", tenant.len()).into_bytes()
}

impl RedisStore {
    async fn outbox(&self, verb: &str, args: Vec<Vec<u8>>) -> Result<Value> {
        let mut all = vec![verb.as_bytes().to_vec(), decimal(0_u32)];
        all.extend(args);
        let keys = vec![self.names.installation("out")];
        let call = Call { script: &self.scripts.outbox, keys, args: all, need: Need::Done, generation: None };
        let [answer] = answers::parts(self.link.run(call).await?)?;
        Ok(answer)
    }
}

#[async_trait]
impl OutboxMessages for RedisStore {
    async fn add(&self, message: OutboxMessage, keep: u32) -> Result<u64> {
        let body =
            serde_json::to_vec(&message).map_err(|_| StoreError::Corrupt("a message cannot be written".into()))?;
        let owner = owned_by(&message.tenant, &message.environment);
        let number = self.outbox("add", vec![owner, folded(&message.to).into_bytes(), decimal(keep), body]).await?;
        u64::try_from(answers::number(&number)?).map_err(|_| corrupt("a number"))
    }

    async fn list(
        &self,
        owner: &Owner,
        to: Option<&str>,
        after: Option<u64>,
        limit: u16,
    ) -> Result<Vec<OutboxMessage>> {
        let args = vec![
            owned_by(&owner.tenant, &owner.environment),
            to.map(folded).unwrap_or_default().into_bytes(),
            decimal(after.unwrap_or(0)),
            decimal(limit),
        ];
        let mut found = answers::list(self.outbox("list", args).await?)?.into_iter();
        let mut messages = Vec::new();
        while let (Some(seq), Some(body)) = (found.next(), found.next()) {
            let message: OutboxMessage =
                serde_json::from_slice(&answers::bytes(body)?).map_err(|_| corrupt("a message"))?;
            let seq = u64::try_from(answers::number(&seq)?).map_err(|_| corrupt("a number"))?;
            messages.push(OutboxMessage { seq, ..message });
        }
        Ok(messages)
    }

    async fn clear(&self, owner: &Owner, to: Option<&str>) -> Result<u64> {
        let mut gone = 0;
        loop {
            let args = vec![
                owned_by(&owner.tenant, &owner.environment),
                to.map(folded).unwrap_or_default().into_bytes(),
                decimal(CLEARED),
            ];
            let cleared = u64::try_from(answers::number(&self.outbox("clear", args).await?)?).unwrap_or(0);
            gone += cleared;
            if cleared < CLEARED {
                return Ok(gone);
            }
        }
    }
}
