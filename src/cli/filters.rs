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
            ("state", &self.state),
            ("channel", &self.channel),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?.into()))).collect()
    }
}

/// The flag that a field of the request came from.
#[must_use]
pub fn flag_of(pointer: &str) -> Option<String> {
    let name = pointer.strip_prefix("/filter").unwrap_or(pointer).strip_prefix('/')?;
    let known = ["address", "recipient", "reference", "group", "class", "state", "channel", "cursor", "limit", "why"];
    known.contains(&name).then(|| if name == "address" { "--to".into() } else { format!("--{name}") })
}
