//! The filters of `find` and `cancel`. They go in a request's body: addresses do not belong in URLs.

use clap::Args;
use serde_json::{Map, Value};

/// All that are given must hold.
#[derive(Args, Clone, Debug, Default)]
pub struct Filters {
    /// Address, whole: an email address, a phone number, a token
    #[arg(long, value_name = "ADDRESS")]
    to: Option<String>,
    /// Your own name for the person, as the request had it
    #[arg(long, value_name = "ID")]
    recipient: Option<String>,
    /// Your own name for it
    #[arg(long)]
    reference: Option<String>,
    /// What it belongs to
    #[arg(long)]
    group: Option<String>,
    /// code, security, receipt, transactional, digest, marketing, or your own
    #[arg(long)]
    class: Option<String>,
    /// A template's name
    #[arg(long)]
    template: Option<String>,
    /// Of a template, as `status --output json` has it
    #[arg(long, value_name = "VERSION")]
    template_version: Option<String>,
    /// Accepted then or later, as in 2026-12-24T18:00:00Z
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Accepted before
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// An Idempotency-Key, or the key of a batch's item; may be given again, up to 1,000 times
    #[arg(long = "key", value_name = "KEY", conflicts_with = "unique")]
    keys: Vec<String>,
    /// A business key, with its --class; may be given again
    #[arg(long, value_name = "KEY", requires = "class")]
    unique: Vec<String>,
    /// State of the notification: queued, accepted, failed, parked, unknown, …
    #[arg(long)]
    state: Option<String>,
    /// It has a delivery on this channel
    #[arg(long)]
    channel: Option<String>,
}

impl Filters {
    /// As members of a request.
    #[must_use]
    pub fn members(&self) -> Map<String, Value> {
        let given = [
            ("address", &self.to),
            ("recipient", &self.recipient),
            ("reference", &self.reference),
            ("group", &self.group),
            ("class", &self.class),
            ("template", &self.template),
            ("template_version", &self.template_version),
            ("accepted_from", &self.from),
            ("accepted_until", &self.until),
            ("state", &self.state),
            ("channel", &self.channel),
        ];
        let mut members: Map<String, Value> =
            given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?.into()))).collect();
        for (name, keys) in [("keys", &self.keys), ("unique", &self.unique)] {
            if !keys.is_empty() {
                members.insert(name.to_owned(), keys.clone().into());
            }
        }
        members
    }
}

/// The flag that a field of the request came from.
#[must_use]
pub fn flag_of(pointer: &str) -> Option<String> {
    let name = pointer.strip_prefix("/filter").unwrap_or(pointer).strip_prefix('/')?;
    // Of a list the item's place follows.
    Some(match name.split('/').next()? {
        "address" => "--to".into(),
        "accepted_from" => "--from".into(),
        "accepted_until" => "--until".into(),
        "template_version" => "--template-version".into(),
        "keys" => "--key".into(),
        same @ ("recipient" | "reference" | "group" | "class" | "template" | "unique" | "state" | "channel"
        | "cursor" | "limit" | "why") => format!("--{same}"),
        _ => return None,
    })
}
