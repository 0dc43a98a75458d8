//! Stored recipients: one hash each, in a shard of its own, outside of what the deliveries of that shard count and
//! mend. What is read is changed here and written over what was read, so that scripts compare texts and take none
//! apart.

use async_trait::async_trait;
use belfry_domain::UnixMs;
use redis::Value;

use super::answers;
use super::codec::{Result, corrupt};
use super::link::{Call, Need};
use super::store::{RedisStore, decimal};
use super::tokens::{Place, Registration, recipient_digest};
use crate::ports::StoreError;
use crate::ports::deliveries::Owner;
use crate::ports::recipients::{
    DeadPage, DeadToken, Device, DeviceRef, MOST_DEVICES, NewDevice, Profile, Recipient, Recipients, Registered,
};
use crate::store::registry::{self, Buried};

/// How often a device is read anew because another has written it meanwhile.
const MOST_TRIES: usize = 16;

const PROFILE: &[u8] = b"p";
const DEVICE: &str = "d:";

/// A device as it stands in its field.
struct Kept {
    /// Of its latest registration.
    stamp: String,
    device: Device,
    text: Vec<u8>,
}

impl Kept {
    fn read(text: Vec<u8>) -> Result<Self> {
        let parted = std::str::from_utf8(&text).ok().and_then(|text| text.split_once(' '));
        let (stamp, body) = parted.ok_or_else(|| corrupt("a device"))?;
        let device = serde_json::from_str(body).map_err(|_| corrupt("a device"))?;
        Ok(Self { stamp: stamp.to_owned(), device, text })
    }

    fn write(stamp: &str, device: &Device) -> Result<Vec<u8>> {
        let mut text = format!("{stamp} ").into_bytes();
        serde_json::to_writer(&mut text, device)
            .map_err(|_| StoreError::Corrupt("a device cannot be written".into()))?;
        Ok(text)
    }
}

/// What became of a device's write.
enum Put {
    Done,
    /// Another has written it since it was read.
    Moved,
    NoRoom,
}

fn many_at_once() -> StoreError {
    StoreError::Unavailable("too many are changing this device at once".into())
}

#[async_trait]
impl Recipients for RedisStore {
    async fn put_profile(&self, owner: &Owner, recipient: &str, profile: &Profile) -> Result<()> {
        let text =
            serde_json::to_vec(profile).map_err(|_| StoreError::Corrupt("a profile cannot be written".into()))?;
        let key = self.names.recipient(&recipient_digest(owner, recipient));
        self.recipient_verb(&key, "profile", vec![text]).await?;
        self.lasting(vec![key]).await
    }

    async fn recipient(&self, owner: &Owner, recipient: &str) -> Result<Option<Recipient>> {
        let (profile, kept) = self.all_of(&recipient_digest(owner, recipient)).await?;
        if profile.is_none() && kept.is_empty() {
            return Ok(None);
        }
        let mut devices: Vec<Device> = kept.into_iter().map(|kept| kept.device).collect();
        devices.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(Some(Recipient { profile: profile.unwrap_or_default(), devices }))
    }

    async fn remove_recipient(&self, owner: &Owner, recipient: &str) -> Result<bool> {
        let digest = recipient_digest(owner, recipient);
        let key = self.names.recipient(&digest);
        let mut found = false;
        for _ in 0..MOST_TRIES {
            let (profile, kept) = self.all_of(&digest).await?;
            found |= profile.is_some() || !kept.is_empty();
            let mut args = vec![b"1".to_vec()];
            let mut leaving = Vec::with_capacity(kept.len());
            for Kept { stamp, device, .. } in kept {
                let place = Place { recipient: digest, device: device.id.clone() };
                args.extend([place.field(), stamp.clone().into_bytes()]);
                leaving.push((self.token_key(owner, &device), Registration { place, stamp }));
            }
            // Its tokens first: who dies in between leaves devices that the same call finds again, and no trace of
            // a recipient that is gone.
            futures::future::try_join_all(leaving.iter().map(|(key, by)| self.leave_token(key, by))).await?;
            if self.dropped(&key, args).await? {
                self.lasting(vec![key]).await?;
                return Ok(found);
            }
        }
        Err(many_at_once())
    }

    async fn register(&self, owner: &Owner, recipient: &str, device: &NewDevice, now: UnixMs) -> Result<Registered> {
        let place = Place::of(owner, recipient, &device.id);
        for _ in 0..MOST_TRIES {
            let before = self.kept_at(&place).await?;
            let next = registry::registered(before.as_ref().map(|kept| &kept.device), device, now);
            let token = self.token_key(owner, &next);
            if let Some(before) = &before {
                let left = self.token_key(owner, &before.device);
                if left != token {
                    let by = Registration { place: place.clone(), stamp: before.stamp.clone() };
                    self.leave_token(&left, &by).await?;
                }
            }
            let by = Registration { place: place.clone(), stamp: self.stamp() };
            match self.put_device(&place, before.as_ref(), &Kept::write(&by.stamp, &next)?).await? {
                Put::Done => {}
                Put::Moved => continue,
                Put::NoRoom => return Ok(Registered::TooMany),
            }
            if self.is_the_tokens_own(&token, &by).await? {
                return Ok(Registered::Kept(Box::new(next)));
            }
        }
        Err(many_at_once())
    }

    async fn remove_device(&self, owner: &Owner, of: &DeviceRef) -> Result<bool> {
        let place = Place::of(owner, &of.recipient, &of.device);
        let key = self.names.recipient(&place.recipient);
        for _ in 0..MOST_TRIES {
            let Some(Kept { stamp, device, .. }) = self.kept_at(&place).await? else {
                // It may have gone by a call that was not answered.
                self.lasting(vec![key]).await?;
                return Ok(false);
            };
            let by = Registration { place: place.clone(), stamp };
            self.leave_token(&self.token_key(owner, &device), &by).await?;
            let args = vec![b"0".to_vec(), place.field(), by.stamp.into_bytes()];
            if self.dropped(&key, args).await? {
                self.lasting(vec![key]).await?;
                return Ok(true);
            }
        }
        Err(many_at_once())
    }

    async fn device(&self, owner: &Owner, of: &DeviceRef) -> Result<Option<Device>> {
        let kept = self.kept_at(&Place::of(owner, &of.recipient, &of.device)).await?;
        Ok(kept.map(|kept| kept.device))
    }

    async fn bury(&self, owner: &Owner, word: &DeadToken) -> Result<bool> {
        let mut written = self.list_dead(owner, word).await?;
        let change = |device| match registry::buried(device, word) {
            Buried::Changed(device) => (Some(*device), true),
            Buried::Before => (None, true),
            Buried::Unchanged => (None, false),
        };
        let said = self.change_named(owner, word, change).await?;
        written.extend(self.named_key(owner, word));
        self.lasting(written).await?;
        Ok(said)
    }

    async fn exhume(&self, owner: &Owner, word: &DeadToken) -> Result<()> {
        let mut written = self.unlist_dead(owner, word).await?;
        self.change_named(owner, word, |device| (registry::exhumed(device, word), true)).await?;
        written.extend(self.named_key(owner, word));
        self.lasting(written).await
    }

    async fn dead(&self, owner: &Owner, since: UnixMs, after: Option<&str>, limit: u16) -> Result<DeadPage> {
        self.all_dead(owner, registry::dead_after(since, after), limit).await
    }
}

impl RedisStore {
    /// Unlike that of any other registration, on this node or another.
    fn stamp(&self) -> String {
        format!("{:x}.{:x}", self.positions(1), self.mark)
    }

    /// Gives the token to a registration whose device is written, and takes away whoever had it. False where that
    /// cannot be known, and has to begin anew.
    async fn is_the_tokens_own(&self, token: &[u8], by: &Registration) -> Result<bool> {
        let Some(others) = self.take_token(token, by).await? else { return Ok(false) };
        let mut written = vec![self.names.recipient(&by.place.recipient), token.to_vec()];
        for other in others {
            let key = self.names.recipient(&other.place.recipient);
            let args = vec![b"0".to_vec(), other.place.field(), other.stamp.clone().into_bytes()];
            // One that has another stamp was registered again, and comes to this token or another by itself.
            self.dropped(&key, args).await?;
            self.leave_token(token, &other).await?;
            written.push(key);
        }
        self.lasting(written).await?;
        Ok(true)
    }

    /// Changes the device that a word names, as `change` says; what that says besides.
    async fn change_named(
        &self,
        owner: &Owner,
        word: &DeadToken,
        change: impl Fn(Device) -> (Option<Device>, bool) + Send,
    ) -> Result<bool> {
        let (Some(recipient), Some(device)) = (&word.recipient, &word.device) else { return Ok(false) };
        let place = Place::of(owner, recipient, device);
        for _ in 0..MOST_TRIES {
            let Some(before) = self.kept_at(&place).await? else { return Ok(false) };
            let (next, said) = change(before.device.clone());
            let Some(next) = next else { return Ok(said) };
            let text = Kept::write(&before.stamp, &next)?;
            if matches!(self.put_device(&place, Some(&before), &text).await?, Put::Done) {
                return Ok(said);
            }
        }
        Err(many_at_once())
    }

    fn named_key(&self, owner: &Owner, word: &DeadToken) -> Option<Vec<u8>> {
        let recipient = word.recipient.as_ref()?;
        Some(self.names.recipient(&recipient_digest(owner, recipient)))
    }

    async fn all_of(&self, recipient: &[u8; 16]) -> Result<(Option<Profile>, Vec<Kept>)> {
        let found = self.recipient_verb(&self.names.recipient(recipient), "whole", Vec::new()).await?;
        let mut found = answers::list(found.ok_or_else(|| corrupt("an answer"))?)?.into_iter();
        let (mut profile, mut devices) = (None, Vec::new());
        while let (Some(field), Some(text)) = (found.next(), found.next()) {
            let (field, text) = (answers::bytes(field)?, answers::bytes(text)?);
            if field == PROFILE {
                profile = Some(serde_json::from_slice(&text).map_err(|_| corrupt("a recipient"))?);
            } else if field.starts_with(DEVICE.as_bytes()) {
                devices.push(Kept::read(text)?);
            }
        }
        Ok((profile, devices))
    }

    async fn kept_at(&self, place: &Place) -> Result<Option<Kept>> {
        let key = self.names.recipient(&place.recipient);
        let found = self.recipient_verb(&key, "one", vec![place.field()]).await?;
        found.map(answers::maybe_bytes).transpose()?.flatten().map(Kept::read).transpose()
    }

    async fn put_device(&self, place: &Place, before: Option<&Kept>, text: &[u8]) -> Result<Put> {
        let before = before.map(|kept| kept.text.clone()).unwrap_or_default();
        let args = vec![place.field(), before, text.to_vec(), decimal(MOST_DEVICES as u64)];
        let put = self.recipient_verb(&self.names.recipient(&place.recipient), "device", args).await?;
        match answers::number(&put.ok_or_else(|| corrupt("an answer"))?)? {
            1 => Ok(Put::Done),
            0 => Ok(Put::Moved),
            _ => Ok(Put::NoRoom),
        }
    }

    /// Whether nothing of it is left under another stamp.
    async fn dropped(&self, key: &[u8], args: Vec<Vec<u8>>) -> Result<bool> {
        let others = self.recipient_verb(key, "drop", args).await?.ok_or_else(|| corrupt("an answer"))?;
        Ok(answers::number(&others)? == 0)
    }

    async fn recipient_verb(&self, key: &[u8], verb: &str, args: Vec<Vec<u8>>) -> Result<Option<Value>> {
        self.same_installation()?;
        let mut all = vec![verb.as_bytes().to_vec()];
        all.extend(args);
        let (script, keys) = (&self.scripts.recipient, vec![key.to_vec()]);
        let call = Call { script, keys, args: all, need: Need::Done, generation: None };
        // An answer ends before what is nil in it.
        Ok(answers::list(self.link.run(call).await?)?.into_iter().next())
    }

    /// Returns once what was written to these keys outlives what the configured durability says. All at once, at
    /// the end: to wait after each step would take longer than a caller waits.
    async fn lasting(&self, keys: Vec<Vec<u8>>) -> Result<()> {
        let calls = keys.into_iter().map(|key| {
            let (script, keys) = (&self.scripts.kept, vec![key]);
            self.link.run(Call { script, keys, args: Vec::new(), need: Need::Durable, generation: None })
        });
        futures::future::try_join_all(calls).await.map(drop)
    }
}
