//! `status ID`: where a notification and its deliveries stand; without an id, how the server stands.

use clap::Args;
use serde::Deserialize;

use super::Shell;
use super::client::{Answer, Client, ServerArgs};
use super::exit::{Exit, Failure};
use super::terminal::{Colour, Format, Look, print, print_json_text, table, table_of_sentences, wrapped};
use super::view::{DeliveryView, NotificationView};

#[derive(Args)]
pub struct StatusArgs {
    /// The notification, ntf_…, or one of its deliveries, dlv_…; absent: the server itself
    id: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

pub async fn run(shell: &Shell, args: &StatusArgs) -> anyhow::Result<Exit> {
    let client = Client::discover(&args.server, &shell.config()?)?;
    let Some(id) = &args.id else { return of_server(shell, &client).await };
    let answer = fetch(&client, id).await?;
    match shell.look.format {
        Format::Json => print_json_text(&answer.text)?,
        Format::Table => print(&drawn(&shell.look, &NotificationView::of(&answer)?))?,
    }
    Ok(Exit::Ok)
}

/// What a server says about itself.
#[derive(Deserialize)]
pub struct Readiness {
    pub ready: bool,
    #[serde(default)]
    checks: Vec<ReadyCheck>,
    #[serde(default)]
    durability: String,
    /// An older server says none.
    #[serde(default)]
    pub roles: Vec<String>,
}

impl Readiness {
    /// What keeps it from being ready.
    #[must_use]
    pub fn why_not(&self) -> String {
        self.checks.iter().filter(|check| !check.ok).map(|check| check.detail.as_str()).collect::<Vec<_>>().join("; ")
    }

    /// Whether something is held since the store was restored from a backup.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.checks.iter().any(|check| check.name == "restore")
    }
}

#[derive(Deserialize)]
struct ReadyCheck {
    name: String,
    ok: bool,
    detail: String,
}

async fn of_server(shell: &Shell, client: &Client) -> anyhow::Result<Exit> {
    let answer = client.get("/readyz?verbose").await?;
    let it: Readiness = answer.read("what a server says about itself")?;
    let exit = if it.ready { Exit::Ok } else { Exit::RetryLater };
    if shell.look.format == Format::Json {
        print_json_text(&answer.text)?;
        return Ok(exit);
    }
    let look = &shell.look;
    let (word, colour) = if it.ready { ("ready", Colour::Green) } else { ("not ready", Colour::Red) };
    let roles = if it.roles.is_empty() { String::new() } else { format!("  as {}", it.roles.join(", ")) };
    let row = |one: &ReadyCheck| vec![one.name.clone(), if one.ok { "ok" } else { "no" }.into(), one.detail.clone()];
    let rows: Vec<Vec<String>> = it.checks.iter().map(row).collect();
    print(&format!(
        "{}  {}{roles}\n{}{}\n",
        look.paint(Colour::Bold, client.base()),
        look.paint(colour, word),
        table_of_sentences(look, &["CHECK", "OK", "WHAT"], &rows),
        wrapped(&it.durability, look.width, 0)
    ))?;
    Ok(exit)
}

/// # Errors
/// The id is none, the notification is not to be had, or the server is away.
pub async fn fetch(client: &Client, id: &str) -> Result<Answer, Failure> {
    let path = if id.parse::<belfry_domain::NotificationId>().is_ok() {
        format!("/v1/notifications/{id}")
    } else if id.parse::<belfry_domain::DeliveryId>().is_ok() {
        format!("/v1/deliveries/{id}")
    } else {
        let what =
            "expected an id: ntf_ (a notification) or dlv_ (a delivery) and 24 hex digits; `belfry find` finds one";
        return Err(Failure::new(Exit::Usage, what));
    };
    client.get(&path).await?.ok()
}

/// The heading and one row for each delivery.
#[must_use]
pub fn drawn(look: &Look, it: &NotificationView) -> String {
    let repeats = match it.repeats {
        0 => String::new(),
        1 => ", 1 repeat recognised".into(),
        many => format!(", {many} repeats recognised"),
    };
    let whom = it.recipient.as_ref().map(|name| format!(", for {name}")).unwrap_or_default();
    let state = look.state(&it.state);
    let mut text = format!("{}  {}  {state}{whom}{repeats}\n", look.paint(Colour::Bold, &it.id), it.class);
    // The answer to a request names none yet.
    let providers = it.deliveries.iter().any(|one| !one.provider.is_empty());
    let devices = it.deliveries.iter().any(|one| one.device.is_some());
    let row = |one: &DeliveryView| {
        let mut row = vec![one.id.clone(), one.channel.clone()];
        row.extend(devices.then(|| one.whereto()));
        row.extend(providers.then(|| one.provider.clone()));
        row.extend([look.state(&one.state), one.reason.clone()]);
        row
    };
    let rows: Vec<Vec<String>> = it.deliveries.iter().map(row).collect();
    let columns = [
        ("DELIVERY", true),
        ("CHANNEL", true),
        ("TO", devices),
        ("PROVIDER", providers),
        ("STATE", true),
        ("WHY", true),
    ];
    let heading: Vec<&str> = columns.iter().filter(|(_, shown)| *shown).map(|(name, _)| *name).collect();
    text.push_str(&table(look, &heading, &rows));
    text.push_str(&it.not_sent());
    text
}
