//! `find`: which notifications there are, newest first.

use std::collections::BTreeMap;

use clap::Args;

use super::Shell;
use super::client::{Client, ServerArgs};
use super::exit::Exit;
use super::filters::{Filters, flag_of};
use super::terminal::{Format, Look, print, print_json_text, table};
use super::view::{DeliveryView, NotificationView, Page};

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

/// The delivery that was searched for; else the one whose state is that of the whole: where it is not at its end, what
/// holds it up is of interest.
fn told_of(it: &NotificationView) -> Option<&DeliveryView> {
    let all = &it.deliveries;
    let searched = all.iter().find(|one| one.matches == Some(true));
    searched.or_else(|| all.iter().find(|one| one.state == it.state)).or(all.first())
}

/// How its other deliveries stand, so that one that ended otherwise does not speak for all: ` +3: 2 accepted, 1 bounced`.
fn others(it: &NotificationView, told: &DeliveryView) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for one in it.deliveries.iter().filter(|one| one.id != told.id) {
        *counts.entry(&one.state).or_default() += 1;
    }
    let all: usize = counts.values().sum();
    let words: Vec<String> = counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
    if all == 0 { String::new() } else { format!(" +{all}: {}", words.join(", ")) }
}

fn drawn(look: &Look, page: &Page) -> String {
    if page.found().is_empty() {
        return "nothing found\n".into();
    }
    let row = |it: &NotificationView| {
        let Some(first) = told_of(it) else { return Vec::new() };
        let to = format!("{} {}{}", first.channel, first.whereto(), others(it, first));
        let received = format!("{:.0}", it.created_at);
        vec![it.id.clone(), received, it.class.clone(), look.state(&first.state), to, first.reason.clone()]
    };
    let rows: Vec<Vec<String>> = page.found().iter().map(row).collect();
    let mut text = table(look, &["NOTIFICATION", "RECEIVED", "CLASS", "STATE", "TO", "WHY"], &rows);
    if let Some(cursor) = &page.next_cursor {
        text.push_str(&format!("There are more: give the command again with --cursor {cursor}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_searched_for_is_told_of_and_the_others_are_counted() {
        let page = |searched: &str| {
            let one = |id: u8, slot: &str, state: &str, reason: &str| {
                format!(
                    r#"{{"id":"dlv_00000000000000000000000{id}","channel":"email","slot":"{slot}","address":"{id}…@example.com",
                        "state":"{state}","reason":"{reason}","matches":{}}}"#,
                    slot == searched
                )
            };
            let all = [
                one(1, "to", "accepted", "It went out."),
                one(2, "cc/0", "suppressed", "Blocked."),
                one(3, "bcc/0", "accepted", "It went out."),
            ];
            let json = format!(
                r#"{{"data":[{{"id":"ntf_000000000000000000000001","class":"receipt","state":"suppressed",
                    "created_at":"2026-11-29T12:00:00Z","deliveries":[{}]}}]}}"#,
                all.join(",")
            );
            drawn(&Look { format: Format::Table, colour: false, width: None }, &serde_json::from_str(&json).unwrap())
        };
        for (searched, state, to, why) in [
            ("to", "accepted", "email 1…@example.com +2: 1 accepted, 1 suppressed", "It went out."),
            ("cc/0", "suppressed", "email cc 2…@example.com +2: 2 accepted", "Blocked."),
            ("bcc/0", "accepted", "email bcc 3…@example.com +2: 1 accepted, 1 suppressed", "It went out."),
            // By something else than its address.
            ("", "suppressed", "email cc 2…@example.com +2: 2 accepted", "Blocked."),
        ] {
            let text = page(searched);
            let line = text.lines().nth(1).unwrap();
            assert!(
                line.contains(&format!("{state} ")) && line.contains(to) && line.ends_with(why),
                "{searched}: {text}"
            );
        }
    }
}
