//! Suppressions: what operators and callers say of addresses is read and checked as in a request, and kept under the
//! same hash that a delivery there has.

use std::sync::Arc;

use belfry_domain::suppression::SuppressionKind;
use belfry_domain::{ChannelKind, UnixMs};

use super::accept::PolicyNow;
use super::address;
use super::canonical::Secret;
use super::fields::{FieldProblem, Object, Problems, line};
use super::json::Node;
use super::registrar::Put;
use crate::ports::StoreError;
use crate::ports::clock::Clock;
use crate::ports::deliveries::Owner;
use crate::ports::message::Address;
use crate::ports::policy::Policy;
use crate::ports::suppressions::{
    self, Addressee, Found, MOST_OF_ONE, Suppressed, SuppressedPage, SuppressionId, Suppressions, takes,
};

pub const MEMBERS: &[&str] = &["channel", "address", "kind", "category", "until", "note"];
pub const WHOM: &[&str] = &["channel", "address"];
/// Longest note, in characters.
pub const MOST_NOTE: usize = 255;
/// What may be said of an address over the API; the rest is a provider's word.
pub const KINDS: &[SuppressionKind] =
    &[SuppressionKind::Manual, SuppressionKind::HardBounce, SuppressionKind::Complaint, SuppressionKind::Unsubscribe];

/// An address on a channel.
#[derive(Debug)]
pub struct Whom {
    pub channel: ChannelKind,
    pub address: Address,
}

/// An entry as it was asked for.
#[derive(Debug)]
pub struct NewSuppression {
    pub whom: Whom,
    pub kind: SuppressionKind,
    pub category: Option<String>,
    pub until: Option<UnixMs>,
    pub note: Option<String>,
}

/// Where suppressions are kept and looked up by hand.
pub struct Blocklist {
    suppressions: Arc<dyn Suppressions>,
    clock: Arc<dyn Clock>,
    policy: PolicyNow,
    secret: Secret,
}

impl Blocklist {
    #[must_use]
    pub fn new(
        suppressions: Arc<dyn Suppressions>,
        clock: Arc<dyn Clock>,
        policy: PolicyNow,
        secret: &[u8; 32],
    ) -> Self {
        Self { suppressions, clock, policy, secret: Secret::new(secret) }
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// Every bad field.
    pub fn read(&self, node: &Node<'_>) -> Result<NewSuppression, Vec<FieldProblem>> {
        read_new(node, &(self.policy)(), self.clock.now())
    }

    /// Keeps an entry; `by`: who says so. `None`: there is no room beside the others about the address.
    ///
    /// # Errors
    /// [`StoreError`]: the same call again finishes it. So for every verb here.
    pub async fn put(
        &self,
        owner: &Owner,
        by: &str,
        new: NewSuppression,
    ) -> Result<Option<Put<Suppressed>>, StoreError> {
        let NewSuppression { whom, kind, category, until, note } = new;
        let entry = Suppressed {
            channel: whom.channel,
            address_hash: address::hash(&self.secret, whom.channel, &whom.address.0),
            address_mask: address::mask(whom.channel, &whom.address),
            kind,
            category,
            sender: None,
            since: self.clock.now(),
            until,
            origin: by.to_owned(),
            note,
        };
        let id = entry.id(owner);
        let before = self.found(entry.addressee(owner)).await?;
        let is_new = !before.iter().any(|one| one.id(owner) == id && !one.is_over(entry.since));
        Ok(match self.suppressions.put(owner, &entry).await? {
            suppressions::Put::Kept(now) => Some(Put { now: *now, is_new }),
            suppressions::Put::TooMany => None,
        })
    }

    async fn found(&self, whom: Addressee) -> Found {
        self.suppressions.find(vec![whom]).await.pop().unwrap_or_else(|| Ok(Vec::new()))
    }

    /// What is in force about an address, the oldest first.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub async fn about(&self, owner: &Owner, whom: &Whom) -> Result<Vec<Suppressed>, StoreError> {
        let address_hash = address::hash(&self.secret, whom.channel, &whom.address.0);
        let whom = Addressee { owner: owner.clone(), channel: whom.channel, address_hash };
        let mut found = self.found(whom).await?;
        let now = self.clock.now();
        found.retain(|one| !one.is_over(now));
        found.sort_by_key(|one| (one.since, one.id(owner)));
        Ok(found)
    }

    /// # Errors
    /// As [`Self::put`].
    pub async fn lift(&self, owner: &Owner, id: SuppressionId) -> Result<(), StoreError> {
        self.suppressions.lift(owner, id).await
    }

    /// # Errors
    /// As [`Self::put`].
    pub async fn listed(&self, owner: &Owner, after: Option<&str>, limit: u16) -> Result<SuppressedPage, StoreError> {
        self.suppressions.listed(owner, after, limit).await
    }
}

/// Why there is no room for one more.
#[must_use]
pub fn too_many() -> String {
    format!(
        "There are {MOST_OF_ONE} suppressions of this address already, none of them over. Remove some, or suppress all \
         categories."
    )
}

/// Reads whom something is asked about.
///
/// # Errors
/// Every bad field.
pub fn read_whom(node: &Node<'_>) -> Result<Whom, Vec<FieldProblem>> {
    let mut problems = Problems::default();
    let whom = Object::open(node, "", WHOM, &mut problems).and_then(|object| self::whom(&object, &mut problems));
    match whom {
        Some(whom) if problems.is_empty() => Ok(whom),
        _ => Err(problems.all()),
    }
}

fn read_new(node: &Node<'_>, policy: &Policy, now: UnixMs) -> Result<NewSuppression, Vec<FieldProblem>> {
    let mut problems = Problems::default();
    let Some(object) = Object::open(node, "", MEMBERS, &mut problems) else { return Err(problems.all()) };
    let whom = self::whom(&object, &mut problems);
    let kind = kind(&object, &mut problems);
    let category = category(&object, (kind, policy), &mut problems);
    let until = object.instant("until", &mut problems);
    if until.is_some_and(|until| until <= now) {
        problems.add("/until", "must lie ahead");
    }
    let note = object.text("note", line(MOST_NOTE), &mut problems);
    match whom {
        Some(whom) if problems.is_empty() => Ok(NewSuppression { whom, kind, category, until, note }),
        _ => Err(problems.all()),
    }
}

fn whom(object: &Object<'_, '_>, problems: &mut Problems) -> Option<Whom> {
    for name in WHOM {
        if !object.has(name) {
            problems.add(object.at(name), "is required");
        }
    }
    let channel = object.text("channel", line(16), problems).and_then(|name| match name.parse() {
        Ok(channel) if takes(channel) => Some(channel),
        Ok(ChannelKind::Inbox) => {
            problems.add("/channel", "has no addresses: must be email, sms, webhook or chat");
            None
        }
        Ok(_) => {
            problems.add("/channel", "must be email, sms, webhook or chat; a device is removed instead");
            None
        }
        Err(_) => {
            problems.add("/channel", "must be email, sms, webhook or chat");
            None
        }
    });
    let text = object.text("address", line(2048), problems)?;
    // Some masks have the form of an address, and nothing would come of it: `a…@example.com`, `+46…67`.
    let local = text.split('@').next().unwrap_or_default();
    if text.contains('…') && (channel != Some(ChannelKind::Email) || local.chars().nth(1) == Some('…')) {
        problems.add("/address", "must be the whole address, not one that was masked");
        return None;
    }
    if channel == Some(ChannelKind::Email) && text.starts_with("*@") {
        problems.add("/address", "must be one whole address: patterns such as *@example.com do not work here");
        return None;
    }
    let address = match channel? {
        ChannelKind::Email => address::email(&text),
        ChannelKind::Sms => address::phone(&text),
        ChannelKind::Webhook => address::webhook(&text),
        _ => Ok(Address(text)),
    };
    let address = address.map_err(|wrong| problems.add("/address", wrong)).ok()?;
    Some(Whom { channel: channel?, address })
}

fn kind(object: &Object<'_, '_>, problems: &mut Problems) -> SuppressionKind {
    let named = object.text("kind", line(32), problems);
    let kind = named.as_ref().map(|name| KINDS.iter().find(|kind| kind.name() == name));
    if kind == Some(None) {
        problems.add("/kind", "must be manual, hard_bounce, complaint or unsubscribe");
    }
    kind.flatten().copied().unwrap_or(SuppressionKind::Manual)
}

/// One that nothing comes of is refused, so that nobody believes to have turned something off.
fn category(
    object: &Object<'_, '_>,
    (kind, policy): (SuppressionKind, &Policy),
    problems: &mut Problems,
) -> Option<String> {
    let name = object.text("category", line(64), problems)?;
    let class = policy.classes.get(&name);
    let wrong = match class {
        None => {
            let known: Vec<_> = policy.classes.keys().map(String::as_str).collect();
            Some(format!("is not a configured class; configured are {}", known.join(", ")))
        }
        Some(_) if kind == SuppressionKind::HardBounce => {
            Some("must not stand beside hard_bounce: where there is no mailbox nothing arrives".into())
        }
        Some(class) if class.required && !kind.blocks_required() => {
            Some("is a class that cannot be turned off: only manual holds it back".into())
        }
        Some(_) => None,
    };
    wrong.into_iter().for_each(|wrong| problems.add("/category", wrong));
    Some(name)
}
