//! Reading a request for one notification. What comes out is checked, typed and resolved; nothing
//! later looks at the caller's JSON again. What does not come out names every bad field at once.

use std::collections::HashSet;
use std::time::Duration;

use belfry_domain::device::LeftOut;
use belfry_domain::notification::Collapse;
use belfry_domain::{ChannelKind, Class, UnixMs};
use serde_json::value::RawValue;

use super::address;
use super::canonical::canonical;
use super::channels;
use super::content_check::ContentCheck;
use super::fields::{FieldProblem, Object, Problems, line};
use super::gathering;
use super::inline::{self, Content};
use super::json::{Node, Value};
use super::links::{Linked, Linker};
use super::recipient::{self, Recipient};
use super::slot::place;
pub use super::slot::{Slot, of};
use super::stored::Asker;
use super::times;
use crate::content::inputs::{Inline, Inputs, Links, STORED, Source};
use crate::ports::policy::Policy;

pub const TOP: &[&str] = &[
    "class",
    "to",
    "template",
    "data",
    "content",
    "channels",
    "scope",
    "reference",
    "group",
    "unique",
    "collapse",
    "version",
    "digest",
    "send_at",
    "expires_at",
    "intent_at",
    "metadata",
];
/// Most deliveries of one notification.
pub const MOST_DELIVERIES: usize = 50;
/// Largest metadata, as canonical JSON.
pub const MOST_METADATA_BYTES: usize = 4096;
/// How far ahead `send_at` may lie.
pub const MOST_AHEAD: Duration = Duration::from_secs(90 * 24 * 3600);
/// Longest `scope`, `reference`, `group`, `unique` and `collapse`, in characters.
pub const MOST_NAME: usize = 255;

/// What a request is read against.
#[derive(Clone, Copy)]
pub struct Against<'a> {
    pub now: UnixMs,
    pub policy: &'a Policy,
    pub content: &'a dyn ContentCheck,
    pub asker: Asker<'a>,
    pub linker: &'a Linker,
}

impl Against<'_> {
    fn links(&self, class: &Class, inputs: &Inputs, slots: &[Slot]) -> Option<Links> {
        let spoken_of = self.content.speaks_of(inputs);
        let linked = Linked { caller: self.asker.caller, class, inputs, slots, spoken_of, now: self.now };
        self.linker.freeze(self.policy, linked)
    }
}

/// A request that can be planned.
#[derive(Debug)]
pub struct Submission {
    pub class: Class,
    pub inputs: Inputs,
    pub slots: Vec<Slot>,
    /// Stored devices that it would go to as well, were anything allowed to go there.
    pub left_out: Vec<LeftOut>,
    /// Per slot: hex SHA-256 of the message.
    pub content_hashes: Vec<String>,
    pub scope: Option<String>,
    pub reference: Option<String>,
    pub group: Option<String>,
    pub collapse: Option<Collapse>,
    pub digest: Option<String>,
    pub send_at: Option<UnixMs>,
    pub expires_at: Option<UnixMs>,
    pub metadata: Option<String>,
}

/// Why a request is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// It is right but for its age: whether it is new can no longer be known.
    pub too_old: bool,
    /// Nothing is wrong with it but what the clock or the configuration of now says: it may have
    /// been taken before, and is then a repeat like any other.
    pub passing: bool,
    pub errors: Vec<FieldProblem>,
}

/// The business key, where the request has one that can be read: class and `unique`.
#[must_use]
pub fn business_key<'n>(node: &'n Node<'_>) -> Option<(&'n str, &'n str)> {
    Some((node.member("class")?.text()?, node.member("unique")?.text()?))
}

/// Reads one request. `but` names a member that is not part of it (a batch item's `key`).
///
/// # Errors
/// Every bad field.
pub fn read(node: &Node<'_>, but: Option<&str>, against: Against<'_>) -> Result<Submission, Refusal> {
    let mut problems = Problems::default();
    let known: Vec<&str> = TOP.iter().copied().chain(but).collect();
    let Some(request) = Object::open(node, "", &known, &mut problems) else {
        return Err(refusal(problems, false, false));
    };
    let mut draft = Draft { request, against, problems };
    let class = draft.class();
    let gathers = class.as_ref().is_some_and(|class| against.policy.rules_of(&class.name).gather.is_some());
    let mut given = recipient::read(draft.request.get("to"), &mut draft.problems);
    let mut left_out = against.asker.stored.fill(&mut given);
    let Recipient { to, locale, time_zone } = given;
    let names_recipient = to.recipient.is_some();
    let (source, copies) = draft.source(locale.as_deref(), gathers);
    let to = crate::content::inputs::To { cc: copies.0, bcc: copies.1, ..to };
    let chosen = channels::choose(&draft.request, class.as_ref(), &to, &mut draft.problems);
    left_out.retain(|device| chosen.looked_at.contains(&device.kind));
    let slots = draft.slots(&chosen.channels, &to, source.as_ref());
    let names = ["scope", "reference", "group", "unique"];
    let [scope, reference, group, _] = names.map(|name| draft.request.text(name, line(MOST_NAME), &mut draft.problems));
    let collapse = draft.collapse();
    let digest = gathering::read(&draft.request, class.as_ref(), gathers, &mut draft.problems);
    let now = (against.now, time_zone.as_deref());
    let (send_at, expires_at) = times::read(&draft.request, now, &mut draft.problems);
    let metadata = draft.metadata();
    let too_old = draft.too_old(class.as_ref());
    let problems = &mut draft.problems;
    if let (Some(class), Some(source), true) = (class, source, problems.is_empty()) {
        let mut inputs = Inputs { to, source, locale, time_zone, links: None };
        inputs.links = against.links(&class, &inputs, &slots);
        let wanted: Vec<_> = slots.iter().map(|slot| (slot.channel, slot.name.clone())).collect();
        match against.content.render_hash(&inputs, &wanted) {
            Ok(content_hashes) => {
                return Ok(Submission {
                    class,
                    inputs,
                    slots,
                    left_out,
                    content_hashes,
                    scope,
                    reference,
                    group,
                    collapse,
                    digest,
                    send_at,
                    expires_at,
                    metadata,
                });
            }
            Err(found) if gathers => found.into_iter().map(gathering::own).for_each(|one| problems.add_passing(one)),
            Err(found) => found.into_iter().for_each(|one| problems.add_passing(one)),
        }
    }
    Err(refusal(draft.problems, too_old, names_recipient))
}

/// `stored`: what is wrong may be so because of what is stored of a recipient now.
fn refusal(problems: Problems, too_old: bool, stored: bool) -> Refusal {
    let passing = problems.lasting.is_empty();
    let too_old = too_old && passing && problems.passing.len() == 1;
    Refusal { too_old, passing: passing || stored, errors: problems.all() }
}

struct Draft<'n, 'a> {
    request: Object<'n, 'a>,
    against: Against<'n>,
    problems: Problems,
}

impl Draft<'_, '_> {
    fn class(&mut self) -> Option<Class> {
        if !self.request.has("class") {
            self.problems.add("/class", "is required");
        }
        let name = self.request.text("class", line(64), &mut self.problems)?;
        let class = self.against.policy.classes.get(&name).cloned();
        if class.is_none() {
            let known: Vec<_> = self.against.policy.classes.keys().map(String::as_str).collect();
            let detail = format!("is not a configured class; configured are {}", known.join(", "));
            self.problems.add_passing(FieldProblem::new("/class", detail));
        }
        class
    }

    /// What the message is made from, with its Cc and Bcc.
    fn source(
        &mut self,
        locale: Option<&str>,
        gathers: bool,
    ) -> (Option<Source>, (Vec<crate::ports::message::Mailbox>, Vec<crate::ports::message::Mailbox>)) {
        let none = (Vec::new(), Vec::new());
        match (self.request.has("template"), self.request.get("content")) {
            (true, Some(node)) => {
                let Content { inline, cc, bcc } = inline::read_envelope(node, &mut self.problems);
                (self.template(locale, Some(Box::new(inline)), gathers), (cc, bcc))
            }
            (false, None) => {
                self.problems.add("", "must have template or content");
                (None, none)
            }
            (true, None) => (self.template(locale, None, gathers), none),
            (false, Some(node)) => {
                if self.request.has("data") {
                    self.problems.add("/data", "belongs to template; content stands for itself");
                }
                let Content { inline, cc, bcc } = inline::read(node, &mut self.problems);
                (Some(Source::Inline(Box::new(inline))), (cc, bcc))
            }
        }
    }

    fn template(&mut self, locale: Option<&str>, envelope: Option<Box<Inline>>, gathers: bool) -> Option<Source> {
        let filling = match self.request.get("data") {
            None => Some("{}"),
            Some(node) if matches!(node.value, Value::Object(_)) => Some(node.raw),
            Some(_) => {
                self.problems.add("/data", "must be an object");
                None
            }
        };
        let name = self.request.text("template", line(128), &mut self.problems)?;
        match self.against.content.freeze(&name, locale) {
            Ok(template) => {
                let data = if gathers { gathering::item(filling?, self.against.now) } else { filling?.to_owned() };
                let data = RawValue::from_string(data).ok()?;
                Some(Source::Template { template, data, envelope })
            }
            Err(problem) => {
                self.problems.add_passing(problem);
                None
            }
        }
    }

    fn slots(
        &mut self,
        channels: &[ChannelKind],
        to: &crate::content::inputs::To,
        source: Option<&Source>,
    ) -> Vec<Slot> {
        let mut slots: Vec<Slot> = Vec::new();
        for &channel in channels {
            let found = to.slots(channel);
            slots.extend(found.into_iter().map(|(name, address)| Slot { channel, name, address }));
            if let Some(Source::Inline(content)) = source
                && let Some((pointer, detail)) = inline::missing(content, channel)
                && !self.problems.lasting.iter().any(|known| known.pointer == pointer)
            {
                self.problems.add(pointer, detail);
            }
        }
        if slots.len() > MOST_DELIVERIES {
            let detail = format!("must come to at most {MOST_DELIVERIES} deliveries, comes to {}", slots.len());
            self.problems.add("/to", detail);
        }
        self.served(to, &slots);
        self.once_each(slots)
    }

    /// One delivery for an address. That two stored devices have the same token is nothing that the caller can
    /// see or mend.
    fn once_each(&mut self, slots: Vec<Slot>) -> Vec<Slot> {
        let mut seen = HashSet::new();
        let mut kept = Vec::with_capacity(slots.len());
        for slot in slots {
            if seen.insert((slot.channel, address::normal(slot.channel, &slot.address.0))) {
                kept.push(slot);
            } else if !slot.name.starts_with(STORED) {
                self.problems.add(place(&slot), "is the same address as another of this notification");
            }
        }
        kept
    }

    /// A device given here has to be of an app that some provider serves. A stored one waits for a
    /// configuration that has one.
    fn served(&mut self, to: &crate::content::inputs::To, slots: &[Slot]) {
        let environment = &self.against.asker.caller.environment;
        for slot in slots {
            let Some(device) = to.device(&slot.name).filter(|device| device.id.is_none()) else { continue };
            let routed = self.against.policy.route(slot.channel, environment, &slot.address.0, of(device));
            if routed.is_err() {
                let detail =
                    format!("is of an app or environment that no provider of channels.{} serves", slot.channel);
                self.problems.add_passing(FieldProblem::new(place(slot), detail));
            }
        }
    }

    fn collapse(&mut self) -> Option<Collapse> {
        let version = self.request.integer("version", &mut self.problems);
        let key = self.request.text("collapse", line(MOST_NAME), &mut self.problems);
        if self.request.has("version") && !self.request.has("collapse") {
            self.problems.add("/version", "stands only beside collapse");
        }
        key.map(|key| Collapse { key, version })
    }

    fn metadata(&mut self) -> Option<String> {
        let node = self.request.get("metadata")?;
        if !matches!(node.value, Value::Object(_)) {
            self.problems.add("/metadata", "must be an object");
            return None;
        }
        let text = canonical(node);
        if text.len() > MOST_METADATA_BYTES {
            let detail = format!("must have at most {MOST_METADATA_BYTES} bytes of JSON, has {}", text.len());
            self.problems.add("/metadata", detail);
            return None;
        }
        Some(text)
    }

    /// An intent older than what is remembered is never taken for new.
    fn too_old(&mut self, class: Option<&Class>) -> bool {
        let intent_at = self.request.instant("intent_at", &mut self.problems);
        let too_old = match (intent_at, class) {
            (Some(at), Some(class)) => self.against.now.since(at) > class.window,
            _ => false,
        };
        if too_old {
            let detail = "is older than repeats are remembered: whether this is one can no longer be known";
            self.problems.add_passing(FieldProblem::new("/intent_at", detail));
        }
        too_old
    }
}
