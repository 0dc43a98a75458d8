//! `restored`: what is held since the store was restored from a backup. Over the API while a server holds
//! the store, straight in the store otherwise.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Args, Subcommand};
use serde_json::json;

use super::Shell;
use super::client::{Client, ServerArgs};
use super::exit::{Exit, Failure};
use super::terminal::{Colour, Format, Look, print, print_json, table};
use super::way::{Way, failed};
use crate::app::restored::{SAMPLE, Wish};
use crate::config::Config;
use crate::http::problem::Problem;
use crate::http::restored::{CancelledView, HeldCount, HeldView, ReleasedView};

/// Stands in timelines for the key of a request, where there was none.
const BY: &str = "the command line";

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct RestoredArgs {
    #[command(subcommand)]
    command: Option<RestoredCommand>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Subcommand)]
enum RestoredCommand {
    /// Let everything go out that is still held
    Release {
        /// Yes, although some of it may have been sent before
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Cancel what is held: that of some classes, or with --yes all of it
    Cancel(CancelArgs),
}

#[derive(Args)]
struct CancelArgs {
    /// Only of this class; may be given several times
    #[arg(long = "class", value_name = "CLASS")]
    classes: Vec<String>,
    /// Yes, all classes
    #[arg(long)]
    yes: bool,
    /// For the timelines
    #[arg(long)]
    why: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

pub async fn run(shell: &Shell, args: &RestoredArgs) -> anyhow::Result<Exit> {
    let config = shell.config()?;
    let server = match &args.command {
        None => &args.server,
        Some(RestoredCommand::Release { server, .. }) => server,
        Some(RestoredCommand::Cancel(cancel)) => &cancel.server,
    };
    let way = Way::to_the_store(&config, server, "this goes").await?;
    let again = format!("{}{}", shell.again(), server.again());
    let done = Job { shell, config: &config, way: &way, again }.carry_out(args).await;
    if let Way::Store(stores) = way {
        stores.close().await;
    }
    done
}

struct Job<'a> {
    shell: &'a Shell,
    config: &'a Config,
    way: &'a Way,
    /// The flags that another command needs to go the same way.
    again: String,
}

impl Job<'_> {
    async fn carry_out(&self, args: &RestoredArgs) -> anyhow::Result<Exit> {
        let (shell, way) = (self.shell, self.way);
        let first = way.held_page(None).await?;
        let Some(restored_at) = first.restored_at.clone() else {
            return nothing(shell, &first);
        };
        match &args.command {
            None => {
                let held = way.all_held(first).await?;
                match shell.look.format {
                    Format::Json => print_json(&held)?,
                    Format::Table => print(&self.words(&shell.look, &held, &restored_at))?,
                }
                Ok(Exit::Ok)
            }
            Some(RestoredCommand::Release { yes: false, .. }) => {
                self.unasked(first, &restored_at, "Give --yes to let all of it go out.").await
            }
            Some(RestoredCommand::Release { .. }) => {
                way.release(&restored_at).await?;
                match shell.look.format {
                    Format::Json => print_json(&json!({
                        "restored_at": restored_at, "released": true, "deliveries": first.held,
                    }))?,
                    Format::Table => print(&format!("{} released: {}\n", deliveries(first.held), goes_out(way)))?,
                }
                Ok(Exit::Ok)
            }
            Some(RestoredCommand::Cancel(cancel)) if cancel.classes.is_empty() && !cancel.yes => {
                let what = "Give --class to cancel that of one class, or --yes to cancel all of it.";
                self.unasked(first, &restored_at, what).await
            }
            Some(RestoredCommand::Cancel(cancel)) => {
                self.known(&cancel.classes, first).await?;
                cancelled(shell, cancel, way, &restored_at).await
            }
        }
    }

    /// What would be done, and how to say that it is meant.
    async fn unasked(&self, first: HeldView, restored_at: &str, what: &str) -> anyhow::Result<Exit> {
        let held = self.way.all_held(first).await?;
        let text = format!("{}\n{what}", self.words(&plain(), &held, restored_at));
        Err(Failure::new(Exit::Usage, text).into())
    }

    /// A mistyped class must not end as "0 cancelled", as if there were nothing of it.
    async fn known(&self, classes: &[String], first: HeldView) -> anyhow::Result<()> {
        let configured: BTreeSet<&str> = self.config.classes.keys().map(String::as_str).collect();
        if classes.iter().all(|class| configured.contains(class.as_str())) {
            return Ok(());
        }
        let held = self.way.all_held(first).await?;
        let held: BTreeSet<&str> = held.counted.iter().map(|one| one.class.as_str()).collect();
        let known = |class: &&String| configured.contains(class.as_str()) || held.contains(class.as_str());
        let Some(unknown) = classes.iter().find(|class| !known(class)) else { return Ok(()) };
        let list = |names: &BTreeSet<&str>| names.iter().copied().collect::<Vec<_>>().join(", ");
        let text = format!(
            "--class: there is no class \"{unknown}\"; held are those of {}; configured are {}",
            list(&held),
            list(&configured)
        );
        Err(Failure::new(Exit::Usage, text).into())
    }

    fn words(&self, look: &Look, held: &HeldView, restored_at: &str) -> String {
        let counted: u64 = held.counted.iter().map(|one| one.held).sum();
        let heading = format!("{} held: due before the store was restored at {restored_at}", deliveries(counted));
        let mut text = format!("{}\n", look.paint(Colour::Bold, &heading));
        if let (Some(oldest), Some(newest)) = (&held.oldest_due, &held.newest_due) {
            text.push_str(&format!("Due from {oldest} to {newest}. Any of it may have been sent before the loss.\n\n"));
        }
        let row = |one: &HeldCount| {
            vec![one.class.clone(), one.channel.clone(), one.held.to_string(), one.expired.to_string()]
        };
        let rows: Vec<Vec<String>> = held.counted.iter().map(row).collect();
        text.push_str(&table(look, &["CLASS", "CHANNEL", "HELD", "EXPIRED"], &rows));
        let rows: Vec<Vec<String>> = held
            .sample
            .iter()
            .map(|one| {
                let it = one.clone();
                vec![it.id, it.class, it.channel, it.state, it.due_at]
            })
            .collect();
        text.push('\n');
        text.push_str(&table(look, &["DELIVERY", "CLASS", "CHANNEL", "STATE", "DUE"], &rows));
        let class = held.counted.first().map_or("marketing", |one| one.class.as_str());
        text.push_str(&format!(
            "\nLet all of it go out: belfry restored release --yes{again}\nCancel some first:    belfry restored cancel \
             --class {class}{again}\n",
            again = self.again
        ));
        text
    }
}

/// Nothing to do is success: the same command may have done it before.
fn nothing(shell: &Shell, held: &HeldView) -> anyhow::Result<Exit> {
    match shell.look.format {
        Format::Json => print_json(held)?,
        Format::Table => print("Nothing is held: the store was not restored, or what was held has been released.\n")?,
    }
    Ok(Exit::Ok)
}

impl Way {
    /// All that is held, counted page by page on from the first.
    async fn all_held(&self, first: HeldView) -> Result<HeldView, Failure> {
        let mut all = first;
        let mut after = all.next_cursor.take();
        while let Some(cursor) = after {
            let mut page = self.held_page(Some(cursor)).await?;
            after = page.next_cursor.take();
            add(&mut all, page);
        }
        all.has_more = false;
        Ok(all)
    }

    async fn held_page(&self, after: Option<String>) -> Result<HeldView, Failure> {
        match self {
            Self::Store(stores) => {
                let found = stores.restored_here().preview(after).await.map_err(failed)?;
                Ok(HeldView::new(found))
            }
            Self::Api(client) => {
                // Letters, digits and dots alone.
                let query = after.map(|cursor| format!("?cursor={cursor}")).unwrap_or_default();
                client.get(&format!("/v1/restore{query}")).await?.ok()?.read("what is held")
            }
        }
    }

    async fn release(&self, restored_at: &str) -> Result<(), Failure> {
        match self {
            Self::Store(stores) => {
                let wish = wish(restored_at, None)?;
                let released = stores.restored_here().release(&wish).await.map_err(failed)?;
                ReleasedView::new(wish.restored_at, released).map_err(refused).map(drop)
            }
            Self::Api(client) => {
                let body = json!({ "restored_at": restored_at }).to_string();
                client.post("/v1/restore/release", None, body).await?.ok().map(drop)
            }
        }
    }

    async fn cancel_page(
        &self,
        restored_at: &str,
        args: &CancelArgs,
        after: Option<String>,
    ) -> Result<CancelledView, Failure> {
        match self {
            Self::Store(stores) => {
                let wish = wish(restored_at, args.why.clone())?;
                let told = stores.restored_here().cancel(&wish, &args.classes, after).await.map_err(failed)?;
                CancelledView::new(told).map_err(refused)
            }
            Self::Api(client) => over_the_api(client, restored_at, args, after).await,
        }
    }
}

async fn over_the_api(
    client: &Client,
    restored_at: &str,
    args: &CancelArgs,
    after: Option<String>,
) -> Result<CancelledView, Failure> {
    let mut body = json!({ "restored_at": restored_at });
    if !args.classes.is_empty() {
        body["classes"] = args.classes.clone().into();
    }
    for (member, value) in [("why", &args.why), ("cursor", &after)] {
        if let Some(value) = value {
            body[member] = value.as_str().into();
        }
    }
    let answer = client.post("/v1/restore/cancel", None, body.to_string()).await?;
    answer.ok_by_flags(&flag_of)?.read("what was cancelled")
}

fn flag_of(pointer: &str) -> Option<String> {
    match pointer {
        "/why" => Some("--why".into()),
        _ if pointer.starts_with("/classes") => Some("--class".into()),
        _ => None,
    }
}

fn wish(restored_at: &str, why: Option<String>) -> Result<Wish, Failure> {
    let at: jiff::Timestamp =
        restored_at.parse().map_err(|_| Failure::new(Exit::Failed, "the store says no moment of its hold"))?;
    let restored_at = belfry_domain::UnixMs(at.as_millisecond());
    Ok(Wish { by: BY.into(), restored_at, why: why.unwrap_or_default() })
}

fn refused(problem: Problem) -> Failure {
    Failure::new(Exit::Failed, problem.detail)
}

fn add(all: &mut HeldView, page: HeldView) {
    let mut by: BTreeMap<(String, String), HeldCount> = BTreeMap::new();
    for one in all.counted.drain(..).chain(page.counted) {
        let of = by.entry((one.class.clone(), one.channel.clone()));
        of.and_modify(|of| (of.held, of.expired) = (of.held + one.held, of.expired + one.expired)).or_insert(one);
    }
    all.counted = by.into_values().collect();
    // All of one length, in UTC: they sort as they are.
    all.oldest_due = all.oldest_due.take().into_iter().chain(page.oldest_due).min();
    all.newest_due = all.newest_due.take().max(page.newest_due);
    all.sample.extend(page.sample);
    all.sample.truncate(SAMPLE);
}

const fn plain() -> Look {
    Look { format: Format::Table, colour: false, width: None }
}

async fn cancelled(shell: &Shell, args: &CancelArgs, way: &Way, restored_at: &str) -> anyhow::Result<Exit> {
    let mut all = CancelledView { cancelled: 0, left: 0, has_more: true, next_cursor: None };
    while all.has_more {
        let page = way.cancel_page(restored_at, args, all.next_cursor.take()).await.map_err(|failure| {
            let text = format!("{failure}\nUntil then: {}The same command again finishes it.", told(&all));
            if all.cancelled == 0 { failure } else { Failure { text, ..failure } }
        })?;
        all = CancelledView { cancelled: all.cancelled + page.cancelled, left: all.left + page.left, ..page };
        if shell.look.format == Format::Table && all.has_more {
            eprintln!("{} cancelled so far", deliveries(all.cancelled));
        }
    }
    match shell.look.format {
        Format::Json => print_json(&json!({
            "restored_at": restored_at, "cancelled": all.cancelled, "left": all.left,
        }))?,
        Format::Table => print(&told(&all))?,
    }
    Ok(Exit::Ok)
}

fn told(all: &CancelledView) -> String {
    let left = if all.left == 0 { String::new() } else { format!("; {} of other classes still held", all.left) };
    format!("{} cancelled{left}\n", deliveries(all.cancelled))
}

fn deliveries(count: u64) -> String {
    if count == 1 { "1 delivery".into() } else { format!("{count} deliveries") }
}

/// A store that only one node can have is held by nobody while a command has it.
fn goes_out(way: &Way) -> &'static str {
    match way {
        Way::Api(_) => "it goes out now",
        Way::Store(_) => "it goes out as soon as a worker runs",
    }
}
