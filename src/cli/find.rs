//! `find`: which notifications there are, newest first.

use clap::Args;

use super::Shell;
use super::client::{Client, ServerArgs};
use super::exit::Exit;
use super::filters::{Filters, flag_of};
use super::terminal::{Format, Look, print, print_json_text, table};
use super::view::{NotificationView, Page};

#[derive(Args)]
pub struct FindArgs {
    #[command(flatten)]
    filters: Filters,
    /// How many at most, up to 100
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100))]
    limit: u16,
    /// Where to go on: printed under a page that has more after it
    #[arg(long)]
    cursor: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

pub async fn run(shell: &Shell, args: &FindArgs) -> anyhow::Result<Exit> {
    let client = Client::discover(&args.server, &shell.config()?)?;
    let mut body = args.filters.members();
    body.insert("limit".into(), args.limit.into());
    if let Some(cursor) = &args.cursor {
        body.insert("cursor".into(), cursor.as_str().into());
    }
    let body = serde_json::Value::from(body).to_string();
    let answer = client.post("/v1/notifications/search", None, body).await?.ok_by_flags(&flag_of)?;
    match shell.look.format {
        Format::Json => print_json_text(&answer.text)?,
        Format::Table => print(&drawn(&shell.look, &answer.read("a page of notifications")?))?,
    }
    Ok(Exit::Ok)
}

fn drawn(look: &Look, page: &Page) -> String {
    if page.found().is_empty() {
        return "nothing found\n".into();
    }
    let row = |it: &NotificationView| {
        // Where it is not at its end, what holds it up is of interest.
        let first = it.deliveries.iter().find(|one| one.state == it.state).or(it.deliveries.first());
        let more = it.deliveries.len().saturating_sub(1);
        let more = if more > 0 { format!(" +{more}") } else { String::new() };
        let to = first.map(|one| format!("{} {}{more}", one.channel, one.whereto())).unwrap_or_default();
        let why = first.map(|one| one.reason.clone()).unwrap_or_default();
        vec![it.id.clone(), format!("{:.0}", it.created_at), it.class.clone(), look.state(&it.state), to, why]
    };
    let rows: Vec<Vec<String>> = page.found().iter().map(row).collect();
    let mut text = table(look, &["NOTIFICATION", "RECEIVED", "CLASS", "STATE", "TO", "WHY"], &rows);
    if let Some(cursor) = &page.next_cursor {
        text.push_str(&format!("There are more: give the command again with --cursor {cursor}\n"));
    }
    text
}
