//! `suppressions`: whom nothing of a kind is to go to. An address is sent in a request's body, and is never printed.

mod import;
mod rows;

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shell;
use super::client::{Answer, Client, ServerArgs};
use super::csv;
use super::exit::{Exit, Failure};
use super::terminal::{Format, Look, print, print_json_text, table};
use crate::ports::suppressions::SuppressionId;

const ALL: &str = "/v1/suppressions";
/// What an export asks for at once.
const PAGE: usize = 500;

#[derive(Subcommand)]
pub enum SuppressionsCommand {
    /// Show suppressions, newest first
    List {
        /// How many at most, up to 500
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=500))]
        limit: u16,
        /// Where to go on: printed under a page that has more after it
        #[arg(long)]
        cursor: Option<String>,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Show what holds back messages to an address now
    Check {
        #[command(flatten)]
        whom: Whom,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Suppress an address; safe to repeat
    Add(AddArgs),
    /// Lift a suppression, or all that hold back messages to an address now
    Remove {
        /// A suppression's id (sup_…), or an address
        what: String,
        /// Of an address
        #[arg(long, default_value = "email")]
        channel: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Suppress all addresses of a CSV file; safe to repeat
    Import(import::ImportArgs),
    /// Print all suppressions as CSV, with masked addresses: the addresses themselves are not kept
    Export {
        #[command(flatten)]
        server: ServerArgs,
    },
}

#[derive(Args)]
pub struct Whom {
    address: String,
    /// email, sms, webhook or chat
    #[arg(long, default_value = "email")]
    channel: String,
}

#[derive(Args)]
pub struct AddArgs {
    #[command(flatten)]
    whom: Whom,
    /// manual, hard_bounce, complaint or unsubscribe; absent: manual
    #[arg(long)]
    kind: Option<String>,
    /// Only messages of this class
    #[arg(long, value_name = "CLASS")]
    category: Option<String>,
    /// Over by itself from then on, as in 2026-12-24T18:00:00Z
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// For people
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    channel: String,
    address: String,
    kind: String,
    category: Option<String>,
    sender: Option<String>,
    since: String,
    until: Option<String>,
    origin: String,
    note: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    #[serde(rename = "data")]
    found: Vec<Entry>,
    next_cursor: Option<String>,
}

pub async fn run(shell: &Shell, command: &SuppressionsCommand) -> anyhow::Result<Exit> {
    let client = |server: &ServerArgs| Ok::<_, anyhow::Error>(Client::discover(server, &shell.config()?)?);
    match command {
        SuppressionsCommand::List { limit, cursor, server } => {
            let answer = page(&client(server)?, (*limit).into(), cursor.as_deref()).await?;
            shown(shell, &answer)?;
        }
        SuppressionsCommand::Check { whom, server } => {
            let answer = client(server)?.post(&format!("{ALL}/check"), None, whom.body().to_string()).await?;
            shown(shell, &answer.ok_by_flags(&flag_of)?)?;
        }
        SuppressionsCommand::Add(args) => {
            let answer = client(&args.server)?.post(ALL, None, args.body().to_string()).await?;
            let answer = answer.ok_by_flags(&flag_of)?;
            let before = answer.status != reqwest::StatusCode::CREATED;
            shown_one(shell, &answer, if before { "It was suppressed before.\n" } else { "" })?;
        }
        SuppressionsCommand::Remove { what, channel, server } => {
            let client = client(server)?;
            return remove(shell, &client, what, channel).await;
        }
        SuppressionsCommand::Import(args) => return import::run(shell, args, &client(args.server())?).await,
        SuppressionsCommand::Export { server } => export(&client(server)?).await?,
    }
    Ok(Exit::Ok)
}

impl Whom {
    fn body(&self) -> Value {
        json!({ "channel": self.channel, "address": self.address })
    }
}

impl AddArgs {
    fn body(&self) -> Value {
        let mut body = self.whom.body();
        let given = [("kind", &self.kind), ("category", &self.category), ("until", &self.until), ("note", &self.note)];
        for (member, value) in given {
            if let Some(value) = value {
                body[member] = value.as_str().into();
            }
        }
        body
    }
}

fn flag_of(pointer: &str) -> Option<String> {
    let name = pointer.strip_prefix('/')?;
    match name {
        "address" => Some("the address".into()),
        "channel" | "kind" | "category" | "until" | "note" => Some(format!("--{name}")),
        "query/cursor" => Some("--cursor".into()),
        _ => None,
    }
}

async fn page(client: &Client, limit: usize, cursor: Option<&str>) -> Result<Answer, Failure> {
    let fits = |cursor: &&str| cursor.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let cursor = match cursor {
        Some(cursor) if !fits(&cursor) => return Err(Failure::new(Exit::Usage, "--cursor: none that was printed")),
        Some(cursor) => format!("&cursor={cursor}"),
        None => String::new(),
    };
    let path = format!("{ALL}?limit={limit}{cursor}");
    client.patiently(|| client.get(&path)).await?.ok_by_flags(&flag_of)
}

fn shown(shell: &Shell, answer: &Answer) -> anyhow::Result<()> {
    match shell.look.format {
        Format::Json => print_json_text(&answer.text)?,
        Format::Table => print(&drawn(&shell.look, &answer.read("suppressions")?))?,
    }
    Ok(())
}

fn shown_one(shell: &Shell, answer: &Answer, note: &str) -> anyhow::Result<()> {
    match shell.look.format {
        Format::Json => print_json_text(&answer.text)?,
        Format::Table => {
            let page = Page { found: vec![answer.read("a suppression")?], next_cursor: None };
            print(&format!("{}{note}", drawn(&shell.look, &page)))?;
        }
    }
    Ok(())
}

fn drawn(look: &Look, page: &Page) -> String {
    if page.found.is_empty() {
        return "nothing is suppressed\n".into();
    }
    let row = |it: &Entry| {
        let until = it.until.as_ref().map(|until| format!(", until {until}")).unwrap_or_default();
        let category = it.category.as_deref().unwrap_or("all");
        let note = it.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
        let why = format!("{} {}{until}{note}", it.origin, it.since);
        vec![it.id.clone(), it.channel.clone(), it.address.clone(), it.kind.clone(), category.into(), why]
    };
    let rows: Vec<Vec<String>> = page.found.iter().map(row).collect();
    let mut text = table(look, &["SUPPRESSION", "CHANNEL", "ADDRESS", "KIND", "OF", "SAID BY"], &rows);
    if let Some(cursor) = &page.next_cursor {
        text.push_str(&format!("There are more: give the command again with --cursor {cursor}\n"));
    }
    text
}

async fn remove(shell: &Shell, client: &Client, what: &str, channel: &str) -> anyhow::Result<Exit> {
    let ids = if what.starts_with(SuppressionId::PREFIX) && !what.contains('@') {
        let id: SuppressionId = what
            .parse()
            .map_err(|_| Failure::new(Exit::Usage, "expected a suppression's id: sup_ and 48 hex digits"))?;
        vec![id.to_string()]
    } else {
        let body = json!({ "channel": channel, "address": what }).to_string();
        let answer = client.post(&format!("{ALL}/check"), None, body).await?.ok_by_flags(&flag_of)?;
        answer.read::<Page>("suppressions")?.found.into_iter().map(|entry| entry.id).collect()
    };
    for id in &ids {
        // It becomes part of a URL.
        let id: SuppressionId = id.parse().map_err(|_| Failure::new(Exit::Failed, "the server gave no such id"))?;
        client.delete(&format!("{ALL}/{id}")).await?.ok()?;
    }
    match shell.look.format {
        Format::Json => print_json_text(&json!({ "lifted": ids }).to_string())?,
        Format::Table if ids.is_empty() => print("nothing is suppressed there\n")?,
        Format::Table => print(&ids.iter().map(|id| format!("{id} lifted\n")).collect::<String>())?,
    }
    Ok(Exit::Ok)
}

async fn export(client: &Client) -> anyhow::Result<()> {
    print("id,channel,address,kind,category,sender,since,until,origin,note\n")?;
    let mut cursor = None::<String>;
    loop {
        let page: Page = page(client, PAGE, cursor.as_deref()).await?.read("suppressions")?;
        for it in page.found {
            let text = |value: Option<String>| value.unwrap_or_default();
            let row = [
                it.id,
                it.channel,
                it.address,
                it.kind,
                text(it.category),
                text(it.sender),
                it.since,
                text(it.until),
                it.origin,
                text(it.note),
            ];
            print(&csv::written(&row))?;
        }
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return Ok(()),
        }
    }
}
