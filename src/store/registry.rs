//! What both stores do with devices and with what is said of their tokens. They keep it differently, and
//! must not mean different things by it.

use belfry_domain::device::{Standing, is_about};
use belfry_domain::{UnixMs, hex};
use sha2::{Digest, Sha256};

use crate::ports::recipients::{DeadPage, DeadToken, Device, MOST_EARLIER, NewDevice, Token};

/// A time stands in front of each place of the list of the dead, in so many digits, so that texts compare as the
/// times do.
pub const TIME_DIGITS: usize = 15;
const MOST_TIME: i64 = 999_999_999_999_999;

/// A device after its registration.
#[must_use]
pub fn registered(before: Option<&Device>, new: &NewDevice, now: UnixMs) -> Device {
    // Under another kind, app or environment an earlier token could not be called any more.
    let earlier = before.filter(|it| (it.kind, &it.app, &it.environment) == (new.kind, &new.app, &new.environment));
    let mut tokens: Vec<&Token> = Vec::with_capacity(MOST_EARLIER);
    for token in earlier.into_iter().flat_map(|it| std::iter::once(&it.token).chain(&it.earlier)) {
        let known = token.hash == new.token.hash || tokens.iter().any(|one| one.hash == token.hash);
        if !known && tokens.len() < MOST_EARLIER {
            tokens.push(token);
        }
    }
    Device {
        id: new.id.clone(),
        kind: new.kind,
        app: new.app.clone(),
        environment: new.environment.clone(),
        token: new.token.clone(),
        registered_at: before.map_or(now, |it| it.registered_at.max(now)),
        standing: Standing::Live,
        earlier: tokens.into_iter().cloned().collect(),
    }
}

/// What a word means for the device that it names.
#[derive(Debug, PartialEq, Eq)]
pub enum Buried {
    /// It is to be kept like this.
    Changed(Box<Device>),
    /// It stands as this word left it.
    Before,
    /// The word says nothing of it, or it was dead already.
    Unchanged,
}

#[must_use]
pub fn buried(device: Device, word: &DeadToken) -> Buried {
    if !names(word, &device) || !is_about(device.registered_at, word.since, word.heard_at) {
        return Buried::Unchanged;
    }
    let next = left_by(word);
    match (device.standing, next) {
        (now, next) if now == next => Buried::Before,
        (Standing::Live, _) | (Standing::Quarantined { .. }, Standing::Dead { .. }) => {
            Buried::Changed(Box::new(Device { standing: next, ..device }))
        }
        // The later word takes the earlier one's place on the list, so the device has to stand as that left it: else
        // neither could be taken back.
        (Standing::Quarantined { fault: known, at }, Standing::Quarantined { fault, at: later })
            if known == fault && later > at =>
        {
            Buried::Changed(Box::new(Device { standing: next, ..device }))
        }
        (Standing::Quarantined { .. } | Standing::Dead { .. }, _) => Buried::Unchanged,
    }
}

/// The device as it was before the word, where it still stands as that left it.
#[must_use]
pub fn exhumed(device: Device, word: &DeadToken) -> Option<Device> {
    let stands = names(word, &device) && device.standing == left_by(word);
    stands.then_some(Device { standing: Standing::Live, ..device })
}

fn left_by(word: &DeadToken) -> Standing {
    Standing::after(word.fault, word.since.unwrap_or(word.heard_at))
}

/// Whether it is the device's current token. A word that does not say for which app or environment the call was
/// is about whatever the device has.
fn names(word: &DeadToken, device: &Device) -> bool {
    let fits = |said: &Option<String>, has: &Option<String>| said.is_none() || has.is_none() || said == has;
    word.hash == device.token.hash
        && word.kind == device.kind
        && fits(&word.app, &device.app)
        && fits(&word.environment, &device.environment)
}

/// Names an entry of the list of the dead: kind, app, token and fault.
#[must_use]
pub fn dead_id(word: &DeadToken) -> String {
    let app = word.app.as_deref();
    let id = digest(&[word.kind.name(), if app.is_some() { "app" } else { "" }, app.unwrap_or_default(), &word.hash]);
    format!("{}.{}", hex(&id), word.fault.name())
}

/// Where something heard of then stands in the list: before all that was heard of later.
#[must_use]
pub fn dead_time(at: UnixMs) -> String {
    format!("{:0TIME_DIGITS$}", at.0.clamp(0, MOST_TIME))
}

/// After which place to read: of what was heard of at or after `since`, and behind `after`, where that is a place.
#[must_use]
pub fn dead_after(since: UnixMs, after: Option<&str>) -> String {
    let is_place =
        |text: &&str| text.len() > TIME_DIGITS && text.as_bytes()[..TIME_DIGITS].iter().all(u8::is_ascii_digit);
    // The time alone stands before every place of its moment.
    let after = after.filter(is_place).unwrap_or_default().to_owned();
    after.max(dead_time(since))
}

/// Of texts that cannot run together.
#[must_use]
pub fn digest(parts: &[&str]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut short = [0; 16];
    short.copy_from_slice(&hash.finalize()[..16]);
    short
}

/// What was found behind a place, in order, cut to a page: each with its own place.
///
/// # Errors
/// Those of `read`.
pub fn dead_page<T, E>(
    found: Vec<(String, T)>,
    limit: usize,
    read: impl Fn(T) -> Result<DeadToken, E>,
) -> Result<DeadPage, E> {
    let next = if found.len() > limit { found.get(limit - 1).map(|(place, _)| place.clone()) } else { None };
    let tokens = found.into_iter().take(limit).map(|(_, one)| read(one)).collect::<Result<_, E>>()?;
    Ok(DeadPage { tokens, next })
}
