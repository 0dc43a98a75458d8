//! Pauses as operators and tenants ask for them: read and checked, kept, and told with what each of them holds.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use belfry_domain::pause::{KINDS, Pause, Paused};
use belfry_domain::subject::Subject;
use belfry_domain::{ChannelKind, Delivery, Notification, UnixMs};
use tokio::sync::Mutex;

use super::accept::PolicyNow;
use super::fields::{FieldProblem, Object, Problems, line};
use super::json::{Node, Value};
use super::registrar::Put;

use crate::facts::{Fact, FactSink, PauseNews};
use crate::ports::StoreError;
use crate::ports::clock::{Boot, Clock};
use crate::ports::deliveries::MOST_ITEMS;
use crate::ports::pauses::{Board, KeptPause, MOST_PAUSES, PauseId, PausePut, Seen};
use crate::ports::policy::{OUTBOX, Policy};

pub const MEMBERS: &[&str] = &["what", "name", "tenant", "until", "forced", "why"];
/// Longest reason, in characters.
pub const MOST_WHY: usize = 200;
/// Pauses that a tenant's own keys may set.
const MOST_OF_TENANT: usize = 16;
/// So many of [`MOST_PAUSES`] are for operators' keys alone.
const KEPT_FREE: usize = 64;
const MOST_NAME: usize = 255;
const MOST_TENANT: usize = 64;
/// A pause that is meant for longer has no end.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// So many waiting deliveries are looked at for one list, in so long a time: beyond that counts are lower bounds.
pub const MOST_COUNTED: usize = 10_000;
const COUNTING: Duration = Duration::from_millis(800);

/// Where pauses are set and lifted by hand.
pub struct Pausing {
    board: Arc<Board>,
    clock: Arc<dyn Clock>,
    facts: Arc<dyn FactSink>,
    policy: PolicyNow,
    /// Of who sets a tenant's.
    turn: Mutex<()>,
}

/// A pause and what waits behind it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    pub kept: KeptPause,
    /// Deliveries that are due and that it holds.
    pub held: u64,
    /// It was not all looked at: there may be more.
    pub at_least: bool,
}

/// The pauses that this node goes by, and which classes only a forced one holds.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    seen: Arc<Seen>,
    exempt: BTreeSet<String>,
}

impl Standing {
    /// Those that are not over.
    pub fn at(&self, now: UnixMs) -> impl Iterator<Item = &KeptPause> {
        self.seen.kept().iter().filter(move |one| !one.pause.is_over(now))
    }

    /// The pause that it waits for, of several the oldest. Without its notification those of templates and groups are
    /// not seen.
    #[must_use]
    pub fn holding(&self, it: &Delivery, of: Option<&Notification>, now: UnixMs) -> Option<&KeptPause> {
        if self.seen.kept().is_empty() || !it.waits_for_pause(now) {
            return None;
        }
        let (subject, exempt) = (subject_of(it, of), self.exempt.contains(&it.class));
        self.seen.kept().iter().filter(|one| one.pause.holds(&subject, exempt, now)).min_by_key(|one| one.pause.since)
    }
}

fn subject_of<'a>(it: &'a Delivery, of: Option<&'a Notification>) -> Subject<'a> {
    Subject {
        tenant: &it.tenant,
        template: of.and_then(|of| of.template.as_ref()).map(|template| template.name.as_str()),
        group: of.and_then(|of| of.group.as_deref()),
        ..Subject::of_any(&it.class, it.channel, &it.lane.provider)
    }
}

fn exempt_of(policy: &Policy) -> BTreeSet<String> {
    let exempt = policy.rules.iter().filter(|(_, rules)| rules.pause_exempt);
    exempt.map(|(name, _)| name.clone()).collect()
}

impl Pausing {
    #[must_use]
    pub fn new(board: Arc<Board>, clock: Arc<dyn Clock>, facts: Arc<dyn FactSink>, policy: PolicyNow) -> Self {
        Self { board, clock, facts, policy, turn: Mutex::default() }
    }

    /// Reads a pause. `own`: the one tenant whose messages may be held; `by`: who says so.
    ///
    /// # Errors
    /// Every bad field.
    pub fn read(&self, node: &Node<'_>, own: Option<&str>, by: &str) -> Result<KeptPause, Vec<FieldProblem>> {
        let mut problems = Problems::default();
        let Some(object) = Object::open(node, "", MEMBERS, &mut problems) else { return Err(problems.all()) };
        let (policy, since) = ((self.policy)(), self.clock.now());
        let forced = forced(&object, &mut problems);
        let paused = paused(&object, (&policy, forced), &mut problems);
        let tenant = tenant(&object, own, &mut problems);
        let until = object.instant("until", &mut problems);
        if until.is_some_and(|until| until <= since || until > since.plus(LONGEST)) {
            problems.add("/until", "must lie ahead, by a year at most; left out, it stands until it is lifted");
        }
        let why = object.text("why", line(MOST_WHY), &mut problems);
        match paused {
            Some(paused) if problems.is_empty() => {
                let pause = Pause { paused, tenant, since, until, forced };
                Ok(KeptPause { pause, by: by.to_owned(), why })
            }
            _ => Err(problems.all()),
        }
    }

    /// Keeps a pause; on this node it is in force when this returns. `None`: there is no room for it.
    ///
    /// # Errors
    /// [`StoreError`]: the same call again finishes it. So for every verb here.
    pub async fn put(&self, new: KeptPause, own: Option<&str>) -> Result<Option<Put<KeptPause>>, StoreError> {
        // Two that come at once must not both find the last place.
        let _turn = match own {
            Some(_) => Some(self.turn.lock().await),
            None => None,
        };
        if own.is_some() && !has_room(&self.board.store().pauses().await?, &new, own) {
            return Ok(None);
        }
        let put = self.board.store().pause(&new).await?;
        let PausePut::Kept { pause, is_new } = put else { return Ok(None) };
        self.facts.record(&Fact::Pause { pause: (*pause).clone().into(), news: PauseNews::Set { by: new.by } });
        self.board.look().await?;
        Ok(Some(Put { now: *pause, is_new }))
    }

    /// Lifts a pause, where there is one that `own` reaches.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub async fn lift(&self, id: PauseId, own: Option<&str>, by: &str) -> Result<(), StoreError> {
        let found = self.board.store().pauses().await?.into_iter().find(|one| one.id() == id);
        if found.is_some_and(|one| reaches(own, &one))
            && let Some(lifted) = self.board.store().resume(id).await?
        {
            self.facts.record(&Fact::Pause { pause: lifted.into(), news: PauseNews::Lifted { by: by.to_owned() } });
        }
        self.board.look().await
    }

    /// The pauses that `own` reaches, the oldest first, with what each holds.
    ///
    /// # Errors
    /// As [`Self::put`]. Where the store goes away while it is counted, counts are lower bounds.
    pub async fn listed(&self, own: Option<&str>) -> Result<Vec<Counted>, StoreError> {
        self.board.look().await?;
        let (standing, now) = (self.standing(), self.clock.now());
        let kept = standing.at(now).filter(|one| reaches(own, one)).cloned();
        let mut all: Vec<Counted> = kept.map(|kept| Counted { kept, held: 0, at_least: false }).collect();
        all.sort_by_key(|one| (one.kept.pause.since, one.kept.id()));
        if !all.is_empty() && !self.count(&mut all, &standing.exempt).await {
            all.iter_mut().for_each(|one| one.at_least = true);
        }
        Ok(all)
    }

    /// Whether all was looked at.
    async fn count(&self, all: &mut [Counted], exempt: &BTreeSet<String>) -> bool {
        let until = self.clock.boot() + COUNTING;
        let whole = all.iter().any(|one| matches!(one.kept.pause.paused, Paused::Template(_) | Paused::Group(_)));
        let (mut after, mut looked) = (None, 0);
        while looked < MOST_COUNTED {
            let Some(page) = self.page(after.as_deref(), whole, until).await else { return false };
            looked += page.waiting.len();
            let now = self.clock.now();
            for (it, of) in page.waiting.iter().filter(|(it, _)| it.waits_for_pause(now)) {
                let (subject, exempt) = (subject_of(it, of.as_ref()), exempt.contains(&it.class));
                let held = all.iter_mut().filter(|one| one.kept.pause.holds(&subject, exempt, now));
                held.for_each(|one| one.held += 1);
            }
            after = page.next;
            if after.is_none() {
                return true;
            }
        }
        false
    }

    async fn page(&self, after: Option<&str>, whole: bool, until: Boot) -> Option<crate::ports::pauses::WaitingPage> {
        let limit = u16::try_from(MOST_ITEMS).unwrap_or(u16::MAX);
        tokio::select! {
            biased;
            () = self.clock.sleep_until(until) => None,
            page = self.board.store().waiting(after, limit, whole) => page.ok(),
        }
    }

    /// What this node goes by.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let seen = self.board.seen().unwrap_or_default();
        let exempt = if seen.kept().is_empty() { BTreeSet::new() } else { exempt_of(&(self.policy)()) };
        Standing { seen, exempt }
    }

    /// The classes that a pause lets through although it is of all classes.
    #[must_use]
    pub fn lets_through(&self, pause: &Pause) -> Vec<String> {
        let of_classes = matches!(pause.paused, Paused::Class(_));
        if pause.forced || of_classes { Vec::new() } else { exempt_of(&(self.policy)()).into_iter().collect() }
    }
}

fn reaches(own: Option<&str>, pause: &KeptPause) -> bool {
    own.is_none_or(|own| pause.pause.tenant.as_deref() == Some(own))
}

/// Tenants must not use up what the operator may need at once.
fn has_room(all: &[KeptPause], new: &KeptPause, own: Option<&str>) -> bool {
    let theirs = all.iter().filter(|one| reaches(own, one)).count();
    all.iter().any(|one| one.id() == new.id()) || theirs < MOST_OF_TENANT && all.len() + KEPT_FREE < MOST_PAUSES
}

/// Why there is no room for one more.
#[must_use]
pub fn too_many() -> String {
    format!(
        "There are as many pauses already as there may be: {MOST_PAUSES}, and {MOST_OF_TENANT} that a tenant's own keys \
         set. Lift some, or pause something larger."
    )
}

/// What is paused, in words. A group is the caller's own word: left out where anybody may read them.
#[must_use]
pub fn in_words(paused: &Paused, groups: bool) -> String {
    match paused {
        Paused::All => "everything".into(),
        Paused::Group(_) if !groups => "a group".into(),
        Paused::Channel(_) | Paused::Provider(_) | Paused::Class(_) | Paused::Template(_) | Paused::Group(_) => {
            format!("the {} {}", paused.what(), paused.name().unwrap_or_default())
        }
    }
}

fn forced(object: &Object<'_, '_>, problems: &mut Problems) -> bool {
    match object.get("forced").map(|node| &node.value) {
        None => false,
        Some(Value::Bool(forced)) => *forced,
        Some(_) => {
            problems.add("/forced", "must be true or false");
            false
        }
    }
}

/// What is to be paused. A name that nothing has is refused, so that nobody believes to have stopped something.
fn paused(object: &Object<'_, '_>, (policy, forced): (&Policy, bool), problems: &mut Problems) -> Option<Paused> {
    if !object.has("what") {
        problems.add("/what", format!("is required: {}", KINDS.join(", ")));
    }
    let what = object.text("what", line(16), problems);
    let name = object.text("name", line(MOST_NAME), problems);
    let kind = what.as_deref().and_then(|what| KINDS.iter().copied().find(|kind| *kind == what));
    if what.is_some() && kind.is_none() {
        problems.add("/what", format!("must be one of {}", KINDS.join(", ")));
    }
    let kind = kind?;
    if kind == "all" {
        if object.has("name") {
            problems.add("/name", "must be left out where all is paused");
        }
        return Some(Paused::All);
    }
    if !object.has("name") {
        problems.add("/name", format!("is required: which {kind}"));
    }
    let name = name?;
    let wrong = wrong_name(kind, &name, (policy, forced));
    wrong.into_iter().for_each(|wrong| problems.add("/name", wrong));
    match kind {
        "channel" => name.parse().ok().map(Paused::Channel),
        "provider" => Some(Paused::Provider(name)),
        "class" => Some(Paused::Class(name)),
        "template" => Some(Paused::Template(name)),
        _ => Some(Paused::Group(name)),
    }
}

fn wrong_name(kind: &str, name: &str, (policy, forced): (&Policy, bool)) -> Option<String> {
    let unknown = |what: &str, known: Vec<&str>| Some(format!("is not a {what}; there are {}", known.join(", ")));
    match kind {
        "channel" if name.parse::<ChannelKind>().is_err() => {
            unknown("channel", ChannelKind::ALL.iter().map(|one| one.name()).collect())
        }
        "provider" if name != OUTBOX && !policy.providers.contains_key(name) => {
            unknown("configured provider", policy.providers.keys().map(String::as_str).collect())
        }
        // One that is not there yet may be paused; what can never be a template's name is somebody's own text, which
        // would stand where anybody may read it.
        "template" if !name.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || b"_-".contains(&it)) => {
            Some("is no template's name: lowercase letters, digits, `_` and `-`".into())
        }
        "class" if !policy.classes.contains_key(name) => {
            unknown("configured class", policy.classes.keys().map(String::as_str).collect())
        }
        "class" if !forced && policy.rules_of(name).pause_exempt => {
            Some("is a class that pauses let through: only a forced one holds it".into())
        }
        _ => None,
    }
}

/// A tenant's key pauses what is its tenant's.
fn tenant(object: &Object<'_, '_>, own: Option<&str>, problems: &mut Problems) -> Option<String> {
    let named = object.text("tenant", line(MOST_TENANT), problems);
    let fits = |name: &str| name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'));
    match (own, named) {
        (Some(own), Some(named)) if named != own => {
            problems.add("/tenant", "must be the tenant of the key that asks: another one takes the operator's key");
            None
        }
        (Some(own), _) => Some(own.to_owned()),
        (None, Some(named)) if !fits(&named) => {
            problems.add("/tenant", "must be a tenant's name: lower-case letters, digits, \"-\" and \"_\"");
            None
        }
        (None, named) => named,
    }
}
