//! `redrive`, `send-again`, `resolve`: what a person decides about one delivery. Each looks first,
//! says what it will do, and carries a key, so that the same command again does nothing more.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::Shell;
use super::client::{Client, ServerArgs};
use super::exit::{Exit, Failure};
use super::send::fresh_key;
use super::terminal::{Format, Look, print, print_json};
use super::view::{DeliveryView, NotificationView};

#[derive(Args)]
pub struct ActArgs {
    /// The delivery: dlv_…
    id: String,
    /// Idempotency-Key; give the one of an earlier call to repeat it
    #[arg(long)]
    key: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Args)]
pub struct RedriveArgs {
    #[command(flatten)]
    act: ActArgs,
    /// The send that you saw; absent: the one it is at. Give it with --key to repeat an earlier call
    #[arg(long, value_name = "NUMBER")]
    after_send: Option<u32>,
}

#[derive(Args)]
pub struct SendAgainArgs {
    #[command(flatten)]
    act: ActArgs,
    /// The send that you saw; absent: the one it is at. Give it with --key to repeat an earlier call
    #[arg(long, value_name = "NUMBER")]
    after_send: Option<u32>,
    /// Yes, although it may be a second copy
    #[arg(long)]
    yes: bool,
}

#[derive(Args)]
pub struct ResolveArgs {
    #[command(flatten)]
    act: ActArgs,
    /// What became of it
    #[arg(long, value_enum)]
    to: End,
    /// For the timeline
    #[arg(long)]
    why: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum End {
    Delivered,
    Failed,
}

pub async fn redrive(shell: &Shell, args: &RedriveArgs) -> anyhow::Result<Exit> {
    let wish = Wish::look(shell, &args.act).await?;
    let send = args.after_send.unwrap_or(wish.delivery.send);
    let tells = format!("Redrive puts it back in the queue under send {send}: the same message, the same key.");
    wish.carry_out(shell, "redrive", &tells, json!({ "after_send": send })).await
}

pub async fn send_again(shell: &Shell, args: &SendAgainArgs) -> anyhow::Result<Exit> {
    let wish = Wish::look(shell, &args.act).await?;
    let send = args.after_send.unwrap_or(wish.delivery.send);
    let next = u64::from(send) + 1;
    let second = if wish.delivery.may_have_arrived {
        "An earlier copy may have arrived, so this may be a second one."
    } else {
        "As far as is known no earlier copy arrived."
    };
    let tells = format!("Send again opens send {next}: another message to the same address. {second}");
    if !args.yes {
        let text = format!("{}\n{tells}\nGive --yes to do it.", wish.stands());
        return Err(Failure::new(Exit::Usage, text).into());
    }
    wish.carry_out(shell, "send-again", &tells, json!({ "after_send": send })).await
}

pub async fn resolve(shell: &Shell, args: &ResolveArgs) -> anyhow::Result<Exit> {
    let wish = Wish::look(shell, &args.act).await?;
    let to = match args.to {
        End::Delivered => "delivered",
        End::Failed => "failed",
    };
    let mut body = json!({ "to": to });
    if let Some(why) = &args.why {
        body["why"] = why.as_str().into();
    }
    wish.carry_out(shell, "resolve", &format!("Resolve ends it as {to}; nothing is sent."), body).await
}

struct Wish {
    client: Client,
    delivery: DeliveryView,
    key: String,
}

impl Wish {
    /// # Errors
    /// The id is none, the delivery is not to be had, or the server is away.
    async fn look(shell: &Shell, args: &ActArgs) -> anyhow::Result<Self> {
        if args.id.parse::<belfry_domain::DeliveryId>().is_err() {
            return Err(Failure::new(Exit::Usage, "expected a delivery's id: dlv_ and 24 hex digits").into());
        }
        let client = Client::discover(&args.server, &shell.config()?)?;
        let record = NotificationView::of(&super::status::fetch(&client, &args.id).await?)?;
        let delivery = record.deliveries.into_iter().find(|one| one.id == args.id);
        let delivery =
            delivery.ok_or_else(|| Failure::new(Exit::Failed, "the server answered with another delivery"))?;
        Ok(Self { client, delivery, key: args.key.clone().unwrap_or_else(fresh_key) })
    }

    fn stands(&self) -> String {
        let it = &self.delivery;
        let to = if it.address.is_empty() { String::new() } else { format!(" to {}", it.address) };
        format!("{}, {}{to}: {}. {}", it.id, it.channel, it.state, it.reason)
    }

    async fn carry_out(self, shell: &Shell, verb: &str, tells: &str, body: Value) -> anyhow::Result<Exit> {
        let again = match body["after_send"].as_u64() {
            Some(send) => format!("--key {} --after-send {send}", self.key),
            None => format!("--key {}", self.key),
        };
        if shell.look.format == Format::Table {
            eprintln!("{}\n{tells}", self.stands());
        }
        let path = format!("/v1/deliveries/{}/{verb}", self.delivery.id);
        let answer = self.client.post(&path, Some(&self.key), body.to_string()).await;
        let answer = answer.and_then(|answer| answer.ok_by_flags(&flag_of)).map_err(|failure| match failure.exit {
            Exit::RetryLater => Failure { text: format!("{failure}\nRepeat safely with {again}"), ..failure },
            _ => failure,
        })?;
        match shell.look.format {
            Format::Json => {
                print_json(&json!({ "key": self.key, "replayed": answer.replayed, "delivery": answer.body }))?;
            }
            Format::Table => {
                print(&done(&shell.look, &answer.read("a delivery")?, answer.replayed))?;
                eprintln!("Idempotency-Key: {}   (repeat safely with {again})", self.key);
            }
        }
        Ok(Exit::Ok)
    }
}

fn flag_of(pointer: &str) -> Option<String> {
    ["after_send", "to", "why"]
        .into_iter()
        .find(|name| pointer.strip_prefix('/') == Some(*name))
        .map(|name| format!("--{}", name.replace('_', "-")))
}

fn done(look: &Look, it: &DeliveryView, replayed: bool) -> String {
    let note = if replayed { "Recognised as a repeat: it was done before, nothing was done now.\n" } else { "" };
    format!("{}  send {}  {}  {}\n{note}", it.id, it.send, look.state(&it.state), it.reason)
}
