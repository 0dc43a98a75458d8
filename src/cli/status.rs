//! `status ID`: where a notification and its deliveries stand.

use clap::Args;

use super::Shell;
use super::client::{Answer, Client, ServerArgs};
use super::exit::{Exit, Failure};
use super::terminal::{Colour, Format, Look, print, table};
use super::view::NotificationView;

#[derive(Args)]
pub struct StatusArgs {
    /// The notification: ntf_…
    id: String,
    #[command(flatten)]
    server: ServerArgs,
}

pub async fn run(shell: &Shell, args: &StatusArgs) -> anyhow::Result<Exit> {
    let client = Client::discover(&args.server, &shell.config()?)?;
    let answer = fetch(&client, &args.id).await?;
    match shell.look.format {
        Format::Json => print(&format!("{}\n", answer.text.trim_end()))?,
        Format::Table => print(&drawn(&shell.look, &NotificationView::of(&answer)?))?,
    }
    Ok(Exit::Ok)
}

/// # Errors
/// The id is none, the notification is not to be had, or the server is away.
pub async fn fetch(client: &Client, id: &str) -> Result<Answer, Failure> {
    if id.parse::<belfry_domain::NotificationId>().is_err() {
        return Err(Failure::new(Exit::Usage, "expected a notification's id: ntf_ and 24 hex digits"));
    }
    client.get(&format!("/v1/notifications/{id}")).await?.ok()
}

/// The heading and one row for each delivery.
#[must_use]
pub fn drawn(look: &Look, it: &NotificationView) -> String {
    let repeats = match it.repeats {
        0 => String::new(),
        1 => ", 1 repeat recognised".into(),
        many => format!(", {many} repeats recognised"),
    };
    let mut text = format!("{}  {}  {}{repeats}\n", look.paint(Colour::Bold, &it.id), it.class, look.state(&it.state));
    let rows: Vec<Vec<String>> = it
        .deliveries
        .iter()
        .map(|one| vec![one.id.clone(), one.channel.clone(), look.state(&one.state), one.reason.clone()])
        .collect();
    text.push_str(&table(look, &["DELIVERY", "CHANNEL", "STATE", "WHY"], &rows));
    text
}
