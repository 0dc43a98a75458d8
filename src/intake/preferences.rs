//! What recipients want: read and checked as in a request, kept, and worked out for every category there is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use belfry_domain::admission::Rules;
use belfry_domain::preferences::{Preferences, Switches};
use belfry_domain::{ChannelKind, UnixMs};

use super::accept::PolicyNow;
use super::fields::{FieldProblem, Object, Problems, line};
use super::json::{Node, Value};
use super::registrar::Put;
use crate::ports::StoreError;
use crate::ports::clock::Clock;
use crate::ports::deliveries::Owner;
use crate::ports::locale::{NO_TAG, is_tag};
use crate::ports::policy::Policy;
use crate::ports::preferences::{Person, PreferenceBook, Wishes};

pub const MEMBERS: &[&str] = &["every", "categories"];
/// `push` is all three kinds of devices.
pub const SWITCHES: &[&str] = &["all", "push", "email", "apns", "fcm", "web_push", "sms", "webhook", "chat", "inbox"];
/// How often it is written over what was read, where others write at the same time.
const MOST_TRIES: usize = 16;

pub const LINK_MEMBERS: &[&str] = &["locale", "until"];
/// How long a link to a recipient's page is good where nothing is said.
pub const LINK_LASTS: Duration = Duration::from_secs(24 * 3600);
/// At most.
const LONGEST_LINK: Duration = Duration::from_secs(180 * 24 * 3600);

/// What it comes to for one category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    pub category: String,
    /// It cannot be turned off.
    pub required: bool,
    /// By each channel that messages of the category may go out on unasked.
    pub channels: BTreeMap<ChannelKind, bool>,
}

/// Where recipients' wishes are kept and looked up.
pub struct PreferenceDesk {
    book: Arc<dyn PreferenceBook>,
    clock: Arc<dyn Clock>,
    policy: PolicyNow,
}

impl PreferenceDesk {
    #[must_use]
    pub fn new(book: Arc<dyn PreferenceBook>, clock: Arc<dyn Clock>, policy: PolicyNow) -> Self {
        Self { book, clock, policy }
    }

    /// Reads what somebody is to want from now on.
    ///
    /// # Errors
    /// Every bad field.
    pub fn read(&self, node: &Node<'_>) -> Result<Preferences, Vec<FieldProblem>> {
        read(node, &(self.policy)())
    }

    /// What is kept of a recipient; nothing of one who said nothing.
    ///
    /// # Errors
    /// [`StoreError`]; so for every verb here: the same call again finishes it.
    pub async fn of(&self, owner: &Owner, recipient: &str) -> Result<Option<Wishes>, StoreError> {
        self.kept(&person(owner, recipient)).await
    }

    async fn kept(&self, whom: &Person) -> Result<Option<Wishes>, StoreError> {
        self.book.preferences(vec![whom.clone()]).await.pop().unwrap_or(Ok(None))
    }

    /// Keeps what `change` makes of what is kept; the same as before changes nothing. `by`: who says so.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub async fn change(
        &self,
        (owner, recipient): (&Owner, &str),
        by: &str,
        change: impl Fn(Preferences) -> Preferences + Send + Sync,
    ) -> Result<Put<Wishes>, StoreError> {
        let whom = person(owner, recipient);
        for _ in 0..MOST_TRIES {
            let before = self.kept(&whom).await?;
            let wanted = before.as_ref().map(|kept| kept.preferences.clone()).unwrap_or_default();
            let preferences = change(wanted);
            let is_new = before.is_none();
            let next = match &before {
                Some(kept) if kept.preferences == preferences => kept.clone(),
                _ => Wishes { preferences, changed_at: self.clock.now(), by: by.to_owned() },
            };
            if self.book.write(&whom, before.as_ref(), Some(&next)).await? {
                return Ok(Put { now: next, is_new });
            }
        }
        Err(many_at_once())
    }

    /// Forgets what a recipient wants.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub async fn forget(&self, owner: &Owner, recipient: &str) -> Result<(), StoreError> {
        let whom = person(owner, recipient);
        for _ in 0..MOST_TRIES {
            let before = self.kept(&whom).await?;
            if self.book.write(&whom, before.as_ref(), None).await? {
                return Ok(());
            }
        }
        Err(many_at_once())
    }

    /// What `preferences` come to, by each category that is configured.
    #[must_use]
    pub fn effective(&self, preferences: &Preferences) -> Vec<Effective> {
        effective(preferences, &(self.policy)())
    }
}

/// Reads what a link to a recipient's page is to be like: its language, and until when it is good.
///
/// # Errors
/// Every bad field.
pub fn read_link(node: &Node<'_>, now: UnixMs) -> Result<(Option<String>, Option<UnixMs>), Vec<FieldProblem>> {
    let mut problems = Problems::default();
    let Some(object) = Object::open(node, "", LINK_MEMBERS, &mut problems) else { return Err(problems.all()) };
    let locale = object.text("locale", line(35), &mut problems);
    if locale.as_deref().is_some_and(|tag| !is_tag(tag)) {
        problems.add("/locale", NO_TAG);
    }
    let until = object.instant("until", &mut problems);
    if until.is_some_and(|until| until <= now || until > now.plus(LONGEST_LINK)) {
        problems.add("/until", "must lie between now and 180 days from now");
    }
    if problems.is_empty() { Ok((locale, until)) } else { Err(problems.all()) }
}

fn many_at_once() -> StoreError {
    StoreError::Unavailable("too many are changing these preferences at once".into())
}

fn person(owner: &Owner, recipient: &str) -> Person {
    Person { owner: owner.clone(), recipient: recipient.to_owned() }
}

fn effective(preferences: &Preferences, policy: &Policy) -> Vec<Effective> {
    let of = |class: &belfry_domain::Class| {
        let Rules { defaults, .. } = policy.rules_of(&class.name);
        let wanted = |channel: &ChannelKind| class.required || preferences.wants(&class.name, *channel, defaults);
        let channels = class.channels.iter().map(|channel| (*channel, wanted(channel))).collect();
        Effective { category: class.name.clone(), required: class.required, channels }
    };
    policy.classes.values().map(of).collect()
}

fn read(node: &Node<'_>, policy: &Policy) -> Result<Preferences, Vec<FieldProblem>> {
    let mut problems = Problems::default();
    let Some(object) = Object::open(node, "", MEMBERS, &mut problems) else { return Err(problems.all()) };
    let every = object.get("every").and_then(|node| switches(node, "/every", &mut problems)).unwrap_or_default();
    let mut categories = BTreeMap::new();
    let members = object.get("categories").and_then(|node| Object::any(node, "/categories", &mut problems));
    for (name, node) in members.iter().flat_map(Object::members) {
        let pointer = super::json::child("/categories", name);
        if !policy.classes.contains_key(name) {
            let known: Vec<_> = policy.classes.keys().map(String::as_str).collect();
            problems.add(&pointer, format!("is not a configured class; configured are {}", known.join(", ")));
            continue;
        }
        if let Some(said) = switches(node, &pointer, &mut problems) {
            categories.insert(name.to_owned(), said);
        }
    }
    let preferences = Preferences { every, categories };
    for name in preferences.refused(policy.classes.values()) {
        let problem = "is a class that cannot be turned off: leave it out, or say true";
        problems.add(super::json::child("/categories", name), problem);
    }
    if problems.is_empty() { Ok(preferences) } else { Err(problems.all()) }
}

fn switches(node: &Node<'_>, pointer: &str, problems: &mut Problems) -> Option<Switches> {
    let object = Object::open(node, pointer, SWITCHES, problems)?;
    let mut said = Switches::default();
    // `push` first: what is said of one kind of device is the more exact word.
    let in_order = SWITCHES.iter().filter_map(|name| Some((*name, object.get(name)?)));
    for (name, node) in in_order {
        let Value::Bool(on) = node.value else {
            problems.add(object.at(name), "must be true or false");
            continue;
        };
        match (name, name.parse()) {
            ("all", _) => said.all = Some(on),
            ("push", _) => said.channels.extend(ChannelKind::PUSH.map(|channel| (channel, on))),
            (_, Ok(channel)) => drop(said.channels.insert(channel, on)),
            // SWITCHES are names of channels.
            (_, Err(_)) => {}
        }
    }
    Some(said)
}
