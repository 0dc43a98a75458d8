//! Stored recipients: what callers say of them is read and checked as in a request, and tokens are kept under the
//! same hash that a delivery to them has.

use std::sync::Arc;

use belfry_domain::{ChannelKind, UnixMs};

use super::address;
use super::canonical::Secret;
use super::fields::{FieldProblem, Problems};
use super::json::Node;
use super::recipient;
use crate::content::inputs;
use crate::ports::StoreError;
use crate::ports::clock::Clock;
use crate::ports::deliveries::Owner;
use crate::ports::recipients::{
    DeadPage, Device, DeviceRef, NewDevice, Profile, Recipient, Recipients, Registered, Token,
};

/// Something that was put, and whether it is new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put<T> {
    pub now: T,
    /// There was none before.
    pub is_new: bool,
}

pub struct Registrar {
    recipients: Arc<dyn Recipients>,
    clock: Arc<dyn Clock>,
    secret: Secret,
}

impl Registrar {
    #[must_use]
    pub fn new(recipients: Arc<dyn Recipients>, clock: Arc<dyn Clock>, secret: &[u8; 32]) -> Self {
        Self { recipients, clock, secret: Secret::new(secret) }
    }

    /// Keeps a profile in place of the one before.
    ///
    /// # Errors
    /// [`StoreError`]: the same call again finishes it. So for every verb here.
    pub async fn put_profile(&self, owner: &Owner, id: &str, profile: Profile) -> Result<Put<Recipient>, StoreError> {
        let before = self.recipients.recipient(owner, id).await?;
        self.recipients.put_profile(owner, id, &profile).await?;
        let is_new = before.is_none();
        Ok(Put { now: Recipient { profile, devices: before.unwrap_or_default().devices }, is_new })
    }

    /// # Errors
    /// As [`Self::put_profile`].
    pub async fn recipient(&self, owner: &Owner, id: &str) -> Result<Option<Recipient>, StoreError> {
        self.recipients.recipient(owner, id).await
    }

    /// # Errors
    /// As [`Self::put_profile`].
    pub async fn remove_recipient(&self, owner: &Owner, id: &str) -> Result<bool, StoreError> {
        self.recipients.remove_recipient(owner, id).await
    }

    /// Registers a device. `None`: its recipient has as many others as one may have.
    ///
    /// # Errors
    /// As [`Self::put_profile`].
    pub async fn register(
        &self,
        owner: &Owner,
        of: &DeviceRef,
        device: inputs::Device,
    ) -> Result<Option<Put<Device>>, StoreError> {
        let before = self.recipients.device(owner, of).await?;
        let new = self.new_device(&of.device, device);
        Ok(match self.recipients.register(owner, &of.recipient, &new, self.clock.now()).await? {
            Registered::Kept(now) => Some(Put { now: *now, is_new: before.is_none() }),
            Registered::TooMany => None,
        })
    }

    fn new_device(&self, id: &str, device: inputs::Device) -> NewDevice {
        let inputs::Device { kind, token, app, environment, id: _ } = device;
        let hash = address::hash(&self.secret, kind, &token.0);
        let mask = address::mask(kind, &token);
        NewDevice { id: id.to_owned(), kind, app, environment, token: Token { token, hash, mask } }
    }

    /// # Errors
    /// As [`Self::put_profile`].
    pub async fn device(&self, owner: &Owner, of: &DeviceRef) -> Result<Option<Device>, StoreError> {
        self.recipients.device(owner, of).await
    }

    /// # Errors
    /// As [`Self::put_profile`].
    pub async fn remove_device(&self, owner: &Owner, of: &DeviceRef) -> Result<bool, StoreError> {
        self.recipients.remove_device(owner, of).await
    }

    /// # Errors
    /// As [`Self::put_profile`].
    pub async fn dead(
        &self,
        owner: &Owner,
        since: UnixMs,
        after: Option<&str>,
        limit: u16,
    ) -> Result<DeadPage, StoreError> {
        self.recipients.dead(owner, since, after, limit).await
    }
}

/// Reads a profile.
///
/// # Errors
/// Every bad field.
pub fn read_profile(node: &Node<'_>) -> Result<Profile, Vec<FieldProblem>> {
    let mut problems = Problems::default();
    let profile = recipient::profile(node, &mut problems);
    if problems.is_empty() { Ok(profile) } else { Err(problems.all()) }
}

/// Reads a device.
///
/// # Errors
/// Every bad field.
pub fn read_device(node: &Node<'_>) -> Result<inputs::Device, Vec<FieldProblem>> {
    let mut problems = Problems::default();
    let device = recipient::device(node, "", &mut problems);
    if device.as_ref().is_some_and(|device| device.kind == ChannelKind::WebPush) && node.member("token").is_some() {
        problems.add("/token", "must be a subscription, in `subscription`, as PushSubscription.toJSON() gives it");
    }
    match device {
        Some(device) if problems.is_empty() => match recipient::wrong_form(&device) {
            None => Ok(device),
            Some((pointer, detail)) => Err(vec![FieldProblem::new(pointer, detail)]),
        },
        _ => Err(problems.all()),
    }
}
