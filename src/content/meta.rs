//! `meta.toml`: what a template is for.

use std::collections::BTreeMap;

use belfry_domain::ChannelKind;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::files::META;
use super::locales::{Fallback, circle};
use super::problem::TemplateProblem;
use crate::ports::locale::is_locale;
use crate::ports::mail;
use crate::ports::near::near_match;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    pub description: String,
    /// Where it has content for; a message on another channel is refused.
    pub channels: Vec<ChannelKind>,
    /// The language of the files that lie in no locale's folder.
    pub locale: String,
    /// Further mail headers; the values are templates.
    pub headers: BTreeMap<String, String>,
    /// Languages that stand in for others.
    pub fallback: Fallback,
    /// The class that it is sent with, for the lint alone: a request names its own.
    pub class: Option<String>,
    /// Files that every mail has with it.
    pub attachments: Vec<Attached>,
    /// Whether rules of `<style>` are written into the elements that they are for.
    pub inline_css: bool,
}

/// A file that is attached.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attached {
    /// Its name in the folder of attachments.
    pub file: String,
    /// What the reader sees, a template; absent: the file's own name.
    pub filename: Option<String>,
    /// Absent: by the file's ending.
    pub content_type: Option<String>,
}

impl Meta {
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(template: &str, text: &str) -> Result<Self, Vec<TemplateProblem>> {
        let mut written = match toml::from_str::<toml::Table>(text) {
            Ok(table) => Written { template, text, table, problems: Vec::new() },
            Err(failed) => {
                let line = failed.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
                let (template, file) = (template.to_owned(), META.to_owned());
                return Err(vec![TemplateProblem { template, file, line, message: failed.message().to_owned() }]);
            }
        };
        written.refuse_unknown();
        let description = written.required("description", "a text");
        let names: Option<Vec<String>> = written.required("channels", "a list of channels such as [\"email\"]");
        let channels = names.map(|names| written.channels(&names));
        let locale: Option<String> = written.required("locale", "a text such as \"en\"");
        if let Some(locale) = locale.as_ref().filter(|locale| !is_locale(locale)) {
            written.problem("locale", format!("`{locale}` is no locale such as `en` or `pt-BR`"));
        }
        let class: Option<String> = written.optional("class", "a text such as \"marketing\"");
        let headers: BTreeMap<String, String> = written.optional("headers", "a table of texts").unwrap_or_default();
        if headers.len() > mail::MOST_HEADERS {
            written.problem("headers", format!("a mail has at most {} headers of one's own", mail::MOST_HEADERS));
        }
        let mut before: Vec<(String, String)> = Vec::new();
        for name in headers.keys() {
            // Its value is only known when the message is made.
            if let Some(why) = mail::wrong_header(name, "value", &before) {
                written.problem(name, format!("header `{name}` {why}"));
            }
            before.push((name.clone(), String::new()));
        }
        let fallback = written.fallback();
        let attachments: Option<Vec<Attached>> = written
            .optional("attachments", "[[attachments]], each with `file`, and if need be `filename` and `content_type`");
        let attachments = attachments.unwrap_or_default();
        let inline_css = written.optional("inline_css", "true or false").unwrap_or(true);
        match (description, channels, locale) {
            (Some(description), Some(channels), Some(locale)) if written.problems.is_empty() => {
                Ok(Self { description, channels, locale, headers, fallback, class, attachments, inline_css })
            }
            _ => Err(written.problems),
        }
    }
}

const KEYS: [&str; 8] =
    ["description", "channels", "locale", "headers", "fallback", "class", "attachments", "inline_css"];

/// The file as it was written, and what is wrong with it so far: an author mends it once.
struct Written<'a> {
    template: &'a str,
    text: &'a str,
    table: toml::Table,
    problems: Vec<TemplateProblem>,
}

impl Written<'_> {
    /// With the line where `key` is given, if it is.
    fn problem(&mut self, key: &str, message: String) {
        let gives = |line: &str| {
            let rest = line.trim_start().trim_start_matches(['[', '"']).strip_prefix(key);
            rest.is_some_and(|rest| rest.trim_start_matches('"').trim_start().starts_with(['=', ']']))
        };
        let line = self.text.lines().position(gives).map_or(0, |at| at + 1);
        let (template, file) = (self.template.to_owned(), META.to_owned());
        self.problems.push(TemplateProblem { template, file, line, message });
    }

    fn refuse_unknown(&mut self) {
        let strangers: Vec<String> = self.table.keys().filter(|key| !KEYS.contains(&key.as_str())).cloned().collect();
        for key in strangers {
            let meant = match near_match(&key, KEYS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", KEYS.join(", ")),
            };
            self.problem(&key, format!("`{key}` is no key; {meant}"));
        }
    }

    fn optional<T: DeserializeOwned>(&mut self, key: &str, expected: &str) -> Option<T> {
        let value = self.table.get(key)?.clone();
        let read = value.try_into().ok();
        if read.is_none() {
            self.problem(key, format!("`{key}` must be {expected}"));
        }
        read
    }

    fn required<T: DeserializeOwned>(&mut self, key: &str, expected: &str) -> Option<T> {
        if !self.table.contains_key(key) {
            self.problem(key, format!("lacks the key `{key}`: {expected}"));
        }
        self.optional(key, expected)
    }

    fn fallback(&mut self) -> Fallback {
        let expected = "a table such as { gsw = [\"de\"] }";
        let fallback: Fallback = self.optional("fallback", expected).unwrap_or_default();
        let named = fallback.iter().flat_map(|(name, all)| std::iter::once(name).chain(all));
        for name in named.filter(|name| !is_locale(name)) {
            self.problem("fallback", format!("`{name}` is no locale such as `en` or `pt-BR`"));
        }
        if let Some(name) = circle(&fallback) {
            self.problem("fallback", format!("`{name}` falls back to itself"));
        }
        fallback
    }

    fn channels(&mut self, names: &[String]) -> Vec<ChannelKind> {
        let mut channels = Vec::new();
        for name in names {
            match (name.as_str(), name.parse()) {
                ("push", _) => channels.extend(ChannelKind::PUSH),
                (_, Ok(channel)) => channels.push(channel),
                (_, Err(_)) => {
                    let known: Vec<&str> =
                        ["push"].into_iter().chain(ChannelKind::ALL.iter().map(|one| one.name())).collect();
                    let near = near_match(name, known.iter().copied());
                    let meant = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
                    let message = format!("`{name}` is no channel{meant}; there are {}", known.join(", "));
                    self.problem("channels", message);
                }
            }
        }
        if names.is_empty() {
            self.problem("channels", "a template needs at least one channel".to_owned());
        }
        channels.sort_unstable();
        channels.dedup();
        channels
    }
}
