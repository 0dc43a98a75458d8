//! `send`: one notification over the API. The key is told wherever a repeat makes sense, so that the
//! same command can be given again without a second effect.

pub(super) mod request;

use std::time::Duration;

use clap::Args;
use serde_json::json;

use request::{body, flag_of};

use super::Shell;
use super::client::{Answer, Client, ServerArgs};
use super::exit::{Exit, Failure};
use super::terminal::{Format, print, print_json};
use super::view::NotificationView;

#[derive(Args)]
pub struct SendArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Idempotency-Key; give the one of an earlier call to repeat it
    #[arg(long)]
    key: Option<String>,
    /// A request as JSON: a file, or - for standard input; the flags below go over it
    #[arg(long, value_name = "FILE")]
    json: Option<String>,
    /// What it is for: code, security, receipt, transactional, digest, marketing, or your own
    #[arg(long)]
    class: Option<String>,
    /// Email address
    #[arg(long, value_name = "EMAIL")]
    to: Option<String>,
    /// Phone number: + and up to 15 digits
    #[arg(long)]
    phone: Option<String>,
    /// Your own name for the person; what is stored under it goes where the request says nothing else
    #[arg(long, value_name = "ID")]
    recipient: Option<String>,
    /// A device that is not stored: apns, fcm or web_push; its token comes from --token-file
    #[arg(long, value_name = "KIND", requires = "token_file")]
    device: Option<String>,
    /// The device's token, which is a secret: a file, or - for standard input; for web_push the subscription as JSON
    #[arg(long, value_name = "FILE", requires = "device")]
    token_file: Option<String>,
    /// App of the device, where there are several
    #[arg(long, requires = "device")]
    app: Option<String>,
    /// Of an apns device: production or sandbox
    #[arg(long, value_name = "ENVIRONMENT", requires = "device")]
    app_environment: Option<String>,
    /// Language tag of the recipient, such as de-AT
    #[arg(long)]
    locale: Option<String>,
    /// Time zone of the recipient, such as Europe/Stockholm
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// Name of the template to make the message from
    #[arg(long, value_name = "NAME")]
    template: Option<String>,
    /// The template's data as JSON: text, @FILE, or - for standard input
    #[arg(long = "data", value_name = "JSON")]
    fields: Option<String>,
    /// Subject of a mail without a template
    #[arg(long)]
    subject: Option<String>,
    /// Plain text of a mail without a template
    #[arg(long)]
    text: Option<String>,
    /// HTML of a mail without a template
    #[arg(long)]
    html: Option<String>,
    /// Title of a push without a template
    #[arg(long)]
    title: Option<String>,
    /// Text of a push without a template
    #[arg(long)]
    body: Option<String>,
    /// What a push opens
    #[arg(long, value_name = "URL")]
    link: Option<String>,
    /// All else of a push as JSON: text, @FILE, or - for standard input; the flags above go over it
    #[arg(long, value_name = "JSON")]
    push: Option<String>,
    /// Channel to use, or push for all devices; may be given several times
    #[arg(long = "channel", value_name = "CHANNEL")]
    channels: Vec<String>,
    /// What it is about, such as order:42
    #[arg(long)]
    scope: Option<String>,
    /// Your own name for it, to find it by
    #[arg(long)]
    reference: Option<String>,
    /// What it belongs to, to find and cancel it by
    #[arg(long)]
    group: Option<String>,
    /// Business key that recognises a repeat under any Idempotency-Key
    #[arg(long)]
    unique: Option<String>,
    /// Later ones with the same key replace earlier ones on the device
    #[arg(long, value_name = "KEY")]
    collapse: Option<String>,
    /// With --collapse: an older unsent one to the same address ends superseded
    #[arg(long, value_name = "NUMBER", requires = "collapse")]
    collapse_version: Option<i64>,
    /// Wait until it has been sent or has failed, for at most so many seconds (30 without a number)
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "30")]
    wait: Option<u32>,
    /// RFC 3339 instant before which nothing is sent; without an offset, of the recipient's own day
    #[arg(long, value_name = "TIME")]
    send_at: Option<String>,
    /// RFC 3339 instant after which nothing is sent
    #[arg(long, value_name = "TIME")]
    expires_at: Option<String>,
}

pub async fn run(shell: &Shell, args: &SendArgs) -> anyhow::Result<Exit> {
    let client = Client::discover(&args.server, &shell.config()?)?;
    let body = body(args)?;
    let (key, made) = match &args.key {
        Some(key) => (key.clone(), false),
        None => (fresh_key(), true),
    };
    let note = || {
        if made && shell.look.format == Format::Table {
            eprintln!("Idempotency-Key: {key}   (repeat safely with --key {key})");
        }
    };
    let call = client.post("/v1/notifications", Some(&key), body);
    tokio::pin!(call);
    let answer = match tokio::time::timeout(LONG, &mut call).await {
        Ok(answer) => answer.inspect(|answer| {
            if answer.status.is_success() {
                note()
            }
        }),
        // Whoever gives up now has to know it.
        Err(_) => {
            note();
            call.await
        }
    };
    let answer = answer.and_then(|answer| answer.ok_by_flags(&|pointer| flag_of(args, pointer)));
    let answer = answer.map_err(|failure| match failure.exit {
        Exit::RetryLater => Failure { text: format!("{failure}\nRepeat safely with --key {key}"), ..failure },
        _ => failure,
    })?;
    let ended = match (args.wait, answer.body["id"].as_str()) {
        (Some(seconds), Some(id)) => Some(ended(&client, id, seconds).await),
        _ => None,
    };
    told(shell, &key, &answer, ended)
}

/// How long a call may take before its key is told in advance.
const LONG: Duration = Duration::from_secs(1);

/// What became of it within `seconds`: the record as it stands, and how the command ends.
async fn ended(client: &Client, id: &str, seconds: u32) -> Result<(Answer, Exit), Failure> {
    let mut pause = Duration::from_millis(20);
    let mut left = Duration::from_secs(seconds.into());
    loop {
        let answer = super::status::fetch(client, id).await?;
        let exit = match answer.body["state"].as_str().unwrap_or_default() {
            "queued" | "sending" => None,
            "scheduled" | "deferred" | "accepted" | "delivered" => Some(Exit::Ok),
            _ => Some(Exit::Failed),
        };
        match exit {
            Some(exit) => return Ok((answer, exit)),
            None if left.is_zero() => return Ok((answer, Exit::RetryLater)),
            None => {}
        }
        let wait = pause.min(left);
        tokio::time::sleep(wait).await;
        left -= wait;
        pause = (pause * 2).min(Duration::from_millis(500));
    }
}

fn told(
    shell: &Shell,
    key: &str,
    first: &Answer,
    ended: Option<Result<(Answer, Exit), Failure>>,
) -> anyhow::Result<Exit> {
    let (last, exit) = match &ended {
        Some(Ok((last, exit))) => (last, *exit),
        // Taken it was; only the waiting failed.
        Some(Err(failure)) => {
            eprintln!("belfry: it was taken, but what became of it cannot be read: {failure}");
            (first, failure.exit)
        }
        None => (first, Exit::Ok),
    };
    if shell.look.format == Format::Json {
        print_json(&json!({ "key": key, "replayed": first.replayed, "notification": last.body }))?;
        return Ok(exit);
    }
    let note =
        if first.replayed { "Recognised as a repeat: this is the first answer, nothing new was sent.\n" } else { "" };
    // A repeat whose record is gone is answered with its id and state alone.
    let drawn = match NotificationView::of(last) {
        Ok(view) => super::status::drawn(&shell.look, &view),
        Err(_) if last.body["id"].is_string() => format!("{}\n", last.text.trim_end()),
        Err(failure) => return Err(failure.into()),
    };
    let waiting = if exit == Exit::RetryLater { "It is still under way.\n" } else { "" };
    print(&format!("{drawn}{note}{waiting}"))?;
    Ok(exit)
}

/// 128 random bits, for a key that nobody else makes.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the caller's side: nothing here is replayed by a seed")]
#[expect(clippy::expect_used, reason = "without randomness a key could be somebody else's")]
pub fn fresh_key() -> String {
    let random = || getrandom::u64().expect("the system has no random numbers");
    format!("cli-{:016x}{:016x}", random(), random())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_do_not_repeat_by_themselves() {
        assert_ne!(fresh_key(), fresh_key());
        assert_eq!(fresh_key().len(), 36);
    }
}
