//! What there is to tell: one enum, each member one log line and one metric. The only place that
//! logs and counts. Labels come from enums and configured names; never a recipient, an id or a
//! provider's words.

use std::net::SocketAddr;
use std::time::Duration;

use crate::ports::StoreError;
use crate::ports::certificate::CertificateEnd;
use crate::ports::channel::Service;
use crate::ports::deliveries::Depths;
use crate::ports::pauses::{KeptPause, PauseId};
use crate::ports::schedules::Schedule;
use crate::ports::store_news::StoreNews;
use belfry_domain::WhyCode;
use belfry_domain::breaker::OpenWhy;
use belfry_domain::device::TokenFault;
use belfry_domain::outcome::OutcomeKind;
use belfry_domain::pause::{Pause, Paused};
use belfry_domain::step::StepFact;
use belfry_domain::timeline::Hop;
use belfry_domain::warm_up::WarmDay;
use belfry_domain::{ChannelKind, DeliveryId, NotificationId, Pace, UnixMs};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A new intent is durable.
    IntentAccepted {
        notification: NotificationId,
        class: String,
        deliveries: usize,
    },
    /// A digest is durable. `part`: of its slot, from 0.
    DigestMade {
        notification: NotificationId,
        class: String,
        items: usize,
        part: u32,
    },
    /// A repeat was recognised; `age` since the first copy, `window` how long it would have been.
    RepeatCaught {
        notification: NotificationId,
        hop: Hop,
        age: Duration,
        window: Duration,
    },
    /// The same key came with another body.
    FingerprintMismatch {
        notification: NotificationId,
        hop: Hop,
    },
    /// A step's own fact, after its write.
    Stepped {
        notification: NotificationId,
        delivery: DeliveryId,
        class: String,
        channel: ChannelKind,
        provider: String,
        fact: StepFact,
    },
    /// A settle was refused by the fence.
    SettleRefused {
        notification: NotificationId,
        delivery: DeliveryId,
        outcome: OutcomeKind,
    },
    /// A task panicked; its claim goes on by lapse.
    TaskPanicked {
        task: &'static str,
    },
    /// `service`: of the services behind the provider, the one that it is about. `cause`: the word that opened it.
    CircuitOpened {
        provider: String,
        service: Option<Service>,
        why: OpenWhy,
        cause: WhyCode,
    },
    CircuitClosed {
        provider: String,
        service: Option<Service>,
    },
    /// A provider's word that is about no one message.
    Provider {
        provider: String,
        news: ProviderNews,
    },
    /// How often all nodes together may call a provider from now on. `warming`: the day of its warm-up that slows it.
    Paced {
        provider: String,
        pace: Pace,
        warming: Option<WarmDay>,
    },
    /// So many parts of a provider's pace are this node's from now on.
    PaceShared {
        provider: String,
        parts: u32,
        of: u32,
    },
    /// A call was not made because a cap is full: its delivery waits, or ended suppressed.
    Capped {
        cap: String,
        suppressed: bool,
    },
    /// A recipient unsubscribed from a class, or came back.
    Unsubscribed {
        class: String,
        again: bool,
    },
    /// A store call failed; `verb` is the port's method.
    StoreUnavailable {
        verb: &'static str,
        why: StoreError,
    },
    StoreRecovered,
    /// What the store found out about itself.
    Store(StoreNews),
    /// A start found, or made, the hold of `at`: what was due by then is held.
    HeldAfterRestore {
        at: UnixMs,
        /// This start was to hold, and an earlier hold stood already: that one counts.
        kept: bool,
    },
    /// Somebody let go of what the hold of `at` kept. `by`: public name of the key.
    HoldReleased {
        by: String,
        at: UnixMs,
    },
    /// Somebody cancelled a page of what a filter found, in deliveries.
    ManyCancelled {
        by: String,
        cancelled: u32,
        in_flight: u32,
    },
    /// Somebody cancelled some of what the hold of `at` keeps.
    HeldCancelled {
        by: String,
        at: UnixMs,
        cancelled: u64,
    },
    /// What became of a pause.
    Pause {
        pause: PauseOf,
        news: PauseNews,
    },
    /// What became of a schedule.
    Schedule {
        of: ScheduleOf,
        news: ScheduleNews,
    },
    /// So many schedules were due and could not be read.
    SchedulesUnreadable {
        count: u32,
    },
    /// So many pauses stand, as this node read them.
    PausesStand {
        count: usize,
    },
    /// The lanes as they stand.
    Measured {
        depths: Depths,
        at: UnixMs,
    },
    Purged {
        contents: u32,
        records: u32,
        tombstones: u32,
    },
    /// The server answers requests.
    Started(Box<Start>),
    /// Somebody asked the server to end.
    EndAsked {
        /// `SIGTERM` or `SIGINT`.
        signal: &'static str,
    },
    /// It takes no more requests and claims; `calls` to providers are still open.
    Draining {
        calls: usize,
        grace: Duration,
    },
    /// Everything is written down and the store let go of. `broken_off`: calls still open when the
    /// grace ran out.
    Stopped {
        took: Duration,
        broken_off: usize,
    },
    Reloaded,
    /// The configuration says something that holds together and is probably not meant; told at each start and reload.
    ConfigNoted {
        key: String,
        what: String,
    },
    ReloadRefused {
        problem: String,
    },
    HttpAnswered {
        route: &'static str,
        method: &'static str,
        status: u16,
        took: Duration,
    },
}

/// What is heard of a provider beside outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderNews {
    /// A token is dead or wrong. `stored`: of a stored device, whose standing changed.
    TokenRefused { fault: TokenFault, stored: bool },
    /// Most tokens are refused: so many that were put aside of late for the like are live again.
    TokensSpared { tokens: usize },
    /// A bounce suppresses nobody: most mailboxes are said not to exist, or its address has as many suppressions as
    /// there may be.
    BounceNotKept { why: NotKept },
    /// Most mailboxes are said not to exist: so many suppressions that came of it of late are lifted.
    BouncesLifted { suppressions: usize },
    /// Messages are refused for a setting that only an operator can mend.
    SetupWrong { why: WhyCode },
    /// It asked for a wait that is longer than any that is honoured.
    WaitCut { asked: Duration },
    /// Until when the certificate is good that it knows us by; told at each start and reload.
    Certificate(CertificateEnd),
}

/// A pause as it is told: a group is the caller's own word, and may be anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseOf {
    pub id: PauseId,
    pub what: &'static str,
    /// Nothing of a group.
    pub name: Option<String>,
    pub tenant: Option<String>,
    pub until: Option<UnixMs>,
    pub forced: bool,
}

impl From<KeptPause> for PauseOf {
    fn from(kept: KeptPause) -> Self {
        let (id, Pause { paused, tenant, until, forced, .. }) = (kept.id(), kept.pause);
        let shown = !matches!(paused, Paused::Group(_));
        let name = paused.name().filter(|_| shown).map(str::to_owned);
        Self { id, what: paused.what(), name, tenant, until, forced }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PauseNews {
    /// Somebody paused it, or changed its pause. `by`: public name of the key.
    Set { by: String },
    /// Somebody lifted it.
    Lifted { by: String },
    /// Its end came.
    RanOut,
}

/// Which schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleOf {
    pub tenant: String,
    pub environment: String,
    pub name: String,
}

impl ScheduleOf {
    #[must_use]
    pub fn new(it: &Schedule) -> Self {
        Self { tenant: it.tenant.clone(), environment: it.environment.clone(), name: it.name.clone() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleNews {
    /// Somebody put it, or changed it. `by`: public name of the key.
    Set {
        by: String,
    },
    Paused {
        by: String,
    },
    Resumed {
        by: String,
    },
    Removed {
        by: String,
    },
    /// What it sends was accepted, so long after it was due.
    Sent {
        notification: NotificationId,
        late: Duration,
    },
    /// It was refused at these places of the notification.
    Refused {
        pointers: Vec<String>,
        late: Duration,
    },
    /// Slots were let go because no node was there. `and_older`: and more, which nobody counted.
    Missed {
        slots: u32,
        and_older: bool,
    },
    /// It has no slot any more.
    Over,
}

/// Why a bounce adds no suppression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotKept {
    Wave,
    Full,
}
impl NotKept {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wave => "wave",
            Self::Full => "full",
        }
    }
}
/// What a server runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    pub version: &'static str,
    pub listen: SocketAddr,
    /// `sqlite`, `redis`, or `memory`.
    pub store: &'static str,
    /// Its file, or its servers by host and port; empty of what is in memory.
    pub store_at: String,
    /// What an answer waits for: `fsync`, `ack`, `replicas:N`, or `none`.
    pub durability: String,
    /// `api,worker,scheduler`, or which of them this node has.
    pub roles: String,
    /// The configuration file, where one was given.
    pub config: Option<String>,
    /// By their configured names; empty: everything goes to the outbox.
    pub providers: Vec<String>,
    /// Where the first API key was left, where this start made one and left it.
    pub key_file: Option<String>,
}

/// Takes facts. One real implementation (log and metrics) and the simulation's.
pub trait FactSink: Send + Sync + 'static {
    fn record(&self, fact: &Fact);
}
