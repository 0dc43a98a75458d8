//! `restored`: what is held since the store was restored from a backup. Over the API while a server holds
//! the store, straight in the store otherwise.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use serde_json::json;

use super::Shell;
use super::client::{Client, ServerArgs};
use super::exit::{Exit, Failure};
use super::terminal::{Colour, Format, Look, print, print_json, table};
use super::way::{Way, failed};
use crate::app::restored::Wish;
use crate::http::problem::Problem;
use crate::http::restored::{CancelledView, HeldCount, HeldView, ReleasedView};

/// Stands in timelines for the key of a request, where there was none.
const BY: &str = "the command line";
const SAMPLE: usize = 20;

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
    /// Cancel what is held: all of it, or that of some classes
    Cancel(CancelArgs),
}

#[derive(Args)]
struct CancelArgs {
    /// Only of this class; may be given several times
    #[arg(long = "class", value_name = "CLASS")]
    classes: Vec<String>,
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
    let done = carry_out(shell, args, &way).await;
    if let Way::Store(stores) = way {
        stores.close().await;
    }
    done
}

async fn carry_out(shell: &Shell, args: &RestoredArgs, way: &Way) -> anyhow::Result<Exit> {
    let held = way.held().await?;
    let Some(restored_at) = held.restored_at.clone() else {
        return nothing(shell, &held);
    };
    match &args.command {
        None => shown(shell, &held, &restored_at),
        Some(RestoredCommand::Release { yes: false, .. }) => {
            let text = format!("{}\nGive --yes to let all of it go out.", words(&plain(), &held, &restored_at));
            Err(Failure::new(Exit::Usage, text).into())
        }
        Some(RestoredCommand::Release { .. }) => {
            way.release(&restored_at).await?;
            match shell.look.format {
                Format::Json => print_json(&json!({ "restored_at": restored_at, "released": held.held }))?,
                Format::Table => print(&format!("{} released: {}\n", deliveries(held.held), goes_out(way)))?,
            }
            Ok(Exit::Ok)
        }
        Some(RestoredCommand::Cancel(cancel)) => cancelled(shell, cancel, way, &restored_at).await,
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
    /// All that is held, counted page by page.
    async fn held(&self) -> Result<HeldView, Failure> {
        let mut all = self.held_page(None).await?;
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

fn shown(shell: &Shell, held: &HeldView, restored_at: &str) -> anyhow::Result<Exit> {
    match shell.look.format {
        Format::Json => print_json(held)?,
        Format::Table => print(&words(&shell.look, held, restored_at))?,
    }
    Ok(Exit::Ok)
}

const fn plain() -> Look {
    Look { format: Format::Table, colour: false, width: None }
}

fn words(look: &Look, held: &HeldView, restored_at: &str) -> String {
    let counted: u64 = held.counted.iter().map(|one| one.held).sum();
    let heading = format!("{} held: due before the store was restored at {restored_at}", deliveries(counted));
    let mut text = format!("{}\n", look.paint(Colour::Bold, &heading));
    if let (Some(oldest), Some(newest)) = (&held.oldest_due, &held.newest_due) {
        text.push_str(&format!("Due from {oldest} to {newest}. Any of it may have been sent before the loss.\n\n"));
    }
    let row =
        |one: &HeldCount| vec![one.class.clone(), one.channel.clone(), one.held.to_string(), one.expired.to_string()];
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
    text.push_str(
        "\nLet all of it go out: belfry restored release --yes\nCancel some first:    belfry restored cancel --class \
         marketing\n",
    );
    text
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
