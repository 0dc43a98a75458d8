//! `send`: one notification over the API. The key is told wherever a repeat makes sense, so that the
//! same command can be given again without a second effect.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

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
    /// Language tag of the recipient, such as de-AT
    #[arg(long)]
    locale: Option<String>,
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
    /// Channel to use; may be given several times
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

/// The flag that a field came from; where the request came as JSON, only what a flag put over it.
fn flag_of(args: &SendArgs, pointer: &str) -> Option<String> {
    let flags: [(&str, &str, bool); 16] = [
        ("/class", "--class", args.class.is_some()),
        ("/to/email", "--to", args.to.is_some()),
        ("/to/phone", "--phone", args.phone.is_some()),
        ("/to/locale", "--locale", args.locale.is_some()),
        ("/to", "--to, --phone", false),
        ("/template", "--template", args.template.is_some()),
        ("/content/subject", "--subject", args.subject.is_some()),
        ("/content/text", "--text", args.text.is_some()),
        ("/content/html", "--html", args.html.is_some()),
        ("/scope", "--scope", args.scope.is_some()),
        ("/reference", "--reference", args.reference.is_some()),
        ("/group", "--group", args.group.is_some()),
        ("/unique", "--unique", args.unique.is_some()),
        ("/collapse", "--collapse", args.collapse.is_some()),
        ("/version", "--collapse-version", args.collapse_version.is_some()),
        ("/send_at", "--send-at", args.send_at.is_some()),
    ];
    let made_here = |given: bool| given || args.json.is_none();
    let exact = flags.iter().find(|(field, _, given)| *field == pointer && made_here(*given));
    if let Some((_, flag, _)) = exact {
        return Some((*flag).to_owned());
    }
    for (field, flag, given) in [
        ("/data", "--data", args.fields.is_some()),
        ("/channels", "--channel", !args.channels.is_empty()),
        ("/expires_at", "--expires-at", args.expires_at.is_some()),
    ] {
        if let Some(rest) = pointer.strip_prefix(field).filter(|_| made_here(given)) {
            return Some(if rest.is_empty() { flag.to_owned() } else { format!("{flag} {rest}") });
        }
    }
    None
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
    let text = read("--json", from)?;
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
    if let Some(version) = args.collapse_version {
        members.insert("version".into(), raw(&version));
    }
    if !args.channels.is_empty() {
        members.insert("channels".into(), raw(&args.channels));
    }
    if let Some(given) = &args.fields {
        let text = match given.strip_prefix('@') {
            Some(path) => read("--data", path)?,
            None if given == "-" => read("--data", "-")?,
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
fn read(flag: &str, from: &str) -> Result<String, Failure> {
    const MOST: u64 = 16 * 1024 * 1024;
    let mut text = String::new();
    let done = if from == "-" {
        std::io::stdin().lock().take(MOST).read_to_string(&mut text)
    } else {
        std::fs::File::open(from).and_then(|file| file.take(MOST).read_to_string(&mut text))
    };
    done.map_err(|error| Failure::new(Exit::Usage, format!("{flag}: {from} cannot be read: {error}")))?;
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
    fn a_field_is_told_by_its_flag_unless_the_request_came_as_json() {
        let args = |args: &[&str]| Only::parse_from(std::iter::once(&"send").chain(args)).args;
        let flags = args(&["--phone", "1"]);
        for (pointer, flag) in [
            ("/to/phone", Some("--phone")),
            ("/class", Some("--class")),
            ("/data/order/0", Some("--data /order/0")),
            ("/channels/0", Some("--channel /0")),
            ("/version", Some("--collapse-version")),
            ("", None),
            ("/content/attachments", None),
        ] {
            assert_eq!(flag_of(&flags, pointer).as_deref(), flag, "{pointer}");
        }
        let json = args(&["--json", "-", "--class", "code"]);
        assert_eq!(flag_of(&json, "/class").as_deref(), Some("--class"));
        assert_eq!(flag_of(&json, "/to/phone"), None);
    }

    #[test]
    fn keys_do_not_repeat_by_themselves() {
        assert_ne!(fresh_key(), fresh_key());
        assert_eq!(fresh_key().len(), 36);
    }
}
