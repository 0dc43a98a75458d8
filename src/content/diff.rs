//! What a change of templates does to what people get: both folders' samples, rendered and compared.

use std::collections::BTreeSet;

use belfry_domain::ChannelKind;
use belfry_domain::notification::TemplateRef;
use similar::TextDiff;

use super::files::META;
use super::inputs::{Inputs, Source};
use super::preview::{PreviewProblem, Trial, size_of, slot};
use super::{Content, RenderProblem};
use crate::ports::message::{EmailMessage, Rendered};

/// Of one part, in bytes. What is larger is said to differ, and not how.
const LARGEST: usize = 256 * 1024;
/// Of one part's difference.
const MOST_LINES: usize = 400;
/// Of all of them.
const MOST_CHANGES: usize = 2_000;
/// Lines around a change.
const AROUND: usize = 3;

/// One part that comes out otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub template: String,
    /// Nothing where it is the template's as a whole.
    pub locale: Option<String>,
    pub channel: Option<ChannelKind>,
    /// `meta.toml`, `subject`, `text`, `html`, …
    pub part: &'static str,
    /// `added`, `removed` or `changed`.
    pub kind: &'static str,
    /// A unified diff; empty for what is new or gone as a whole.
    pub diff: String,
}

/// What differs, and whether that is all of it.
#[derive(Debug, Default)]
pub struct Changes {
    pub list: Vec<Change>,
    pub cut: bool,
}

/// Compares what `name`, or each template, makes of the trial's data. Without any it is the sample of `to`, or its own
/// where the old one cannot be rendered with it.
///
/// # Errors
/// Where the trial is none that a request could be.
pub fn diff(from: &Content, to: &Content, name: Option<&str>, trial: &Trial) -> Result<Changes, PreviewProblem> {
    trial.check()?;
    let mut changes = Changes::default();
    let names: BTreeSet<&str> =
        from.names().chain(to.names()).filter(|one| name.is_none_or(|name| *one == name)).collect();
    for name in names {
        let whole = |kind| Change {
            template: name.to_owned(),
            locale: None,
            channel: None,
            part: "template",
            kind,
            diff: String::new(),
        };
        match (from.meta(name), to.meta(name)) {
            (Some(_), None) => changes.add(whole("removed")),
            (None, Some(_)) => changes.add(whole("added")),
            (Some(_), Some(_)) => both(&mut changes, (from, to), name, trial),
            (None, None) => {}
        }
    }
    Ok(changes)
}

impl Changes {
    fn add(&mut self, change: Change) {
        if self.list.len() < MOST_CHANGES {
            self.list.push(change);
        } else {
            self.cut = true;
        }
    }

    /// Adds a part where it differs.
    fn part(&mut self, place: (&str, Option<&str>, Option<ChannelKind>), part: &'static str, texts: (&str, &str)) {
        let (old, new) = texts;
        if old == new {
            return;
        }
        let kind = match (old.is_empty(), new.is_empty()) {
            (true, _) => "added",
            (_, true) => "removed",
            (false, false) => "changed",
        };
        let (template, locale) = (place.0.to_owned(), place.1.map(str::to_owned));
        self.add(Change { template, locale, channel: place.2, part, kind, diff: unified(old, new) });
    }
}

fn both(changes: &mut Changes, (from, to): (&Content, &Content), name: &str, trial: &Trial) {
    let (Some(old), Some(new)) = (from.by_name.get(name), to.by_name.get(name)) else { return };
    let meta = |one: &super::Template| one.files.files.get(META).cloned().unwrap_or_default();
    changes.part((name, None, None), META, (&meta(old), &meta(new)));
    let channels: BTreeSet<ChannelKind> = old.meta.channels.iter().chain(&new.meta.channels).copied().collect();
    let locales: BTreeSet<&str> = match &trial.locale {
        Some(locale) => BTreeSet::from([locale.as_str()]),
        None => old.locales().into_iter().chain(new.locales()).collect(),
    };
    for locale in locales {
        for channel in &channels {
            let (old, new) = (Made::new(from, name, locale, trial), Made::new(to, name, locale, trial));
            let after = new.parts(*channel, None);
            let before = old.parts(*channel, new.inputs.as_ref());
            let names: Vec<&'static str> = after.iter().chain(&before).map(|(part, _)| *part).collect();
            let mut seen = BTreeSet::new();
            for part in names.into_iter().filter(|part| seen.insert(*part)) {
                let text = |all: &[(&str, String)]| {
                    all.iter().find(|(name, _)| *name == part).map(|(_, text)| text.clone()).unwrap_or_default()
                };
                changes.part((name, Some(locale), Some(*channel)), part, (&text(&before), &text(&after)));
            }
        }
    }
}

/// A template in one language, with its sample.
struct Made<'c> {
    content: &'c Content,
    frozen: Option<TemplateRef>,
    inputs: Option<Inputs>,
}

type Parts = Vec<(&'static str, String)>;

impl<'c> Made<'c> {
    fn new(content: &'c Content, name: &str, locale: &str, trial: &Trial) -> Self {
        let frozen = content.freeze(name, Some(locale)).ok();
        let inputs = frozen.as_ref().and_then(|frozen| trial.inputs(content, frozen));
        Self { content, frozen, inputs }
    }

    /// What comes out on a channel, of the other's sample if there is one and it serves.
    fn parts(&self, channel: ChannelKind, other: Option<&Inputs>) -> Parts {
        let has = |frozen: &&TemplateRef| {
            self.content.meta(&frozen.name).is_some_and(|meta| meta.channels.contains(&channel))
        };
        let Some(frozen) = self.frozen.as_ref().filter(has) else { return Vec::new() };
        let with_other =
            other.and_then(|inputs| self.content.render(&filled(frozen, inputs)?, channel, slot(channel)).ok());
        match with_other {
            Some(message) => parts(message),
            None => self.own(channel),
        }
    }

    fn own(&self, channel: ChannelKind) -> Parts {
        let Some(inputs) = &self.inputs else { return vec![("sample", "there is none\n".to_owned())] };
        let failed = |problem: RenderProblem| vec![("failure", format!("{problem}\n"))];
        self.content.render(inputs, channel, slot(channel)).map_or_else(failed, parts)
    }
}

/// The template with the data of these inputs.
fn filled(frozen: &TemplateRef, inputs: &Inputs) -> Option<Inputs> {
    let Source::Template { data, .. } = &inputs.source else { return None };
    Some(Inputs { source: Source::template(frozen.clone(), data.clone()), ..inputs.clone() })
}

fn parts(message: Rendered) -> Parts {
    match message {
        Rendered::Email(mail) => mail_parts(*mail),
        Rendered::Sms { text } => vec![("text", text + "\n")],
        Rendered::Push { payload, .. } => vec![("payload", payload + "\n")],
        Rendered::Inbox { payload } => vec![("payload", payload + "\n")],
        Rendered::Webhook { body } => vec![("body", body + "\n")],
        Rendered::Chat { text } => vec![("text", text + "\n")],
    }
}

fn mail_parts(mail: EmailMessage) -> Parts {
    let headers = mail.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    let attachments = mail.attachments.iter().map(|one| {
        let digest = super::digest(one.base64.as_bytes());
        format!("{} ({}, {}, {})\n", one.filename, one.content_type, size_of(one), &digest[..12])
    });
    vec![
        ("subject", mail.subject + "\n"),
        ("headers", headers),
        ("text", mail.text),
        ("html", mail.html.unwrap_or_default()),
        ("attachments", attachments.collect()),
    ]
}

fn unified(old: &str, new: &str) -> String {
    if old.len().max(new.len()) > LARGEST {
        return format!("{} bytes before, {} after\n", old.len(), new.len());
    }
    let made =
        TextDiff::from_lines(old, new).unified_diff().context_radius(AROUND).missing_newline_hint(false).to_string();
    let count = made.lines().count();
    if count <= MOST_LINES {
        return made;
    }
    let kept: Vec<&str> = made.lines().take(MOST_LINES).collect();
    format!("{}\n… and {} lines more\n", kept.join("\n"), count - MOST_LINES)
}
