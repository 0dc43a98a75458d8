//! Broadcasts: one message to an audience of many, whose rows are walked in their order.
//!
//! A row is accepted first and the place moved on afterwards. What is accepted twice, because whoever walked died in
//! between, the file was given again, or somebody started once more, is recognised: its id comes from the broadcast and
//! the row's own id. So the place may be late and is never early.
//!
//! Everything here is a pure function from one state of a broadcast to the next, whose `rev` is one higher: a store writes
//! it where the state that it was decided on still stands.

mod local;
mod rate;
mod upload;
mod walk;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::key::BroadcastId;
use crate::lane::named_enum;
use crate::time::UnixMs;

pub use local::LocalSend;
pub use rate::{Allowance, NoRate, Rate};
pub use upload::{Leftover, MOST_CHUNKS, MOST_LEFTOVERS, RESERVED, Upload};
pub use walk::Walked;

/// A broadcast that nobody has touched for so long is aborted, and its audience forgotten.
pub const LEFT_ALONE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Most rows that are told of, of those that could not be read and of those that were refused.
pub const MOST_TOLD: usize = 20;

named_enum!(
    /// Why a broadcast does not go on.
    Halt {
        /// A person said so.
        Asked = "asked",
        /// The first rows are out, and somebody is to look at what became of them.
        Canary = "canary",
        /// The store has lost rows of its audience.
        RowsLost = "rows_lost",
        /// Nobody has touched it for very long.
        LeftAlone = "left_alone",
    }
);

/// Where a broadcast is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", content = "why", rename_all = "snake_case")]
pub enum State {
    /// It has no audience yet.
    Draft,
    /// It has one, and waits for somebody to start it.
    Ready,
    /// Its rows are walked.
    Running,
    Paused(Halt),
    /// All rows were walked. What was accepted goes its own way.
    Done,
    Aborted(Halt),
}

impl State {
    /// Every name there is.
    pub const NAMES: &'static [&'static str] = &["draft", "ready", "running", "paused", "done", "aborted"];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Paused(_) => "paused",
            Self::Done => "done",
            Self::Aborted(_) => "aborted",
        }
    }

    #[must_use]
    pub const fn halt(self) -> Option<Halt> {
        match self {
            Self::Paused(why) | Self::Aborted(why) => Some(why),
            Self::Draft | Self::Ready | Self::Running | Self::Done => None,
        }
    }
}

/// What somebody asked for that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It has no audience yet.
    NoAudience,
    /// Its audience is being uploaded.
    Uploading,
    /// Another upload has begun since.
    Overtaken,
    /// Not while it runs: pause it first.
    Running,
    /// It does not run.
    NotRunning,
    /// It is over.
    Over,
    /// Too many earlier uploads are still being cleared away; soon there is room.
    Clearing,
    /// The audience is larger than one may be.
    TooLarge,
}

/// How it is to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// After so many rows it pauses by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// No row is walked before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<UnixMs>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<LocalSend>,
}

/// A place among the rows: those before it were walked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cursor {
    pub chunk: u32,
    /// Within the chunk.
    pub row: u32,
}

/// The rows that are walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audience {
    /// Number of the upload that they came with.
    pub upload: u32,
    pub chunks: u32,
    pub rows: u64,
    /// Rows of the file that could not be read, and are in no chunk.
    pub bad: u64,
}

/// What became of rows. Each that was walked is in exactly one of `accepted`, `repeats`, `differing` and `refused`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub walked: u64,
    /// New notifications.
    pub accepted: u64,
    /// Of those, due at a later time of their own.
    pub scheduled: u64,
    /// Of those, with nothing that may be sent.
    pub suppressed: u64,
    /// Recognised: accepted before.
    pub repeats: u64,
    /// Accepted before with other content: nothing was sent again.
    pub differing: u64,
    /// Could not be accepted.
    pub refused: u64,
}

/// What is wrong with a row; never a value of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowProblem {
    /// Of the file, counted from 1.
    pub line: u64,
    /// The column, or a JSON pointer into the row.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    pub wrong: String,
}

/// Who walks it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walker {
    pub node: String,
    /// Grows with everybody who takes it over.
    pub fence: u64,
}

/// Since when it runs without a break, and how far it was then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    pub since: UnixMs,
    pub walked: u64,
}

/// One broadcast, but for what it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broadcast {
    pub id: BroadcastId,
    pub tenant: String,
    pub environment: String,
    pub name: String,
    pub class: String,
    /// Public name of the API key that asked for it.
    pub by: String,
    pub created_at: UnixMs,
    /// One higher with every write.
    pub rev: u64,
    pub state: State,
    pub plan: Plan,
    /// The latest word or upload of a person.
    pub touched_at: UnixMs,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<UnixMs>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Audience>,
    /// The upload that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<Upload>,
    /// How many uploads have begun: the number of the latest.
    pub uploads: u32,
    /// Chunks that nobody needs any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<Leftover>,
    pub cursor: Cursor,
    /// Somebody has looked at the first rows and let it go on.
    pub canary_over: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walker: Option<Walker>,
    /// Of the latest walker, so that it only grows.
    pub fence: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stretch: Option<Stretch>,
    pub counts: Counts,
    /// Some of the rows that could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bad: Vec<RowProblem>,
    /// Some of the rows that were refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RowProblem>,
}

/// What a new broadcast is made of.
#[derive(Clone, Debug)]
pub struct NewBroadcast {
    pub id: BroadcastId,
    pub tenant: String,
    pub environment: String,
    pub name: String,
    pub class: String,
    pub by: String,
    pub plan: Plan,
}

impl Broadcast {
    #[must_use]
    pub fn new(new: NewBroadcast, now: UnixMs) -> Self {
        let NewBroadcast { id, tenant, environment, name, class, by, plan } = new;
        Self {
            id,
            tenant,
            environment,
            name,
            class,
            by,
            created_at: now,
            rev: 1,
            state: State::Draft,
            plan,
            touched_at: now,
            ended_at: None,
            audience: None,
            upload: None,
            uploads: 0,
            leftovers: Vec::new(),
            cursor: Cursor::default(),
            canary_over: false,
            walker: None,
            fence: 0,
            stretch: None,
            counts: Counts::default(),
            bad: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Whether somebody has to look after it: rows are walked, wait, or are to be cleared away.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.audience.is_some() || self.upload.is_some() || !self.leftovers.is_empty()
    }

    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Done | State::Aborted(_))
    }

    /// Rows that are still to be walked.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.audience.map_or(0, |audience| audience.rows.saturating_sub(self.counts.walked))
    }

    /// When it will be through, at the speed of this stretch.
    #[must_use]
    pub fn estimated_end(&self, now: UnixMs) -> Option<UnixMs> {
        let stretch = self.stretch.filter(|_| self.state == State::Running)?;
        let walked = u128::from(self.counts.walked.saturating_sub(stretch.walked));
        let took = now.since(stretch.since).as_millis();
        let left = (u128::from(self.left()) * took).checked_div(walked)?;
        Some(now.plus(Duration::from_millis(u64::try_from(left).ok()?)))
    }

    /// Starts it, or lets it go on. Of one that runs, or is through, nothing changes.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn start(&self, now: UnixMs) -> Result<Self, Refused> {
        match self.state {
            State::Running | State::Done => return Ok(self.clone()),
            State::Aborted(_) => return Err(Refused::Over),
            State::Draft | State::Ready | State::Paused(_) => {}
        }
        if self.upload.is_some() {
            return Err(Refused::Uploading);
        }
        if self.audience.is_none() {
            return Err(Refused::NoAudience);
        }
        let since = self.plan.starts_at.map_or(now, |at| at.max(now));
        Ok(Self {
            state: State::Running,
            touched_at: now,
            canary_over: self.canary_over || self.state == State::Paused(Halt::Canary),
            walker: None,
            stretch: Some(Stretch { since, walked: self.counts.walked }),
            ..self.next()
        })
    }

    /// Stops it before the next rows. Of one that is paused nothing changes.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn pause(&self, now: UnixMs) -> Result<Self, Refused> {
        match self.state {
            State::Running => Ok(Self { touched_at: now, ..self.halted(Halt::Asked) }),
            State::Paused(_) => Ok(self.clone()),
            State::Draft | State::Ready => Err(Refused::NotRunning),
            State::Done | State::Aborted(_) => Err(Refused::Over),
        }
    }

    /// Ends it for good: no further row is walked, and its audience is forgotten. Of one that is aborted nothing changes.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn abort(&self, why: Halt, now: UnixMs) -> Result<Self, Refused> {
        match self.state {
            State::Aborted(_) => Ok(self.clone()),
            State::Done => Err(Refused::Over),
            State::Draft | State::Ready | State::Running | State::Paused(_) => {
                Ok(Self { touched_at: now, ..self.ended(State::Aborted(why), now) })
            }
        }
    }

    /// Whether nobody has touched it for so long that it is to be aborted.
    #[must_use]
    pub fn is_left_alone(&self, now: UnixMs) -> bool {
        let waits = matches!(self.state, State::Draft | State::Ready | State::Paused(_));
        waits && now.since(self.touched_at) >= LEFT_ALONE
    }

    fn next(&self) -> Self {
        Self { rev: self.rev + 1, ..self.clone() }
    }

    fn halted(&self, why: Halt) -> Self {
        Self { state: State::Paused(why), walker: None, stretch: None, ..self.next() }
    }

    fn ended(&self, state: State, now: UnixMs) -> Self {
        let mut next = Self { state, walker: None, stretch: None, ended_at: Some(now), ..self.next() };
        next.leave_audience();
        next.leave_upload();
        next
    }
}
