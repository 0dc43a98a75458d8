//! `send`: one notification over the API. The key is made and printed before the call, so that
//! whatever happens then, the same command can be given again without a second effect.

use std::collections::BTreeMap;
use std::io::Read;

use clap::Args;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::Shell;
use super::client::{Client, ServerArgs};
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
    /// Language tag of the recipient
    #[arg(long)]
    locale: Option<String>,
    #[arg(long)]
    template: Option<String>,
    /// The template's data as JSON: text, @FILE, or - for standard input
    #[arg(long = "data", value_name = "JSON")]
    fields: Option<String>,
    #[arg(long)]
    subject: Option<String>,
    #[arg(long)]
    text: Option<String>,
    #[arg(long)]
    html: Option<String>,
    /// Channel to use; may be given several times
    #[arg(long = "channel", value_name = "CHANNEL")]
    channels: Vec<String>,
    #[arg(long)]
    scope: Option<String>,
    #[arg(long)]
    reference: Option<String>,
    #[arg(long)]
    group: Option<String>,
    /// Business key that recognises a repeat under any Idempotency-Key
    #[arg(long)]
    unique: Option<String>,
    #[arg(long)]
    collapse: Option<String>,
    /// RFC 3339 instant before which nothing is sent
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
    if made && shell.look.format == Format::Table {
        eprintln!("Idempotency-Key: {key}   (repeat safely with --key {key})");
    }
    let answer = client.post("/v1/notifications", Some(&key), body).await.and_then(super::client::Answer::ok);
    let answer = answer.map_err(|failure| match failure.exit {
        Exit::RetryLater => Failure { text: format!("{failure}\nRepeat safely with --key {key}"), ..failure },
        _ => failure,
    })?;
    match shell.look.format {
        Format::Json => {
            print_json(&json!({ "key": key, "replayed": answer.replayed, "notification": answer.body }))?;
        }
        Format::Table => {
            let note = if answer.replayed {
                "Recognised as a repeat: this is the first answer, nothing new was sent.\n"
            } else {
                ""
            };
            // A repeat whose record is gone is answered with its id and state alone.
            let drawn = match NotificationView::of(&answer) {
                Ok(view) => super::status::drawn(&shell.look, &view),
                Err(_) if answer.body["id"].is_string() => format!("{}\n", answer.text.trim_end()),
                Err(failure) => return Err(failure.into()),
            };
            print(&format!("{drawn}{note}"))?;
        }
    }
    Ok(Exit::Ok)
}

/// 128 random bits, for a key that nobody else makes.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the caller's side: nothing here is replayed by a seed")]
#[expect(clippy::expect_used, reason = "without randomness a key could be somebody else's")]
pub fn fresh_key() -> String {
    let random = || getrandom::u64().expect("the system has no random numbers");
    format!("cli-{:016x}{:016x}", random(), random())
}

/// Members of a JSON object, each as the text it came in: numbers keep every digit.
type Members = BTreeMap<String, Box<RawValue>>;

/// The request.
fn body(args: &SendArgs) -> Result<String, Failure> {
    let flags = from_flags(args)?;
    let Some(from) = &args.json else {
        return Ok(text_of(&flags));
    };
    let text = read(from)?;
    if flags.is_empty() {
        return Ok(text);
    }
    let mut members = parsed("--json", &text)?;
    for (name, value) in flags {
        let over = match (members.remove(&name), name.as_str()) {
            (Some(below), "to" | "content") => {
                let mut below = parsed("--json", below.get())?;
                below.extend(parsed("a flag", value.get())?);
                raw(&below)
            }
            _ => value,
        };
        members.insert(name, over);
    }
    Ok(text_of(&members))
}

fn from_flags(args: &SendArgs) -> Result<Members, Failure> {
    let given = |pairs: &[(&str, &Option<String>)]| -> Members {
        pairs.iter().filter_map(|(name, value)| Some(((*name).to_owned(), raw(value.as_ref()?)))).collect()
    };
    let mut members = given(&[
        ("class", &args.class),
        ("template", &args.template),
        ("scope", &args.scope),
        ("reference", &args.reference),
        ("group", &args.group),
        ("unique", &args.unique),
        ("collapse", &args.collapse),
        ("send_at", &args.send_at),
        ("expires_at", &args.expires_at),
    ]);
    let to = given(&[("email", &args.to), ("phone", &args.phone), ("locale", &args.locale)]);
    let content = given(&[("subject", &args.subject), ("text", &args.text), ("html", &args.html)]);
    for (name, inner) in [("to", to), ("content", content)] {
        if !inner.is_empty() {
            members.insert(name.into(), raw(&inner));
        }
    }
    if !args.channels.is_empty() {
        members.insert("channels".into(), raw(&args.channels));
    }
    if let Some(given) = &args.fields {
        let text = match given.strip_prefix('@') {
            Some(path) => read(path)?,
            None if given == "-" => read("-")?,
            None => given.clone(),
        };
        let value = RawValue::from_string(text.trim().to_owned());
        let value = value.map_err(|error| Failure::new(Exit::Usage, format!("--data is no JSON: {error}")))?;
        members.insert("data".into(), value);
    }
    Ok(members)
}

/// JSON text of text, lists of text, and members: none of them can fail to have one.
fn raw(value: &(impl Serialize + ?Sized)) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn text_of(members: &Members) -> String {
    raw(members).get().to_owned()
}

fn parsed(from: &str, text: &str) -> Result<Members, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::new(Exit::Usage, format!("{from}: {error}")))
}

/// Bounded like the API's own largest body.
fn read(from: &str) -> Result<String, Failure> {
    const MOST: u64 = 16 * 1024 * 1024;
    let mut text = String::new();
    let done = if from == "-" {
        std::io::stdin().lock().take(MOST).read_to_string(&mut text)
    } else {
        std::fs::File::open(from).and_then(|file| file.take(MOST).read_to_string(&mut text))
    };
    done.map_err(|error| Failure::new(Exit::Usage, format!("{from}: {error}")))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        args: SendArgs,
    }

    fn body_of(args: &[&str]) -> String {
        body(&Only::parse_from(std::iter::once(&"send").chain(args)).args).unwrap()
    }

    #[test]
    fn flags_become_a_request() {
        let text =
            body_of(&["--class", "code", "--to", "a@b.example", "--template", "login_code", "--data", "{\"n\": 1.0}"]);
        assert_eq!(text, r#"{"class":"code","data":{"n": 1.0},"template":"login_code","to":{"email":"a@b.example"}}"#);
    }

    #[test]
    fn case_68_data_keeps_every_digit() {
        let digits = r#"{"big":18446744073709551616,"small":-0.0,"far":1e400}"#;
        assert_eq!(body_of(&["--data", digits]), format!("{{\"data\":{digits}}}"));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), digits).unwrap();
        assert_eq!(body_of(&["--json", file.path().to_str().unwrap()]), digits);
        let at = format!("@{}", file.path().display());
        assert_eq!(body_of(&["--data", &at]), format!("{{\"data\":{digits}}}"));
    }

    #[test]
    fn flags_go_over_a_json_request() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            r#"{"class":"code","to":{"email":"a@b.example","locale":"sv"},"data":{"n":1e400}}"#,
        )
        .unwrap();
        let text = body_of(&["--json", file.path().to_str().unwrap(), "--class", "receipt", "--to", "c@d.example"]);
        assert_eq!(text, r#"{"class":"receipt","data":{"n":1e400},"to":{"email":"c@d.example","locale":"sv"}}"#);
    }

    #[test]
    fn keys_do_not_repeat_by_themselves() {
        assert_ne!(fresh_key(), fresh_key());
        assert_eq!(fresh_key().len(), 36);
    }
}
