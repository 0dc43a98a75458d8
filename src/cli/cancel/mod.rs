//! `cancel`: one notification, or all that filters find, page by page.

mod many;

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shell;
use super::client::{Client, ServerArgs};
use super::exit::{Exit, Failure};
use super::filters::{Filters, flag_of};
use super::terminal::{Format, print, print_json_text};
use super::view::NotificationView;

#[derive(Args)]
pub struct CancelArgs {
    /// The notification: ntf_…; or filters, of which all must hold
    id: Option<String>,
    #[command(flatten)]
    filters: Filters,
    /// For the timelines; filters need it unless it is a dry run
    #[arg(long)]
    why: Option<String>,
    /// Only count what filters find
    #[arg(long, conflicts_with = "id")]
    dry_run: bool,
    /// Go on where an earlier command came to: printed when it was broken off
    #[arg(long, conflicts_with = "id")]
    cursor: Option<String>,
    /// First pause the group, the template or the class, so that nothing goes out meanwhile
    #[arg(long, conflicts_with_all = ["id", "dry_run"])]
    pause: bool,
    /// Afterwards write who may have got it into a new file, .csv or .ndjson
    #[arg(long, value_name = "FILE", conflicts_with = "id")]
    export: Option<PathBuf>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// In deliveries.
#[derive(Default, Deserialize)]
struct Tally {
    notifications: usize,
    cancelled: u64,
    cancelled_before: u64,
    in_flight: u64,
    ended: u64,
    out: u64,
}

/// Of one notification, by delivery.
#[derive(Deserialize)]
struct Told {
    notification: NotificationView,
    cancelled: Vec<String>,
    in_flight: Vec<String>,
    ended: Vec<String>,
}

pub async fn run(shell: &Shell, args: &CancelArgs) -> anyhow::Result<Exit> {
    let filters = args.filters.members();
    match (&args.id, filters.is_empty()) {
        (Some(id), true) => one(shell, args, &Client::discover(&args.server, &shell.config()?)?, id).await,
        (None, false) => many::run(shell, args, &filters).await,
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
    let out = told.notification.deliveries.iter().filter(|one| one.may_have_arrived && one.state != "sending");
    let tally = Tally {
        notifications: 1,
        cancelled: count(&told.cancelled),
        cancelled_before: 0,
        in_flight: count(&told.in_flight),
        ended: count(&told.ended),
        out: out.count() as u64,
    };
    print(&tally.words(false))?;
    Ok(Exit::Ok)
}

impl Tally {
    fn add(&mut self, page: &Self) {
        self.notifications += page.notifications;
        self.cancelled += page.cancelled;
        self.cancelled_before += page.cancelled_before;
        self.in_flight += page.in_flight;
        self.ended += page.ended;
        self.out += page.out;
    }

    fn members(&self, dry_run: bool) -> Value {
        json!({
            "dry_run": dry_run, "notifications": self.notifications, "cancelled": self.cancelled,
            "cancelled_before": self.cancelled_before, "in_flight": self.in_flight, "ended": self.ended,
            "out": self.out,
        })
    }

    fn words(&self, dry_run: bool) -> String {
        let plural = |count: u64, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        let found = plural(self.notifications as u64, "notification", "notifications");
        let deliveries = |count: u64| plural(count, "delivery", "deliveries");
        let before = self.cancelled_before;
        let verb = match (dry_run, before) {
            (true, 0) => format!("{} would be cancelled", deliveries(self.cancelled)),
            (true, _) => {
                format!("{} would be cancelled, {before} had been before", deliveries(self.cancelled - before))
            }
            (false, 0) => format!("{} cancelled", deliveries(self.cancelled)),
            (false, _) => format!("{} cancelled ({before} had been before)", deliveries(self.cancelled)),
        };
        format!(
            "{found}: {verb}, {} in flight (no further attempt follows), {} ended before; {} of all may have reached \
             somebody\n",
            self.in_flight, self.ended, self.out,
        )
    }
}
