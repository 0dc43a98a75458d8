//! [`belfry::ports::recipients::Recipients`].

mod bury;
mod dead;
mod devices;
mod model;
mod profiles;
mod sequences;

use belfry::ports::deliveries::Owner;
use belfry::ports::message::Address;
use belfry::ports::recipients::{
    DeadToken, Device, DeviceRef, NewDevice, Profile, Recipient, Recipients, Registered, Token,
};
use belfry_domain::device::TokenFault;
use belfry_domain::{ChannelKind, DeliveryId, UnixMs};

use super::fixture::{acme, id_of};
use super::harness::Harness;

pub(crate) fn other() -> Owner {
    Owner { tenant: "other".into(), ..acme() }
}

pub(crate) fn token(name: &str) -> Token {
    Token { token: Address(format!("token {name}")), hash: format!("hash {name}"), mask: format!("…{name}") }
}

pub(crate) fn device(id: &str, named: &str) -> NewDevice {
    NewDevice {
        id: id.into(),
        kind: ChannelKind::Apns,
        app: Some("app.example".into()),
        environment: None,
        token: token(named),
    }
}

pub(crate) fn of(recipient: &str, device: &str) -> DeviceRef {
    DeviceRef { recipient: recipient.into(), device: device.into() }
}

/// What a provider said of a token of a stored device.
pub(crate) fn word(named: &DeviceRef, token: &str, fault: TokenFault, heard_at: UnixMs) -> DeadToken {
    DeadToken {
        kind: ChannelKind::Apns,
        app: Some("app.example".into()),
        environment: None,
        recipient: Some(named.recipient.clone()),
        device: Some(named.device.clone()),
        hash: format!("hash {token}"),
        token_sha256: format!("sha256 {token}"),
        fault,
        since: None,
        heard_at,
        notification: id_of("k"),
        delivery: DeliveryId::of(id_of("k"), "apns", "phone"),
    }
}

fn profile(email: &str) -> Profile {
    let email = belfry::ports::message::Mailbox { name: Some("Ann".into()), email: Address(email.into()) };
    Profile {
        email: Some(email),
        phone: Some(Address("+46701234567".into())),
        locale: Some("sv".into()),
        time_zone: Some("Europe/Stockholm".into()),
    }
}

/// One-line forms of the verbs, for `acme` where none is named.
impl Harness {
    pub async fn register(&self, recipient: &str, device: NewDevice) -> Device {
        self.register_of(&acme(), recipient, device).await
    }

    async fn register_of(&self, owner: &Owner, recipient: &str, device: NewDevice) -> Device {
        match self.store.register(owner, recipient, &device, self.now()).await.unwrap() {
            Registered::Kept(kept) => *kept,
            Registered::TooMany => panic!("there is room"),
        }
    }

    async fn device(&self, recipient: &str, id: &str) -> Option<Device> {
        Recipients::device(&*self.store, &acme(), &of(recipient, id)).await.unwrap()
    }

    async fn recipient(&self, recipient: &str) -> Option<Recipient> {
        Recipients::recipient(&*self.store, &acme(), recipient).await.unwrap()
    }

    async fn bury(&self, word: &DeadToken) -> bool {
        Recipients::bury(&*self.store, &acme(), word).await.unwrap()
    }
}

/// All pages of a list, `limit` at a time.
async fn all_dead(h: &Harness, owner: &Owner, since: UnixMs, limit: u16) -> Vec<DeadToken> {
    let (mut all, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = h.store.dead(owner, since, after.as_deref(), limit).await.unwrap();
        assert!(page.tokens.len() <= usize::from(limit));
        all.extend(page.tokens);
        match page.next {
            Some(next) => after = Some(next),
            None => return all,
        }
    }
}
