//! Schedules: what is sent again and again. When that is [`belfry_domain::schedule`] says; here they are kept, with how
//! far each has come. A slot is sent under an id of its own *before* its schedule goes on, so that whoever repeats it,
//! after a crash or beside another node, repeats an intent that is known.

use async_trait::async_trait;
use belfry_domain::key::{KeyKind, child_key};
use belfry_domain::schedule::{Cron, Missed, Rhythm};
use belfry_domain::{Key, NotificationId, UnixMs};
use serde::{Deserialize, Serialize};

use super::StoreError;
use super::deliveries::Owner;

/// Most schedules of one owner.
pub const MOST_SCHEDULES: usize = 10_000;
/// Most in one page of the list.
pub const MOST_LISTED: u16 = 100;
/// Most that are given out at once as due.
pub const MOST_DUE: u16 = 32;

/// What a name has to be.
pub const NAME: &str =
    "must have 1 to 64 lower-case letters, digits, `.`, `_` and `-`, and begin with a letter or digit";

#[must_use]
pub fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=64).contains(&text.len())
        && text.bytes().all(|byte| fits(byte) || b"._-".contains(&byte))
        && text.bytes().next().is_some_and(fits)
}

/// One schedule, and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    pub tenant: String,
    pub environment: String,
    /// The caller's own; one of each for an owner.
    pub name: String,
    pub cron: String,
    /// IANA name.
    pub time_zone: String,
    pub missed: Missed,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMs>,
    /// What is asked for at each slot: canonical JSON.
    pub notification: String,
    /// Absent: it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Paused>,
    pub created_at: UnixMs,
    /// By hand.
    pub changed_at: UnixMs,
    /// Public name of the API key that said so last.
    pub by: String,
    /// The first slot that nobody has looked at; absent: there is none any more, or it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<UnixMs>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Run>,
    /// Slots that were let go since it was made.
    #[serde(default)]
    pub missed_count: u64,
}

/// Since when somebody has had it wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    pub since: UnixMs,
    pub by: String,
}

/// What became of the latest slot at which something was to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub slot: UnixMs,
    /// When a node had it accepted or refused.
    pub at: UnixMs,
    #[serde(flatten)]
    pub outcome: Ran,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Ran {
    Accepted {
        notification: NotificationId,
    },
    /// What was right when it was written down is so no more.
    Refused {
        /// JSON pointers into the notification, each with what is wrong there.
        errors: Vec<(String, String)>,
    },
}

impl Schedule {
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner { tenant: self.tenant.clone(), environment: self.environment.clone() }
    }

    /// When it is due. `None` of what no longer reads: written by a Belfry that knew more zones.
    #[must_use]
    pub fn rhythm(&self) -> Option<Rhythm> {
        let cron: Cron = self.cron.parse().ok()?;
        Some(Rhythm { cron, zone: self.time_zone.parse().ok()?, until: self.until })
    }

    /// When somebody has to look at it.
    #[must_use]
    pub fn look_at(&self) -> Option<UnixMs> {
        self.next.filter(|_| self.paused.is_none())
    }

    /// The id of what is sent at `slot`.
    #[must_use]
    pub fn notification_id(&self, slot: UnixMs) -> NotificationId {
        NotificationId::slot(&self.tenant, &self.environment, &self.name, slot)
    }
}

/// Of a schedule of one owner.
#[must_use]
pub fn key_of(owner: &Owner, name: &str) -> Key {
    let parts = [&owner.tenant, &owner.environment, name];
    child_key(KeyKind::Schedule, &parts.map(str::as_bytes))
}

/// As it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub schedule: Schedule,
    /// As it stands in the store: what a write over it has to find there. Another Belfry may have written more
    /// than this one reads.
    pub written: String,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrote {
    Done,
    /// Something else was kept than what was read; nothing changed.
    Other,
    /// The owner has [`MOST_SCHEDULES`] already.
    TooMany,
}

/// What is due.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The longest due first.
    pub due: Vec<Kept>,
    /// Due as well, and cannot be read.
    pub unreadable: u32,
    /// When the first of all others has to be looked at.
    pub then: Option<UnixMs>,
}

/// In the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulePage {
    pub schedules: Vec<Schedule>,
    /// The name after which to go on. Nothing: these were the last.
    pub next: Option<String>,
}

#[async_trait]
pub trait Schedules: Send + Sync + 'static {
    /// Keeps `next`, or nothing, in place of what was read as `before` ([`Kept::written`]); nothing there stands for
    /// none. It is looked at from its own [`Schedule::look_at`] on. Durable before it returns; the same call again says
    /// the same as long as nobody else comes in between.
    async fn write_schedule(
        &self,
        owner: &Owner,
        name: &str,
        before: Option<&str>,
        next: Option<&Schedule>,
    ) -> Result<Wrote, StoreError>;

    /// Sees all that was acknowledged before the call.
    async fn schedule(&self, owner: &Owner, name: &str) -> Result<Option<Kept>, StoreError>;

    /// Up to `limit` (at most [`MOST_LISTED`]) of those whose names come after `after`. What cannot be read is left
    /// out.
    async fn schedules(&self, owner: &Owner, after: Option<&str>, limit: u16) -> Result<SchedulePage, StoreError>;

    /// Up to `limit` (at most [`MOST_DUE`]) that have to be looked at by `now`, each to one caller: others are given it
    /// from `again` on, unless it was written meanwhile. That saves work and proves nothing; a reply that is lost costs
    /// the wait.
    async fn take_due(&self, now: UnixMs, again: UnixMs, limit: u16) -> Result<Taken, StoreError>;
}
