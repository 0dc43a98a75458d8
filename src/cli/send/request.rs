//! The request that `send`'s flags make.

use std::collections::BTreeMap;
use std::io::Read;

use belfry_domain::zone::LocalTime;
use serde::Serialize;
use serde_json::value::RawValue;

use super::SendArgs;
use crate::cli::exit::{Exit, Failure};

/// The flag that a field came from; where the request came as JSON, only what a flag put over it.
pub fn flag_of(args: &SendArgs, pointer: &str) -> Option<String> {
    let device = args.device.is_some();
    let exact = [
        ("/class", "--class", args.class.is_some()),
        ("/to", "--to, --phone, --recipient, --device", false),
        ("/to/email", "--to", args.to.is_some()),
        ("/to/phone", "--phone", args.phone.is_some()),
        ("/to/recipient", "--recipient", args.recipient.is_some()),
        ("/to/devices/0/app", "--app", device),
        ("/to/devices/0/environment", "--app-environment", device),
        ("/to/devices/0/kind", "--device", device),
        ("/to/devices/0", "--device", device),
        ("/to/locale", "--locale", args.locale.is_some()),
        ("/to/time_zone", "--time-zone", args.time_zone.is_some()),
        ("/template", "--template", args.template.is_some()),
        ("/content/subject", "--subject", args.subject.is_some()),
        ("/content/text", "--text", args.text.is_some()),
        ("/content/html", "--html", args.html.is_some()),
        ("/content/push/title", "--title", args.title.is_some()),
        ("/content/push/body", "--body", args.body.is_some()),
        ("/content/push/link", "--link", args.link.is_some()),
        ("/scope", "--scope", args.scope.is_some()),
        ("/reference", "--reference", args.reference.is_some()),
        ("/group", "--group", args.group.is_some()),
        ("/unique", "--unique", args.unique.is_some()),
        ("/collapse", "--collapse", args.collapse.is_some()),
        ("/version", "--collapse-version", args.collapse_version.is_some()),
        ("/send_at", "--send-at", args.send_at.is_some()),
        ("/send_at/local", "--send-at", args.send_at.is_some()),
    ];
    let made_here = |given: bool| given || args.json.is_none();
    if let Some((_, flag, _)) = exact.iter().find(|(field, _, given)| *field == pointer && made_here(*given)) {
        return Some((*flag).to_owned());
    }
    let beginnings = [
        ("/data", "--data", args.fields.is_some()),
        ("/channels", "--channel", !args.channels.is_empty()),
        ("/expires_at", "--expires-at", args.expires_at.is_some()),
        ("/to/devices/0/token", "--token-file", device),
        ("/to/devices/0/subscription", "--token-file", device),
        ("/content/push", "--push", args.push.is_some()),
    ];
    beginnings.iter().find_map(|(field, flag, given)| {
        let rest = pointer.strip_prefix(field).filter(|_| made_here(*given))?;
        Some(if rest.is_empty() { (*flag).to_owned() } else { format!("{flag} {rest}") })
    })
}

/// Members of a JSON object, each as the text it came in: numbers keep every digit.
type Members = BTreeMap<String, Box<RawValue>>;

/// The request.
pub fn body(args: &SendArgs) -> Result<String, Failure> {
    let flags = from_flags(args)?;
    let Some(from) = &args.json else {
        return Ok(text_of(&flags));
    };
    let text = read("--json", from)?;
    if flags.is_empty() {
        return Ok(text);
    }
    Ok(text_of(&laid_over(parsed("--json", &text)?, flags)?))
}

/// Members of the second over those of the first, and within the objects that flags make parts of.
fn laid_over(mut below: Members, above: Members) -> Result<Members, Failure> {
    for (name, value) in above {
        let value = match (below.remove(&name), name.as_str()) {
            (Some(old), "to" | "content" | "push") => {
                raw(&laid_over(parsed("--json", old.get())?, parsed("a flag", value.get())?)?)
            }
            _ => value,
        };
        below.insert(name, value);
    }
    Ok(below)
}

fn given(pairs: &[(&str, &Option<String>)]) -> Members {
    pairs.iter().filter_map(|(name, value)| Some(((*name).to_owned(), raw(value.as_ref()?)))).collect()
}

fn from_flags(args: &SendArgs) -> Result<Members, Failure> {
    let mut members = given(&[
        ("class", &args.class),
        ("template", &args.template),
        ("scope", &args.scope),
        ("reference", &args.reference),
        ("group", &args.group),
        ("unique", &args.unique),
        ("collapse", &args.collapse),
        ("expires_at", &args.expires_at),
    ]);
    if let Some(at) = &args.send_at {
        // Without an offset it is a time of the recipient's own day.
        let local = at.parse::<LocalTime>().is_ok();
        let at = if local { serde_json::json!({ "local": at }) } else { at.as_str().into() };
        members.insert("send_at".into(), raw(&at));
    }
    let mut to = given(&[
        ("email", &args.to),
        ("phone", &args.phone),
        ("recipient", &args.recipient),
        ("locale", &args.locale),
        ("time_zone", &args.time_zone),
    ]);
    if let Some(device) = device(args)? {
        to.insert("devices".into(), raw(&[device]));
    }
    let mut content = given(&[("subject", &args.subject), ("text", &args.text), ("html", &args.html)]);
    let push = push(args)?;
    if !push.is_empty() {
        content.insert("push".into(), raw(&push));
    }
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
        members.insert("data".into(), json_of("--data", given)?);
    }
    Ok(members)
}

/// The device that is given beside the request. A token never stands on a command line, which others may read.
fn device(args: &SendArgs) -> Result<Option<Members>, Failure> {
    let Some(from) = &args.token_file else { return Ok(None) };
    let mut device = given(&[("kind", &args.device), ("app", &args.app), ("environment", &args.app_environment)]);
    let text = read("--token-file", from)?;
    let text = text.trim();
    // What is wrong with it is told without its words.
    let wrong = |what: &str| Failure::new(Exit::Usage, format!("--token-file: {from} {what}"));
    match text.chars().next() {
        None => return Err(wrong("is empty")),
        Some('{') => {
            let subscription = RawValue::from_string(text.to_owned()).map_err(|_| wrong("is no JSON"))?;
            device.insert("subscription".into(), subscription);
        }
        Some(_) => {
            device.insert("token".into(), raw(text));
        }
    }
    Ok(Some(device))
}

fn push(args: &SendArgs) -> Result<Members, Failure> {
    let below = match &args.push {
        Some(given) => parsed("--push", json_of("--push", given)?.get())?,
        None => Members::new(),
    };
    laid_over(below, given(&[("title", &args.title), ("body", &args.body), ("link", &args.link)]))
}

/// JSON as a flag has it: text, `@FILE`, or `-` for standard input.
pub fn json_of(flag: &str, given: &str) -> Result<Box<RawValue>, Failure> {
    let text = match given.strip_prefix('@') {
        Some(path) => read(flag, path)?,
        None if given == "-" => read(flag, "-")?,
        None => given.to_owned(),
    };
    let value = RawValue::from_string(text.trim().to_owned());
    value.map_err(|error| Failure::new(Exit::Usage, format!("{flag} is no JSON: {error}")))
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

    fn asked(args: &[&str]) -> Result<String, Failure> {
        body(&Only::parse_from(std::iter::once(&"send").chain(args)).args)
    }

    fn body_of(args: &[&str]) -> String {
        asked(args).unwrap()
    }

    fn file_of(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn a_push_is_made_of_flags_over_json() {
        let flags = ["--recipient", "user-42", "--channel", "push", "--title", "T", "--body", "B", "--link", "x://y"];
        let push = r#"{"body":"B","link":"x://y","title":"T"}"#;
        let to = r#""to":{"recipient":"user-42"}"#;
        let expected = format!("{{\"channels\":[\"push\"],\"content\":{{\"push\":{push}}},{to}}}");
        assert_eq!(body_of(&flags), expected);
        let text = body_of(&["--push", r#"{"badge":3,"title":"old"}"#, "--title", "new"]);
        assert_eq!(text, r#"{"content":{"push":{"badge":3,"title":"new"}}}"#);
        let file = file_of(r#"{"content":{"subject":"S","push":{"badge":3,"title":"old"}}}"#);
        let text = body_of(&["--json", file.path().to_str().unwrap(), "--title", "new"]);
        assert_eq!(text, r#"{"content":{"push":{"badge":3,"title":"new"},"subject":"S"}}"#);
        assert!(asked(&["--push", "[]"]).is_err() && asked(&["--push", "{"]).is_err());
    }

    #[test]
    fn a_device_s_token_comes_from_a_file_and_is_told_by_nobody() {
        let file = file_of("740f\n");
        let path = file.path().to_str().unwrap();
        let text = body_of(&["--device", "apns", "--token-file", path, "--app", "a.b", "--app-environment", "sandbox"]);
        assert_eq!(text, r#"{"to":{"devices":[{"app":"a.b","environment":"sandbox","kind":"apns","token":"740f"}]}}"#);
        let subscription = r#"{"endpoint":"https://push.example/1","keys":{}}"#;
        let file = file_of(subscription);
        let text = body_of(&["--device", "web_push", "--token-file", file.path().to_str().unwrap()]);
        assert_eq!(text, format!(r#"{{"to":{{"devices":[{{"kind":"web_push","subscription":{subscription}}}]}}}}"#));
        for (wrong, said) in [("", "is empty"), ("{\"endpoint\":\"secret", "is no JSON")] {
            let file = file_of(wrong);
            let failure = asked(&["--device", "web_push", "--token-file", file.path().to_str().unwrap()]).unwrap_err();
            assert!(failure.text.ends_with(said) && !failure.text.contains("secret"), "{failure}");
        }
        for alone in [["--device", "apns"], ["--token-file", path], ["--app", "a.b"]] {
            assert!(Only::try_parse_from(std::iter::once(&"send").chain(&alone)).is_err(), "{alone:?}");
        }
    }

    #[test]
    fn flags_become_a_request() {
        let text =
            body_of(&["--class", "code", "--to", "a@b.example", "--template", "login_code", "--data", "{\"n\": 1.0}"]);
        assert_eq!(text, r#"{"class":"code","data":{"n": 1.0},"template":"login_code","to":{"email":"a@b.example"}}"#);
        let text = body_of(&["--phone", "+46701234567", "--locale", "sv", "--time-zone", "Europe/Stockholm"]);
        assert_eq!(text, r#"{"to":{"locale":"sv","phone":"+46701234567","time_zone":"Europe/Stockholm"}}"#);
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
    fn a_time_without_an_offset_is_the_recipient_s_own() {
        let text = body_of(&["--send-at", "2026-12-24T09:00:00"]);
        assert_eq!(text, r#"{"send_at":{"local":"2026-12-24T09:00:00"}}"#);
        for other in ["2026-12-24T09:00:00Z", "tomorrow"] {
            assert_eq!(body_of(&["--send-at", other]), format!(r#"{{"send_at":"{other}"}}"#));
        }
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
            ("/to/devices/0/token", Some("--token-file")),
            ("/to/devices/0/app", Some("--app")),
            ("/to/recipient", Some("--recipient")),
            ("/to/time_zone", Some("--time-zone")),
            ("/content/push/title", Some("--title")),
            ("/content/push/badge", Some("--push /badge")),
            ("/content/push", Some("--push")),
            ("", None),
            ("/content/attachments", None),
        ] {
            assert_eq!(flag_of(&flags, pointer).as_deref(), flag, "{pointer}");
        }
        let json = args(&["--json", "-", "--class", "code"]);
        assert_eq!(flag_of(&json, "/class").as_deref(), Some("--class"));
        assert_eq!(flag_of(&json, "/to/phone"), None);
    }
}
