//! `meta.toml`: what a template is for.

use std::collections::BTreeMap;

use belfry_domain::ChannelKind;
use serde::Deserialize;

use super::files::{META, is_locale};
use super::problem::TemplateProblem;
use crate::ports::mail;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    description: String,
    channels: Vec<String>,
    locale: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    pub description: String,
    /// Where it has content for; a message on another channel is refused.
    pub channels: Vec<ChannelKind>,
    /// The language of the files that lie in no locale's folder.
    pub locale: String,
    /// Further mail headers; the values are templates.
    pub headers: BTreeMap<String, String>,
}

impl Meta {
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(template: &str, text: &str) -> Result<Self, Vec<TemplateProblem>> {
        let problem = |line: usize, message: String| TemplateProblem {
            template: template.to_owned(),
            file: META.to_owned(),
            line,
            message,
        };
        let written: Written = toml::from_str(text).map_err(|failed| {
            let line = failed.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            vec![problem(line, failed.message().to_owned())]
        })?;
        let mut problems = Vec::new();
        let mut channels = Vec::new();
        for name in &written.channels {
            match name.as_str() {
                "push" => channels.extend([ChannelKind::Apns, ChannelKind::Fcm, ChannelKind::WebPush]),
                name => match name.parse() {
                    Ok(channel) => channels.push(channel),
                    Err(_) => problems.push(problem(0, format!("`{name}` is no channel"))),
                },
            }
        }
        channels.sort_unstable();
        channels.dedup();
        if written.channels.is_empty() {
            problems.push(problem(0, "a template needs at least one channel".to_owned()));
        }
        if !is_locale(&written.locale) {
            problems.push(problem(0, format!("`{}` is no locale such as `en` or `pt-BR`", written.locale)));
        }
        if written.headers.len() > mail::MOST_HEADERS {
            problems.push(problem(0, format!("a mail has at most {} headers of one's own", mail::MOST_HEADERS)));
        }
        let mut before: Vec<(String, String)> = Vec::new();
        for name in written.headers.keys() {
            // Its value is only known when the message is made.
            if let Some(why) = mail::wrong_header(name, "value", &before) {
                problems.push(problem(0, format!("header `{name}` {why}")));
            }
            before.push((name.clone(), String::new()));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let Written { description, locale, headers, .. } = written;
        Ok(Self { description, channels, locale, headers })
    }
}
