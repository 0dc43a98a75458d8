//! Which device has a token. The device and this stand in different shards, and are written one after the other:
//! the device first, then this, then whoever had the token before is taken away, then that is noted here. Each
//! registration has a stamp of its own, and takes away only what stands under the stamp that it found: one that
//! was registered again meanwhile is left alone, since its own registration comes here later.

use redis::Value;

use super::answers;
use super::codec::{Result, all_digits, corrupt};
use super::link::{Call, Need};
use super::store::{RedisStore, decimal};
use crate::ports::deliveries::Owner;
use crate::ports::recipients::Device;
use crate::store::registry::digest;

/// Where a device stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Of its recipient.
    pub recipient: [u8; 16],
    pub device: String,
}

impl Place {
    pub fn of(owner: &Owner, recipient: &str, device: &str) -> Self {
        Self { recipient: recipient_digest(owner, recipient), device: device.to_owned() }
    }

    /// Its field in its recipient's hash.
    pub fn field(&self) -> Vec<u8> {
        format!("d:{}", self.device).into_bytes()
    }

    fn text(&self) -> Vec<u8> {
        format!("{}:{}", belfry_domain::hex(&self.recipient), self.device).into_bytes()
    }

    fn read(text: &str) -> Option<Self> {
        let (recipient, device) = text.split_once(':')?;
        let recipient = all_digits(recipient)?.try_into().ok()?;
        Some(Self { recipient, device: device.to_owned() })
    }
}

pub fn recipient_digest(owner: &Owner, recipient: &str) -> [u8; 16] {
    digest(&[&owner.tenant, &owner.environment, recipient])
}

/// A registration: which device, and its stamp.
#[derive(Clone, Debug)]
pub struct Registration {
    pub place: Place,
    pub stamp: String,
}

impl RedisStore {
    /// Where it stands who has the device's current token.
    pub(super) fn token_key(&self, owner: &Owner, device: &Device) -> Vec<u8> {
        let app = device.app.as_deref();
        self.names.token(&digest(&[
            &owner.tenant,
            &owner.environment,
            device.kind.name(),
            if app.is_some() { "app" } else { "" },
            app.unwrap_or_default(),
            &device.token.hash,
        ]))
    }

    /// The token is this registration's from now on. Those that had it; `None` where an answer was lost and another
    /// may have taken it since.
    pub(super) async fn take_token(&self, key: &[u8], by: &Registration) -> Result<Option<Vec<Registration>>> {
        let mut found = match self.token("take", key, by).await? {
            None | Some(Value::Nil | Value::Boolean(false)) => return Ok(None),
            Some(found) => answers::list(found)?.into_iter(),
        };
        let mut others = Vec::new();
        while let (Some(place), Some(stamp)) = (found.next(), found.next()) {
            let place = Place::read(&answers::text(place)?).ok_or_else(|| corrupt("a device's place"))?;
            others.push(Registration { place, stamp: answers::text(stamp)? });
        }
        Ok(Some(others))
    }

    /// The token is not this registration's any more, if it was.
    pub(super) async fn leave_token(&self, key: &[u8], by: &Registration) -> Result<()> {
        self.token("leave", key, by).await.map(drop)
    }

    async fn token(&self, verb: &str, key: &[u8], by: &Registration) -> Result<Option<Value>> {
        self.same_installation()?;
        let args = vec![verb.as_bytes().to_vec(), decimal(0_u32), by.place.text(), by.stamp.clone().into_bytes()];
        let keys = vec![key.to_vec()];
        let call = Call { script: &self.scripts.token, keys, args, need: Need::Done, generation: None };
        // An answer ends before what is nil in it.
        Ok(answers::list(self.link.run(call).await?)?.into_iter().next())
    }
}
