//! What a template's author should look at before customers do: wording that says something else
//! when it arrives twice, data that is only true once, and parts that are missing.

mod bare;
mod languages;
mod unsubscribe;
mod wording;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use belfry_domain::ChannelKind;

use super::attached;
use super::files::{HTML, META, MJML, PARTS, PUSH, SAMPLE, SHARED, SMS, SUBJECT, TEXT, is_attachment};
use super::json::Json;
use super::preview::{Trial, decoded_len, rule_of, slot};
use super::template::Template;
use super::text::sms_segments;
use super::{Content, RenderProblem};
use crate::ports::message::{EmailMessage, Rendered};

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Worth knowing.
    Info,
    /// Probably wrong.
    Warning,
    /// A message would be refused or wrong.
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub template: String,
    /// Within the template's folder; `_shared/…` for a file that all share.
    pub file: String,
    /// From 1; 0 where no line is known.
    pub line: usize,
    /// A stable name: `repeat_wording`, `delta_key`, `missing_text`, …
    pub rule: &'static str,
    pub message: String,
    pub level: Level,
}

/// In bytes; what each of a thousand readers downloads.
const MUCH_ATTACHED: usize = 256 * 1024;
/// Gmail shows no more of a mail than this.
const GMAIL_CUTS: usize = 102 * 1024;

/// The configured classes, and whether each is one to unsubscribe from.
pub type Classes = BTreeMap<String, bool>;

/// Looks at every template under `dir`. Where they do not compile, the findings are those faults.
#[must_use]
pub fn lint(dir: &Path, classes: &Classes) -> Vec<Finding> {
    match Content::load(dir) {
        Ok(content) => lint_content(&content, classes),
        Err(problems) => problems
            .into_iter()
            .map(|problem| Finding {
                template: problem.template,
                file: problem.file,
                line: problem.line,
                rule: "compile",
                message: problem.message,
                level: Level::Error,
            })
            .collect(),
    }
}

/// Looks at templates that compile.
#[must_use]
pub fn lint_content(content: &Content, classes: &Classes) -> Vec<Finding> {
    let mut all = Vec::new();
    for template in content.by_name.values() {
        let mut found = Findings { template, list: Vec::new() };
        found.wording();
        found.bare();
        found.styles();
        found.names();
        found.parts();
        found.translations();
        found.samples(content);
        found.unsubscribe(classes);
        found.list.sort_by(|a, b| (&a.file, a.line, a.rule).cmp(&(&b.file, b.line, b.rule)));
        found.list.dedup();
        all.extend(found.list);
    }
    all
}

struct Findings<'a> {
    template: &'a Template,
    list: Vec<Finding>,
}

impl Findings<'_> {
    fn add(&mut self, level: Level, rule: &'static str, place: (&str, usize), message: impl Into<String>) {
        self.list.push(Finding {
            template: self.template.files.name.clone(),
            file: place.0.to_owned(),
            line: place.1,
            rule,
            message: message.into(),
            level,
        });
    }

    /// The files that are rendered, by path.
    fn rendered(&self) -> Vec<(&String, &String)> {
        let is_part = |path: &str| path != META && !path.ends_with(SAMPLE) && !is_attachment(path);
        self.template.files.files.iter().filter(|(path, _)| is_part(path)).collect()
    }

    fn wording(&mut self) {
        let mut found = Vec::new();
        for (path, text) in self.rendered() {
            for (line, phrase) in wording::not_true_twice(text, is_html(path)) {
                found.push((path.clone(), line, phrase));
            }
        }
        for (path, line, phrase) in found {
            let message =
                format!("\"{phrase}\" is not true of a message that arrives late or twice; name the thing or the date");
            self.add(Level::Warning, "repeat_wording", (&path, line), message);
        }
        let unescaped: Vec<(String, usize)> = self
            .rendered()
            .into_iter()
            .filter(|(path, _)| is_html(path))
            .flat_map(|(path, text)| wording::lines_with_filter(text, "safe").map(|line| (path.clone(), line)))
            .collect();
        for (path, line) in unescaped {
            self.add(
                Level::Warning,
                "unescaped",
                (&path, line),
                "`safe` lets a value be HTML; escape it, or be sure who writes it",
            );
        }
    }

    fn bare(&mut self) {
        let rendered = self.rendered();
        let html = rendered.iter().filter(|(path, _)| is_html(path));
        let found: Vec<(String, usize, String)> = html
            .flat_map(|(path, text)| {
                bare::bare_values(text).into_iter().map(|(line, what)| ((*path).clone(), line, what))
            })
            .collect();
        for (path, line, what) in found {
            self.add(Level::Warning, "bare_value", (&path, line), what);
        }
    }

    fn styles(&mut self) {
        for (place, what) in self.template.files.notes.clone() {
            self.add(Level::Info, "styles", (&place.file, place.line), what);
        }
    }

    /// Variables: those that look like changes, and those that the sample lacks.
    fn names(&mut self) {
        let sample = self.template.files.files.get(SAMPLE).and_then(|text| Json::parse(text).ok());
        let mut found = Vec::new();
        for (path, text) in self.rendered() {
            for variable in self.template.variables.get(path).into_iter().flatten() {
                if variable.split('.').next() == Some("belfry") {
                    continue;
                }
                let place = (path.clone(), wording::line_of(text, variable.rsplit('.').next().unwrap_or_default()));
                let lacks = sample.as_ref().is_some_and(|sample| !has(sample, variable));
                // A shared file serves templates that need no such value.
                if lacks && !path.starts_with(SHARED) {
                    found.push((place.clone(), "sample_lacks", format!("`{variable}` is not in {SAMPLE}")));
                }
                if wording::is_delta(variable) {
                    found.push((place, "delta_key", delta_message(variable)));
                }
            }
        }
        for (key, line) in sample_keys(self.template.files.files.get(SAMPLE), sample.as_ref()) {
            if wording::is_delta(&key) {
                found.push(((SAMPLE.to_owned(), line), "delta_key", delta_message(&key)));
            }
        }
        for ((path, line), rule, message) in found {
            self.add(Level::Warning, rule, (&path, line), message);
        }
    }

    /// What the channels need, and what none of them reads.
    fn parts(&mut self) {
        let files = &self.template.files.files;
        let has = |file: &str| files.contains_key(file);
        let mut missing: BTreeSet<(&'static str, ChannelKind)> = BTreeSet::new();
        let mut read: BTreeSet<&'static str> = BTreeSet::new();
        for channel in &self.template.meta.channels {
            let needed: &[&'static str] = match channel {
                ChannelKind::Email => &[SUBJECT],
                ChannelKind::Sms => &[SMS],
                ChannelKind::Apns | ChannelKind::Fcm | ChannelKind::WebPush | ChannelKind::Inbox => &[PUSH],
                ChannelKind::Chat => &[TEXT],
                ChannelKind::Webhook => &[],
            };
            read.extend(needed);
            if *channel == ChannelKind::Email {
                read.extend([TEXT, HTML, MJML]);
            }
            missing.extend(needed.iter().filter(|file| !has(file)).map(|file| (*file, *channel)));
        }
        let unread: Vec<&str> = PARTS.into_iter().filter(|part| has(part) && !read.contains(part)).collect();
        let (text, html) = (has(TEXT), has(HTML) || has(MJML));
        let textless = html && !text;
        let bodiless = self.template.meta.channels.contains(&ChannelKind::Email) && !html && !text;
        for file in attached::unused(&self.template.meta, &self.template.files) {
            let message = format!("nothing shows it as `cid:` in HTML, and no [[attachments]] in {META} names it");
            self.add(Level::Warning, "unused_attachment", (&file, 0), message);
        }
        for (file, channel) in missing {
            self.add(Level::Error, "missing_part", (file, 0), format!("missing for {channel}"));
        }
        for file in unread {
            self.add(Level::Info, "unread_part", (file, 0), format!("no channel in {META} reads it"));
        }
        if textless {
            self.add(
                Level::Warning,
                "missing_text",
                (TEXT, 0),
                "made from the HTML now; a text that was written reads better",
            );
        }
        if bodiless {
            self.add(Level::Error, "missing_part", (HTML, 0), "a mail needs text.txt, html.html or html.mjml");
        }
    }

    fn samples(&mut self, content: &Content) {
        if !self.template.files.files.contains_key(SAMPLE) {
            return self.add(Level::Error, "missing_sample", (SAMPLE, 0), "without it nothing here can be tried out");
        }
        let locales: Vec<String> = self.template.locales().into_iter().map(str::to_owned).collect();
        for locale in locales {
            let name = &self.template.files.name;
            let Some(inputs) =
                content.freeze(name, Some(&locale)).ok().and_then(|frozen| Trial::default().inputs(content, &frozen))
            else {
                continue;
            };
            for channel in self.template.meta.channels.clone() {
                match content.render(&inputs, channel, slot(channel)) {
                    Ok(message) => self.message(&message, &locale),
                    Err(problem) => self.failed(&problem),
                }
            }
        }
    }

    fn message(&mut self, message: &Rendered, locale: &str) {
        let place = |part: &str| self.template.find(locale, part).unwrap_or_else(|| part.to_owned());
        match message {
            Rendered::Sms { text } if sms_segments(text) > 1 => {
                let told = format!("the sample takes {} SMS", sms_segments(text));
                self.add(Level::Info, "sms_parts", (&place(SMS), 0), told);
            }
            Rendered::Email(mail) => self.mail(mail, locale),
            Rendered::Sms { .. }
            | Rendered::Push { .. }
            | Rendered::Webhook { .. }
            | Rendered::Chat { .. }
            | Rendered::Inbox { .. } => {}
        }
    }

    fn mail(&mut self, mail: &EmailMessage, locale: &str) {
        if mail.html.as_ref().is_some_and(|html| html.len() > GMAIL_CUTS) {
            let (_, html) = self.template.find_body(locale);
            self.add(Level::Info, "large_mail", (&html.unwrap_or_default(), 0), "Gmail cuts a mail at 102 KiB");
        }
        let attached: usize = mail.attachments.iter().map(decoded_len).sum();
        if attached > MUCH_ATTACHED {
            let message = format!("every mail has {} KiB of files with it", attached.div_ceil(1024));
            self.add(Level::Info, "large_mail", (META, 0), message);
        }
    }

    fn failed(&mut self, problem: &RenderProblem) {
        let own = format!("{}/", self.template.files.name);
        let file = problem.file.strip_prefix(&own).unwrap_or(&problem.file).to_owned();
        let message = format!("the sample cannot be rendered: {}", problem.message);
        self.add(Level::Error, rule_of(problem.fault), (&file, problem.line), message);
    }
}

fn is_html(path: &str) -> bool {
    path.ends_with(".html") || path.ends_with(".mjml")
}

fn delta_message(name: &str) -> String {
    format!(
        "`{name}` looks like a change; a message that arrives twice would count it twice: give the total or the thing itself"
    )
}

/// Whether the sample has a value at `order.items`; a list answers for its items.
fn has(sample: &Json, path: &str) -> bool {
    let mut here = Some(sample);
    for step in path.split('.') {
        match here {
            // Into a list by number or by method: not to be decided here.
            Some(Json::List(_)) => return true,
            Some(value) => here = value.get(step),
            None => return false,
        }
    }
    here.is_some()
}

/// Every key in the sample with the line where it first stands.
fn sample_keys(text: Option<&String>, sample: Option<&Json>) -> Vec<(String, usize)> {
    fn walk(json: &Json, keys: &mut BTreeSet<String>) {
        match json {
            Json::Object(members) => {
                for (name, value) in members {
                    keys.insert(name.clone());
                    walk(value, keys);
                }
            }
            Json::List(items) => items.iter().for_each(|item| walk(item, keys)),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) => {}
        }
    }
    let mut keys = BTreeSet::new();
    if let Some(sample) = sample {
        walk(sample, &mut keys);
    }
    let line = |key: &str| text.map_or(0, |text| wording::line_of(text, &format!("\"{key}\"")));
    keys.into_iter().map(|key| (line(&key), key)).map(|(line, key)| (key, line)).collect()
}
