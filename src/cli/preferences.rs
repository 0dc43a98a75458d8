//! `preferences`: what a recipient wants to hear, as support staff look at it.

use std::collections::{BTreeMap, BTreeSet};

use belfry_domain::ChannelKind;
use clap::{Args, Subcommand, ValueEnum};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shell;
use super::client::{Answer, Client, ServerArgs};
use super::exit::{Exit, Failure};
use super::terminal::{Colour, Format, Look, print, print_json_text, table};
use crate::ports::recipients::{NAME, is_name};

#[derive(Subcommand)]
pub enum PreferencesCommand {
    /// Show what a recipient gets of every class, and what of that they said themselves
    Show(OfArgs),
    /// Turn a class on or off for a recipient; safe to repeat
    Set(SetArgs),
    /// Make a link to the recipient's own page: whoever has it can change what they get
    Link(LinkArgs),
    /// Forget what a recipient said; safe to repeat
    Forget(OfArgs),
}

#[derive(Args)]
pub struct OfArgs {
    /// Your own name for them, as in `to.recipient`
    recipient: String,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Args)]
pub struct SetArgs {
    /// Your own name for them, as in `to.recipient`
    recipient: String,
    /// Which class, or `every`
    category: String,
    /// Which channel, `push` for all of devices, or `all`
    channel: String,
    /// What they said; `default` takes it back
    to: Switch,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum Switch {
    On,
    Off,
    Default,
}

#[derive(Args)]
pub struct LinkArgs {
    /// Your own name for them, as in `to.recipient`
    recipient: String,
    /// The page's language, as in de-AT
    #[arg(long)]
    locale: Option<String>,
    /// When it is no longer good, as in 2026-12-24T18:00:00Z; in a day where it is left out
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Deserialize)]
struct Kept {
    recipient: String,
    every: BTreeMap<String, bool>,
    categories: BTreeMap<String, BTreeMap<String, bool>>,
    changed_at: Option<String>,
    changed_by: Option<String>,
    effective: Vec<Effective>,
}

#[derive(Deserialize)]
struct Effective {
    category: String,
    required: bool,
    channels: BTreeMap<String, bool>,
}

#[derive(Deserialize)]
struct Link {
    url: String,
    until: String,
}

pub async fn run(shell: &Shell, command: &PreferencesCommand) -> anyhow::Result<Exit> {
    let (server, recipient) = match command {
        PreferencesCommand::Show(args) | PreferencesCommand::Forget(args) => (&args.server, &args.recipient),
        PreferencesCommand::Link(args) => (&args.server, &args.recipient),
        PreferencesCommand::Set(args) => (&args.server, &args.recipient),
    };
    let path = path_of(recipient)?;
    let client = Client::discover(server, &shell.config()?)?;
    match command {
        PreferencesCommand::Show(_) => {
            told(shell, &client.get(&path).await?.ok()?, |answer| Ok(drawn(&shell.look, &answer.read("preferences")?)))
        }
        PreferencesCommand::Set(args) => {
            let kept: Kept = client.get(&path).await?.ok()?.read("preferences")?;
            let put = client.put(&path, args.applied(kept).to_string()).await?;
            told(shell, &put.ok_by_flags(&|_| args.flag())?, |answer| {
                Ok(drawn(&shell.look, &answer.read("preferences")?))
            })
        }
        PreferencesCommand::Link(args) => {
            let mut body = json!({});
            for (member, value) in [("locale", &args.locale), ("until", &args.until)] {
                if let Some(value) = value {
                    body[member] = value.as_str().into();
                }
            }
            let answer = client.post(&format!("{path}/link"), None, body.to_string()).await?;
            let flag_of = |pointer: &str| Some(format!("--{}", pointer.strip_prefix('/')?));
            told(shell, &answer.ok_by_flags(&flag_of)?, |answer| {
                let link: Link = answer.read("a link")?;
                Ok(format!(
                    "{}\nGood until {}. For {recipient} alone: no login stands before it.\n",
                    link.url, link.until
                ))
            })
        }
        PreferencesCommand::Forget(_) => {
            client.delete(&path).await?.ok()?;
            match shell.look.format {
                Format::Json => print_json_text(&json!({ "forgotten": recipient }).to_string())?,
                Format::Table => print(&format!("Nothing that {recipient} said is kept.\n"))?,
            }
            Ok(Exit::Ok)
        }
    }
}

impl SetArgs {
    /// What is to be kept then. Whoever changes it in the same moment may be overwritten.
    fn applied(&self, kept: Kept) -> Value {
        let Kept { mut every, mut categories, .. } = kept;
        let of = match self.category.as_str() {
            "every" => &mut every,
            category => categories.entry(category.to_owned()).or_default(),
        };
        let channels = match self.channel.as_str() {
            "push" => ChannelKind::PUSH.map(ChannelKind::name).to_vec(),
            channel => vec![channel],
        };
        for channel in channels {
            match self.to {
                Switch::On => of.insert(channel.to_owned(), true),
                Switch::Off => of.insert(channel.to_owned(), false),
                Switch::Default => of.remove(channel),
            };
        }
        categories.retain(|_, said| !said.is_empty());
        json!({ "every": every, "categories": categories })
    }

    fn flag(&self) -> Option<String> {
        Some(format!("{} {}", self.category, self.channel))
    }
}

/// It becomes part of a URL.
fn path_of(recipient: &str) -> Result<String, Failure> {
    if !is_name(recipient) {
        return Err(Failure::new(Exit::Usage, format!("the recipient: {NAME}")));
    }
    if recipient.bytes().all(|byte| byte == b'.') {
        return Err(Failure::new(Exit::Usage, "the recipient: must not be dots alone, which a URL takes for folders"));
    }
    Ok(format!("/v1/preferences/{recipient}"))
}

fn told(
    shell: &Shell,
    answer: &Answer,
    drawn: impl FnOnce(&Answer) -> Result<String, Failure>,
) -> anyhow::Result<Exit> {
    match shell.look.format {
        Format::Json => print_json_text(&answer.text)?,
        Format::Table => print(&drawn(answer)?)?,
    }
    Ok(Exit::Ok)
}

/// One row for each class, one column for each channel that any of them has.
fn drawn(look: &Look, it: &Kept) -> String {
    let channels: BTreeSet<&String> = it.effective.iter().flat_map(|one| one.channels.keys()).collect();
    let heading: Vec<String> = channels.iter().map(|channel| channel.to_uppercase()).collect();
    let heading: Vec<&str> = ["CLASS"].into_iter().chain(heading.iter().map(String::as_str)).collect();
    let row = |one: &Effective| {
        let name = if one.required { format!("{} (always sent)", one.category) } else { one.category.clone() };
        let cells = channels.iter().map(|channel| cell(look, it, one, channel));
        std::iter::once(name).chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = it.effective.iter().map(row).collect();
    let by = match (&it.changed_at, &it.changed_by) {
        (Some(at), Some(by)) if by == "page" => format!("changed {at} on the recipient's own page"),
        (Some(at), Some(by)) => format!("changed {at} by {by}"),
        _ => "has said nothing: what stands here is for everybody".into(),
    };
    let legend =
        "* said by the recipient or for them; all else is the class's own. Suppressed addresses are not seen here.";
    format!("{}: {by}\n\n{}\n{legend}\n", it.recipient, table(look, &heading, &rows))
}

fn cell(look: &Look, it: &Kept, one: &Effective, channel: &str) -> String {
    let Some(on) = one.channels.get(channel) else { return String::new() };
    let said = |of: &BTreeMap<String, bool>| of.contains_key(channel) || of.contains_key("all");
    let theirs = !one.required && (said(&it.every) || it.categories.get(&one.category).is_some_and(said));
    let (colour, word) = if *on { (Colour::Green, "on") } else { (Colour::Red, "off") };
    look.paint(colour, &format!("{word}{}", if theirs { "*" } else { "" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_change_the_url_is_none() {
        assert_eq!(path_of("user:7@x").unwrap(), "/v1/preferences/user:7@x");
        for bad in ["", ".", "..", "a/b", "a?b", "a b", "ä", "%2e", "#"] {
            assert!(path_of(bad).is_err(), "{bad}");
        }
        assert!(path_of(&"a".repeat(255)).is_ok() && path_of(&"a".repeat(256)).is_err());
    }
}
