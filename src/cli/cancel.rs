//! `cancel`: one notification, or all that filters find.

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shell;
use super::client::{Client, ServerArgs};
use super::exit::{Exit, Failure};
use super::filters::{Filters, flag_of};
use super::terminal::{Format, print, print_json, print_json_text};

#[derive(Args)]
pub struct CancelArgs {
    /// The notification: ntf_…; or filters, of which all must hold
    id: Option<String>,
    #[command(flatten)]
    filters: Filters,
    /// For the timelines
    #[arg(long)]
    why: Option<String>,
    /// Only count what filters find
    #[arg(long, conflicts_with = "id")]
    dry_run: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// In deliveries.
#[derive(Default, Deserialize)]
struct Tally {
    notifications: u64,
    cancelled: u64,
    in_flight: u64,
    ended: u64,
    next_cursor: Option<String>,
}

/// Of one notification, by delivery.
#[derive(Deserialize)]
struct Told {
    cancelled: Vec<String>,
    in_flight: Vec<String>,
    ended: Vec<String>,
}

pub async fn run(shell: &Shell, args: &CancelArgs) -> anyhow::Result<Exit> {
    let filters = args.filters.members();
    let client = Client::discover(&args.server, &shell.config()?)?;
    match (&args.id, filters.is_empty()) {
        (Some(id), true) => one(shell, args, &client, id).await,
        (None, false) => many(shell, args, &client, &filters.into()).await,
        (Some(_), false) => Err(Failure::new(Exit::Usage, "give a notification or filters, not both").into()),
        // A slip of the pen must not cancel everything.
        (None, true) => Err(Failure::new(Exit::Usage, "what? Give a notification (ntf_…) or a filter").into()),
    }
}

async fn one(shell: &Shell, args: &CancelArgs, client: &Client, id: &str) -> anyhow::Result<Exit> {
    if id.parse::<belfry_domain::NotificationId>().is_err() {
        return Err(Failure::new(Exit::Usage, "expected a notification's id: ntf_ and 24 hex digits").into());
    }
    let body = args.why.as_ref().map_or_else(|| json!({}), |why| json!({ "why": why }));
    let path = format!("/v1/notifications/{id}/cancel");
    let answer = client.post(&path, None, body.to_string()).await?.ok_by_flags(&flag_of)?;
    if shell.look.format == Format::Json {
        print_json_text(&answer.text)?;
        return Ok(Exit::Ok);
    }
    let told: Told = answer.read("a cancellation")?;
    let count = |ids: &[String]| ids.len() as u64;
    let (cancelled, in_flight, ended) = (count(&told.cancelled), count(&told.in_flight), count(&told.ended));
    print(&words(&Tally { notifications: 1, cancelled, in_flight, ended, next_cursor: None }, false))?;
    Ok(Exit::Ok)
}

async fn many(shell: &Shell, args: &CancelArgs, client: &Client, filter: &Value) -> anyhow::Result<Exit> {
    let mut all = Tally::default();
    loop {
        let mut body = json!({ "filter": filter, "dry_run": args.dry_run });
        for (member, value) in [("why", &args.why), ("cursor", &all.next_cursor)] {
            if let Some(value) = value {
                body[member] = value.as_str().into();
            }
        }
        let answer = client.post("/v1/cancellations", None, body.to_string()).await;
        let answer = answer.and_then(|answer| answer.ok_by_flags(&flag_of)).map_err(|failure| {
            let text =
                format!("{failure}\nUntil then: {}The same command again finishes it.", words(&all, args.dry_run));
            if all.notifications == 0 { failure } else { Failure { text, ..failure } }
        })?;
        let page: Tally = answer.read("a cancellation")?;
        all.notifications += page.notifications;
        all.cancelled += page.cancelled;
        all.in_flight += page.in_flight;
        all.ended += page.ended;
        all.next_cursor = page.next_cursor;
        if all.next_cursor.is_none() {
            break;
        }
    }
    match shell.look.format {
        Format::Json => print_json(&json!({
            "dry_run": args.dry_run, "notifications": all.notifications, "cancelled": all.cancelled,
            "in_flight": all.in_flight, "ended": all.ended,
        }))?,
        Format::Table => print(&words(&all, args.dry_run))?,
    }
    Ok(Exit::Ok)
}

fn words(tally: &Tally, dry_run: bool) -> String {
    let plural = |count: u64, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let found = plural(tally.notifications, "notification", "notifications");
    let verb = if dry_run { "would be cancelled" } else { "cancelled" };
    format!(
        "{found}: {} {verb}, {} in flight (no further attempt follows), {} ended before\n",
        plural(tally.cancelled, "delivery", "deliveries"),
        tally.in_flight,
        tally.ended,
    )
}
