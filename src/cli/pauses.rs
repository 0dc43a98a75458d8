//! `pauses`: what waits because somebody said so.

use belfry_domain::pause::KINDS;
use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shell;
use super::client::{Answer, Client, ServerArgs};
use super::exit::{Exit, Failure};
use super::terminal::{Format, Look, print, print_json_text, table};
use crate::ports::pauses::PauseId;

/// What has no name.
const ALL_OF_IT: &str = "all";
const ALL: &str = "/v1/pauses";

#[derive(Subcommand)]
pub enum PausesCommand {
    /// Show what is paused, and how much waits behind it
    List {
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Pause; safe to repeat
    Add(AddArgs),
    /// Lift a pause: what it held goes on; safe to repeat
    Resume(ResumeArgs),
}

#[derive(Args)]
pub struct AddArgs {
    /// all, channel, provider, class, template or group
    what: String,
    /// Which channel, provider, class, template or group
    name: Option<String>,
    /// Only what is of this tenant
    #[arg(long)]
    tenant: Option<String>,
    /// Over by itself from then on, as in 2026-12-24T18:00:00Z
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Hold login codes and security alerts as well
    #[arg(long)]
    forced: bool,
    /// For people
    #[arg(long)]
    why: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Args)]
pub struct ResumeArgs {
    /// A pause's id (pau_…), or what is paused: all, channel, provider, class, template or group
    what: String,
    /// Which channel, provider, class, template or group
    name: Option<String>,
    /// The pause of this tenant; without it the one that is everybody's
    #[arg(long)]
    tenant: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    what: String,
    name: Option<String>,
    tenant: Option<String>,
    since: String,
    until: Option<String>,
    forced: bool,
    #[serde(default)]
    lets_through: Vec<String>,
    by: String,
    why: Option<String>,
    /// Only a list says it.
    held: Option<u64>,
    #[serde(default)]
    held_at_least: bool,
}

#[derive(Deserialize)]
struct List {
    #[serde(rename = "data")]
    found: Vec<Entry>,
}

pub async fn run(shell: &Shell, command: &PausesCommand) -> anyhow::Result<Exit> {
    let client = |server: &ServerArgs| Ok::<_, anyhow::Error>(Client::discover(server, &shell.config()?)?);
    match command {
        PausesCommand::List { server } => {
            let answer = client(server)?.get(ALL).await?.ok()?;
            match shell.look.format {
                Format::Json => print_json_text(&answer.text)?,
                Format::Table => print(&drawn(&shell.look, &answer.read::<List>("pauses")?.found))?,
            }
            Ok(Exit::Ok)
        }
        PausesCommand::Add(args) => {
            let answer = client(&args.server)?.post(ALL, None, args.body().to_string()).await?;
            added(shell, &answer.ok_by_flags(&flag_of)?)
        }
        PausesCommand::Resume(args) => resume(shell, &client(&args.server)?, args).await,
    }
}

impl AddArgs {
    fn body(&self) -> Value {
        let mut body = json!({ "what": self.what });
        let given = [("name", &self.name), ("tenant", &self.tenant), ("until", &self.until), ("why", &self.why)];
        for (member, value) in given {
            if let Some(value) = value {
                body[member] = value.as_str().into();
            }
        }
        if self.forced {
            body["forced"] = true.into();
        }
        body
    }
}

fn flag_of(pointer: &str) -> Option<String> {
    match pointer.strip_prefix('/')? {
        "what" => Some("what to pause".into()),
        "name" => Some("the name".into()),
        flag @ ("tenant" | "until" | "forced" | "why") => Some(format!("--{flag}")),
        _ => None,
    }
}

fn added(shell: &Shell, answer: &Answer) -> anyhow::Result<Exit> {
    if shell.look.format == Format::Json {
        print_json_text(&answer.text)?;
        return Ok(Exit::Ok);
    }
    let entry: Entry = answer.read("a pause")?;
    let mut text = String::new();
    if answer.status != reqwest::StatusCode::CREATED {
        text.push_str("It was paused before.\n");
    }
    if !entry.lets_through.is_empty() {
        let classes = entry.lets_through.join(", ");
        text.push_str(&format!("Goes out all the same unless --forced: {classes}\n"));
    }
    print(&format!("{}{text}", drawn(&shell.look, &[entry])))?;
    Ok(Exit::Ok)
}

fn drawn(look: &Look, found: &[Entry]) -> String {
    if found.is_empty() {
        return "nothing is paused\n".into();
    }
    let row = |it: &Entry| {
        let name = it.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        let forced = if it.forced { " (forced)" } else { "" };
        let held = match it.held {
            Some(held) if it.held_at_least => format!("{held} or more"),
            Some(held) => held.to_string(),
            None => String::new(),
        };
        let until = it.until.as_ref().map(|until| format!(", until {until}")).unwrap_or_default();
        let why = it.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        vec![
            it.id.clone(),
            format!("{}{name}{forced}", it.what),
            it.tenant.clone().unwrap_or_else(|| "all".into()),
            held,
            format!("{} {}{until}{why}", it.by, it.since),
        ]
    };
    let rows: Vec<Vec<String>> = found.iter().map(row).collect();
    table(look, &["PAUSE", "OF", "TENANT", "HELD", "SAID BY"], &rows)
}

impl Entry {
    /// As `resume` takes it.
    fn words(&self) -> String {
        let name = self.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        let tenant = self.tenant.as_ref().map(|tenant| format!(" --tenant {tenant}")).unwrap_or_default();
        format!("{}{name}{tenant}", self.what)
    }
}

/// So that a slip of the pen does not look like success.
fn nothing(paused: &[String]) -> String {
    let others = if paused.is_empty() { String::new() } else { format!("; what is: {}", paused.join(", ")) };
    format!("nothing of that is paused{others}\n")
}

async fn resume(shell: &Shell, client: &Client, args: &ResumeArgs) -> anyhow::Result<Exit> {
    let mut paused = Vec::new();
    let ids = if args.what.starts_with(PauseId::PREFIX) {
        vec![args.what.clone()]
    } else {
        // A word that is none would read like nothing that is paused.
        match (KINDS.contains(&args.what.as_str()), args.what == ALL_OF_IT, &args.name) {
            (true, true, None) | (true, false, Some(_)) => {}
            (true, true, Some(_)) => return Err(Failure::new(Exit::Usage, "`all` has no name").into()),
            (true, false, None) => {
                let what = format!("the name: say which {} to resume", args.what);
                return Err(Failure::new(Exit::Usage, what).into());
            }
            (false, ..) => {
                let what = format!("what to resume: must be a pause's id or one of {}", KINDS.join(", "));
                return Err(Failure::new(Exit::Usage, what).into());
            }
        }
        let list: List = client.get(ALL).await?.ok()?.read("pauses")?;
        paused = list.found.iter().map(Entry::words).collect();
        let meant = |it: &Entry| it.what == args.what && it.name == args.name && it.tenant == args.tenant;
        list.found.into_iter().filter(meant).map(|it| it.id).collect()
    };
    for id in &ids {
        // It becomes part of a URL.
        let id: PauseId =
            id.parse().map_err(|_| Failure::new(Exit::Usage, "expected a pause's id: pau_ and 24 hex digits"))?;
        client.delete(&format!("{ALL}/{id}")).await?.ok()?;
    }
    match shell.look.format {
        Format::Json => print_json_text(&json!({ "resumed": ids }).to_string())?,
        Format::Table if ids.is_empty() => print(&nothing(&paused))?,
        Format::Table => print(&ids.iter().map(|id| format!("{id} lifted\n")).collect::<String>())?,
    }
    Ok(Exit::Ok)
}
