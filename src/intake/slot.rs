//! Where one delivery goes: its name within the notification, its address, its place in the request.

use belfry_domain::ChannelKind;

use super::address;
use super::canonical::Secret;
use crate::content::inputs::{Device, STORED};
use crate::ports::message::Address;
use crate::ports::policy::DeviceOf;

/// One address that the notification goes to.
#[derive(Clone, Debug)]
pub struct Slot {
    pub channel: ChannelKind,
    pub name: String,
    pub address: Address,
}

impl Slot {
    /// As in `Delivery::address_hash`.
    #[must_use]
    pub fn hash(&self, secret: &Secret) -> String {
        address::hash(secret, self.channel, &self.address.0)
    }
}

/// Of which app and environment a device is.
#[must_use]
pub fn of(device: &Device) -> DeviceOf<'_> {
    DeviceOf { app: device.app.as_deref(), environment: device.environment.as_deref() }
}

/// Where the request names a slot's address.
pub fn place(slot: &Slot) -> String {
    match (slot.channel, slot.name.split_once('/')) {
        _ if slot.name.starts_with(STORED) => "/to/recipient".into(),
        (ChannelKind::Email, Some((copies, at))) => format!("/content/{copies}/{at}"),
        (ChannelKind::Email, None) => "/to/email".into(),
        (_, Some((_, at))) => format!("/to/devices/{at}"),
        (_, None) => format!("/to/{}", slot.name),
    }
}
