//! `send`: one notification over the API. The key is made and printed before the call, so that
//! whatever happens then, the same command can be given again without a second effect.

use std::io::Read;

use clap::Args;
use serde_json::{Map, Value, json};

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

pub async fn run(shell: &Shell, args: SendArgs) -> anyhow::Result<Exit> {
    let client = Client::discover(&args.server, &shell.config()?)?;
    let body = body(&args)?;
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
            let note = if answer.replayed { "Recognised as a repeat: this is the first answer, nothing new was sent.\n" } else { "" };
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

/// The request. Callers' own JSON goes through as text where no flag touches it, so that its
/// numbers keep every digit.
fn body(args: &SendArgs) -> Result<String, Failure> {
    let overlay = overlay(args)?;
    let Some(from) = &args.json else {
        return Ok(overlay.to_text());
    };
    let text = read(from)?;
    if overlay.is_empty() {
        return Ok(text);
    }
    let parsed: Map<String, Value> =
        serde_json::from_str(&text).map_err(|error| Failure::new(Exit::Usage, format!("--json: {error}")))?;
    Ok(overlay.over(parsed).to_text())
}

/// What the flags say: members of the request, `data` apart as the text that it came in.
struct Overlay {
    members: Map<String, Value>,
    fields: Option<Box<serde_json::value::RawValue>>,
}

impl Overlay {
    fn is_empty(&self) -> bool {
        self.members.is_empty() && self.fields.is_none()
    }

    fn over(mut self, mut below: Map<String, Value>) -> Self {
        for (name, value) in std::mem::take(&mut self.members) {
            match (below.get_mut(&name), value) {
                (Some(Value::Object(old)), Value::Object(new)) => old.extend(new),
                (_, value) => {
                    below.insert(name, value);
                }
            }
        }
        if self.fields.is_some() {
            below.remove("data");
        }
        Self { members: below, ..self }
    }

    fn to_text(&self) -> String {
        let text = Value::Object(self.members.clone()).to_string();
        match &self.fields {
            None => text,
            Some(fields) if self.members.is_empty() => format!("{{\"data\":{fields}}}"),
            Some(fields) => format!("{},\"data\":{fields}}}", &text[..text.len() - 1]),
        }
    }
}

fn overlay(args: &SendArgs) -> Result<Overlay, Failure> {
    let object = |pairs: [(&str, &Option<String>); 3]| -> Map<String, Value> {
        pairs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value.as_ref()?)))).collect()
    };
    let mut members = Map::new();
    for (name, value) in [
        ("class", &args.class),
        ("template", &args.template),
        ("scope", &args.scope),
        ("reference", &args.reference),
        ("group", &args.group),
        ("unique", &args.unique),
        ("collapse", &args.collapse),
        ("send_at", &args.send_at),
        ("expires_at", &args.expires_at),
    ] {
        if let Some(value) = value {
            members.insert(name.into(), json!(value));
        }
    }
    let to = object([("email", &args.to), ("phone", &args.phone), ("locale", &args.locale)]);
    let content = object([("subject", &args.subject), ("text", &args.text), ("html", &args.html)]);
    for (name, inner) in [("to", to), ("content", content)] {
        if !inner.is_empty() {
            members.insert(name.into(), Value::Object(inner));
        }
    }
    if !args.channels.is_empty() {
        members.insert("channels".into(), json!(args.channels));
    }
    let fields = match &args.fields {
        None => None,
        Some(given) => {
            let text = match given.strip_prefix('@') {
                Some(path) => read(path)?,
                None if given == "-" => read("-")?,
                None => given.clone(),
            };
            let parsed = serde_json::from_str(&text);
            Some(parsed.map_err(|error| Failure::new(Exit::Usage, format!("--data is no JSON: {error}")))?)
        }
    };
    Ok(Overlay { members, fields })
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
        let text = body_of(&["--class", "code", "--to", "a@b.example", "--template", "login_code", "--data", "{\"n\": 1.0}"]);
        assert_eq!(
            text,
            r#"{"class":"code","template":"login_code","to":{"email":"a@b.example"},"data":{"n": 1.0}}"#
        );
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
        std::fs::write(file.path(), r#"{"class":"code","to":{"email":"a@b.example","locale":"sv"}}"#).unwrap();
        let text = body_of(&["--json", file.path().to_str().unwrap(), "--class", "receipt", "--to", "c@d.example"]);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value, json!({"class": "receipt", "to": {"email": "c@d.example", "locale": "sv"}}));
    }

    #[test]
    fn keys_do_not_repeat_by_themselves() {
        assert_ne!(fresh_key(), fresh_key());
        assert_eq!(fresh_key().len(), 36);
    }
}
