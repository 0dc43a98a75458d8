//! What a store does about recipients in as few words as possible: lists and maps.

use std::collections::BTreeMap;

use belfry::ports::recipients::{
    DeadToken, Device, DeviceRef, MOST_DEVICES, MOST_EARLIER, NewDevice, Profile, Recipient, Token,
};
use belfry_domain::UnixMs;
use belfry_domain::device::{Standing, is_about};

/// Of one owner.
#[derive(Default)]
pub struct Model {
    pub profiles: BTreeMap<String, Profile>,
    pub devices: BTreeMap<(String, String), Device>,
    dead: Vec<DeadToken>,
}

impl Model {
    pub fn recipient(&self, recipient: &str) -> Option<Recipient> {
        let devices: Vec<_> =
            self.devices.iter().filter(|((of, _), _)| of == recipient).map(|(_, device)| device.clone()).collect();
        let profile = self.profiles.get(recipient);
        (profile.is_some() || !devices.is_empty())
            .then(|| Recipient { profile: profile.cloned().unwrap_or_default(), devices })
    }

    pub fn remove_recipient(&mut self, recipient: &str) -> bool {
        let before = self.devices.len();
        self.devices.retain(|(of, _), _| of != recipient);
        self.profiles.remove(recipient).is_some() || self.devices.len() < before
    }

    /// `None`: too many.
    pub fn register(&mut self, recipient: &str, new: &NewDevice, now: UnixMs) -> Option<Device> {
        let name = (recipient.to_owned(), new.id.clone());
        let before = self.devices.get(&name).cloned();
        let others = self.devices.keys().filter(|(of, _)| of == recipient).count();
        if before.is_none() && others >= MOST_DEVICES {
            return None;
        }
        let is_new = |one: &Device| (one.kind, &one.app) == (new.kind, &new.app) && one.token.hash == new.token.hash;
        self.devices.retain(|_, one| !is_new(one));
        let mut earlier: Vec<Token> = Vec::new();
        if let Some(before) = &before
            && (before.kind, &before.app, &before.environment) == (new.kind, &new.app, &new.environment)
        {
            for token in [vec![before.token.clone()], before.earlier.clone()].concat() {
                if token.hash != new.token.hash && !earlier.contains(&token) {
                    earlier.push(token);
                }
            }
            earlier.truncate(MOST_EARLIER);
        }
        let device = Device {
            id: new.id.clone(),
            kind: new.kind,
            app: new.app.clone(),
            environment: new.environment.clone(),
            token: new.token.clone(),
            registered_at: before.map_or(now, |before| before.registered_at.max(now)),
            standing: Standing::Live,
            earlier,
        };
        self.devices.insert(name, device.clone());
        Some(device)
    }

    pub fn remove_device(&mut self, of: &DeviceRef) -> bool {
        self.devices.remove(&(of.recipient.clone(), of.device.clone())).is_some()
    }

    fn named(&mut self, word: &DeadToken) -> Option<&mut Device> {
        let device = self.devices.get_mut(&(word.recipient.clone()?, word.device.clone()?))?;
        let same_app = [&device.app, &word.app].contains(&&None) || device.app == word.app;
        (device.token.hash == word.hash && device.kind == word.kind && same_app).then_some(device)
    }

    pub fn bury(&mut self, word: &DeadToken) -> bool {
        let listed = |one: &DeadToken| {
            (one.kind, &one.app, &one.hash, one.fault) == (word.kind, &word.app, &word.hash, word.fault)
        };
        if !self.dead.iter().any(|one| listed(one) && one.heard_at >= word.heard_at) {
            self.dead.retain(|one| !listed(one));
            self.dead.push(word.clone());
        }
        let Some(device) = self.named(word) else { return false };
        if !is_about(device.registered_at, word.since, word.heard_at) {
            return false;
        }
        let left = Standing::after(word.fault, word.since.unwrap_or(word.heard_at));
        let worse = |standing: Standing| match standing {
            Standing::Live => 0,
            Standing::Quarantined { .. } => 1,
            Standing::Dead { .. } => 2,
        };
        let later = match (device.standing, left) {
            (Standing::Quarantined { fault: known, at }, Standing::Quarantined { fault, at: later }) => {
                known == fault && later > at
            }
            _ => false,
        };
        if later || worse(left) > worse(device.standing) {
            device.standing = left;
        }
        device.standing == left
    }

    pub fn exhume(&mut self, word: &DeadToken) {
        let same = |one: &DeadToken| {
            (one.kind, &one.app, &one.hash, one.fault, one.heard_at)
                == (word.kind, &word.app, &word.hash, word.fault, word.heard_at)
        };
        self.dead.retain(|one| !same(one));
        let left = Standing::after(word.fault, word.since.unwrap_or(word.heard_at));
        if let Some(device) = self.named(word)
            && device.standing == left
        {
            device.standing = Standing::Live;
        }
    }

    /// By when they were heard of; those of one moment as the stores have them.
    pub fn dead(&self, since: UnixMs) -> Vec<DeadToken> {
        let mut dead: Vec<_> = self.dead.iter().filter(|one| one.heard_at >= since).cloned().collect();
        dead.sort_by_key(|one| one.heard_at);
        dead
    }
}
