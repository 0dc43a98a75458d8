//! `schedules`: what is sent again and again.

mod picture;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shell;
use super::client::{Answer, Client, ServerArgs};
use super::exit::{Exit, Failure};
use super::spans::{instant, short};
use super::terminal::{Colour, Format, Look, print, print_json_text, table};
use crate::machine::MachineClock;
use crate::ports::clock::Clock as _;
use crate::ports::schedules::{NAME, is_name};
use crate::text_file;

const ALL: &str = "/v1/schedules";

#[derive(Subcommand)]
pub enum SchedulesCommand {
    /// Show all, with the next run of each and what became of its last
    List {
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Show one, its next runs drawn
    Show(OfArgs),
    /// Keep one, in place of the one of that name; safe to repeat
    Set(Box<SetArgs>),
    /// Have one wait; safe to repeat
    Pause(OfArgs),
    /// Have one go on with its next run; safe to repeat
    Resume(OfArgs),
    /// Remove one; safe to repeat
    Remove(OfArgs),
}

#[derive(Args)]
pub struct OfArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Args)]
pub struct SetArgs {
    /// Its name: lower-case letters, digits, `.`, `_` and `-`
    name: String,
    /// When, as in "0 9 * * mon-fri"
    #[arg(long, value_name = "EXPRESSION")]
    cron: String,
    /// The IANA time zone that these times are in, as in Europe/Stockholm
    #[arg(long, value_name = "ZONE")]
    time_zone: String,
    /// File with the notification in JSON, as POST /v1/notifications takes it
    #[arg(long, value_name = "FILE")]
    notification: PathBuf,
    /// What becomes of runs at which no node was there
    #[arg(long, value_enum)]
    missed: Option<Missed>,
    /// With catch-up: so many of the latest are made up for
    #[arg(long, value_name = "NUMBER")]
    most: Option<u16>,
    /// The last moment at which it may run, as in 2026-12-24T18:00:00Z
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only check it, and show its next runs
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum Missed {
    Skip,
    CatchUp,
}

#[derive(Deserialize)]
struct Shown {
    name: String,
    state: String,
    cron: String,
    time_zone: String,
    missed: MissedShown,
    until: Option<Timestamp>,
    notification: Summary,
    next_runs: Vec<Next>,
    last_run: Option<Last>,
    missed_runs: u64,
    paused_since: Option<Timestamp>,
    paused_by: Option<String>,
}

#[derive(Deserialize)]
struct MissedShown {
    policy: String,
    most: Option<u16>,
}

#[derive(Deserialize)]
struct Summary {
    class: String,
    template: Option<String>,
    recipient: Option<String>,
}

#[derive(Deserialize)]
struct Next {
    at: Timestamp,
    local: String,
}

#[derive(Deserialize)]
struct Last {
    due_at: Timestamp,
    outcome: String,
    notification: Option<Sent>,
    #[serde(default)]
    errors: Vec<Wrong>,
}

#[derive(Deserialize)]
struct Sent {
    id: String,
}

#[derive(Deserialize)]
struct Wrong {
    pointer: String,
    detail: String,
}

#[derive(Deserialize)]
struct Page {
    #[serde(rename = "data")]
    found: Vec<Shown>,
    next_cursor: Option<String>,
}

pub async fn run(shell: &Shell, command: &SchedulesCommand) -> anyhow::Result<Exit> {
    let client = |server| Client::discover(server, &shell.config()?).map_err(anyhow::Error::from);
    match command {
        SchedulesCommand::List { server } => list(shell, &client(server)?).await,
        SchedulesCommand::Show(args) => {
            let path = path_of(&args.name)?;
            told(shell, &client(&args.server)?.get(&path).await?.ok()?)
        }
        SchedulesCommand::Set(args) => {
            let path = path_of(&args.name)?;
            let path = if args.dry_run { format!("{path}?dry_run=true") } else { path };
            let body = args.body()?;
            let answer = client(&args.server)?.put(&path, body).await?;
            told(shell, &answer.ok_by_flags(&flag_of)?)
        }
        SchedulesCommand::Pause(args) => verb(shell, &client(&args.server)?, &args.name, "pause").await,
        SchedulesCommand::Resume(args) => verb(shell, &client(&args.server)?, &args.name, "resume").await,
        SchedulesCommand::Remove(args) => {
            client(&args.server)?.delete(&path_of(&args.name)?).await?.ok()?;
            match shell.look.format {
                Format::Json => print_json_text(&json!({ "removed": args.name }).to_string())?,
                Format::Table => print(&format!("{} is gone: nothing more of it is sent\n", args.name))?,
            }
            Ok(Exit::Ok)
        }
    }
}

async fn verb(shell: &Shell, client: &Client, name: &str, verb: &str) -> anyhow::Result<Exit> {
    let path = path_of(name)?;
    told(shell, &client.post(&format!("{path}/{verb}"), None, "{}".into()).await?.ok()?)
}

/// It becomes part of a URL.
fn path_of(name: &str) -> Result<String, Failure> {
    if is_name(name) { Ok(format!("{ALL}/{name}")) } else { Err(Failure::new(Exit::Usage, format!("the name {NAME}"))) }
}

impl SetArgs {
    fn body(&self) -> Result<String, Failure> {
        let wrong =
            |why: String| Failure::new(Exit::Usage, format!("--notification {}: {why}", self.notification.display()));
        let text = text_file::read(&self.notification, text_file::SMALL).map_err(|error| wrong(error.to_string()))?;
        // As it is written: what a webhook is given goes out byte for byte.
        let notification: Box<serde_json::value::RawValue> =
            serde_json::from_str(&text).map_err(|error| wrong(format!("is no JSON: {error}")))?;
        let mut rest = json!({ "cron": self.cron, "time_zone": self.time_zone });
        if let Some(until) = &self.until {
            rest["until"] = until.as_str().into();
        }
        match (self.missed, self.most) {
            (None, None) => {}
            (None, Some(_)) | (Some(Missed::CatchUp), None) => {
                let what = "--missed catch-up and --most stand together";
                return Err(Failure::new(Exit::Usage, what));
            }
            (Some(Missed::Skip), None) => rest["missed"] = json!({ "policy": "skip" }),
            (Some(Missed::Skip), Some(most)) => rest["missed"] = json!({ "policy": "skip", "most": most }),
            (Some(Missed::CatchUp), Some(most)) => rest["missed"] = json!({ "policy": "catch_up", "most": most }),
        }
        let rest = rest.to_string();
        Ok(format!("{{\"notification\":{notification},{}", &rest[1..]))
    }
}

fn flag_of(pointer: &str) -> Option<String> {
    Some(match pointer {
        "/cron" => "--cron".into(),
        "/time_zone" => "--time-zone".into(),
        "/until" => "--until".into(),
        "/missed/most" => "--most".into(),
        _ => format!("--notification, at {}", pointer.strip_prefix("/notification")?),
    })
}

async fn list(shell: &Shell, client: &Client) -> anyhow::Result<Exit> {
    let (mut found, mut values, mut after) = (Vec::new(), Vec::new(), None::<String>);
    loop {
        let path = after.map_or_else(|| ALL.to_owned(), |after| format!("{ALL}?cursor={after}"));
        let answer = client.patiently(|| client.get(&path)).await?.ok()?;
        let page: Page = answer.read("schedules")?;
        found.extend(page.found);
        if let Some(Value::Array(all)) = answer.body.get("data") {
            values.extend(all.iter().cloned());
        }
        after = page.next_cursor;
        if after.is_none() {
            break;
        }
    }
    match shell.look.format {
        Format::Json => print_json_text(&json!({ "data": values }).to_string())?,
        Format::Table => print(&listed(&shell.look, &found, now()))?,
    }
    Ok(Exit::Ok)
}

fn told(shell: &Shell, answer: &Answer) -> anyhow::Result<Exit> {
    match shell.look.format {
        Format::Json => print_json_text(&answer.text)?,
        Format::Table => print(&drawn(&shell.look, &answer.read("a schedule")?, now()))?,
    }
    Ok(Exit::Ok)
}

fn now() -> Timestamp {
    Timestamp::from_millisecond(MachineClock.now().0).unwrap_or_default()
}

fn far(now: Timestamp, at: Timestamp) -> String {
    match Duration::try_from(at.duration_since(now)) {
        Ok(ahead) => format!("in {}", short(ahead)),
        Err(_) => "now".into(),
    }
}

fn listed(look: &Look, found: &[Shown], now: Timestamp) -> String {
    if found.is_empty() {
        return "there are no schedules\n".into();
    }
    let row = |it: &Shown| {
        let next = it.next_runs.first().map(|run| format!("{} ({})", run.local, far(now, run.at)));
        let last = it.last_run.as_ref().map(|last| format!("{} {}", last.outcome, instant(last.due_at)));
        let sends = [Some(it.notification.class.clone()), it.notification.template.clone()];
        vec![
            it.name.clone(),
            state(look, &it.state),
            it.cron.clone(),
            it.time_zone.clone(),
            next.unwrap_or_default(),
            last.unwrap_or_default(),
            sends.into_iter().flatten().collect::<Vec<_>>().join(" "),
        ]
    };
    let rows: Vec<Vec<String>> = found.iter().map(row).collect();
    table(look, &["SCHEDULE", "STATE", "CRON", "ZONE", "NEXT RUN THERE", "LAST RUN", "SENDS"], &rows)
}

fn state(look: &Look, state: &str) -> String {
    match state {
        "active" => look.paint(Colour::Green, state),
        "paused" => look.paint(Colour::Yellow, state),
        _ => look.paint(Colour::Faint, state),
    }
}

fn drawn(look: &Look, it: &Shown, now: Timestamp) -> String {
    let name = look.paint(Colour::Bold, &it.name);
    let mut text = format!("{name}  {}  {}  {}\n", state(look, &it.state), it.cron, it.time_zone);
    let whom = it.notification.recipient.as_ref().map(|name| format!(" to {name}")).unwrap_or_default();
    let from = it.notification.template.as_ref().map(|it| format!(", made from {it}")).unwrap_or_default();
    text.push_str(&format!("Sends {}{from}{whom}.", it.notification.class));
    if let Some(until) = it.until {
        text.push_str(&format!(" Last at {}.", instant(until)));
    }
    match (it.missed.policy.as_str(), it.missed.most) {
        ("catch_up", Some(most)) => text.push_str(&format!(" Up to {most} missed runs are made up for.")),
        _ => text.push_str(" Missed runs are skipped."),
    }
    if it.missed_runs > 0 {
        text.push_str(&format!(" So far {} were let go.", it.missed_runs));
    }
    text.push('\n');
    if let (Some(since), Some(by)) = (it.paused_since, &it.paused_by) {
        text.push_str(&format!("Paused since {} by {by}.\n", instant(since)));
    }
    text.push_str(&last_run(it));
    let runs: Vec<(Timestamp, String)> = it.next_runs.iter().map(|run| (run.at, run.local.clone())).collect();
    if !runs.is_empty() {
        text.push('\n');
        text.push_str(&picture::drawn(look, &runs, now));
    }
    text
}

fn last_run(it: &Shown) -> String {
    let Some(last) = &it.last_run else { return "It has not run yet.\n".into() };
    let due = instant(last.due_at);
    match &last.notification {
        Some(sent) => format!("Last run {due}: {} ({}).\n", sent.id, last.outcome),
        None => {
            let errors = last.errors.iter().map(|wrong| format!("  {} {}\n", wrong.pointer, wrong.detail));
            format!("Last run {due}: {}.\n{}", last.outcome, errors.collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown() -> Shown {
        let read = json!({
            "name": "weekly-report", "state": "active", "cron": "30 2 * * *", "time_zone": "America/New_York",
            "missed": {"policy": "catch_up", "most": 3},
            "notification": {"class": "digest", "template": "report", "recipient": "ann"},
            "next_runs": [
                {"at": "2026-03-07T07:30:00.000Z", "local": "2026-03-07T02:30:00"},
                {"at": "2026-03-08T07:00:00.000Z", "local": "2026-03-08T03:00:00"},
            ],
            "last_run": {"due_at": "2026-03-06T07:30:00.000Z", "at": "2026-03-06T07:30:00.010Z", "outcome": "refused",
                "errors": [{"pointer": "/notification/template", "detail": "is no template"}]},
            "missed_runs": 2,
        });
        serde_json::from_value(read).unwrap()
    }

    #[test]
    fn one_is_drawn_with_its_next_runs_and_why_the_last_was_refused() {
        let look = Look { format: Format::Table, colour: false, width: None };
        let text = drawn(&look, &shown(), "2026-03-06T19:30:00Z".parse().unwrap());
        for words in [
            "weekly-report  active  30 2 * * *  America/New_York\n",
            "Sends digest, made from report to ann. Up to 3 missed runs are made up for. So far 2 were let go.\n",
            "Last run 2026-03-06T07:30:00.000Z: refused.\n  /notification/template is no template\n",
            "Sat 2026-03-07 02:30:00  in 12h 0m\n",
            "Sun 2026-03-08 03:00:00  in 1d 11h\n",
        ] {
            assert!(text.contains(words), "{words:?} in\n{text}");
        }
        let listed = listed(&look, &[shown()], "2026-03-06T19:30:00Z".parse().unwrap());
        assert!(listed.contains("2026-03-07T02:30:00 (in 12h 0m)") && listed.contains("digest report"), "{listed}");
    }

    #[test]
    fn a_name_that_would_change_the_url_is_none() {
        assert_eq!(path_of("a.b_c-1").unwrap(), "/v1/schedules/a.b_c-1");
        for bad in ["", ".", "..", "a/b", "A", "a b", "ä", "-a", &"a".repeat(65)] {
            assert!(path_of(bad).is_err(), "{bad}");
        }
    }
}
