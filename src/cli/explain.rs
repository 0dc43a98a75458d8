//! `explain ID`: the timeline for people, one line for each thing that happened.

use std::time::Duration;

use clap::Args;
use jiff::Timestamp;

use super::Shell;
use super::client::{Client, ServerArgs};
use super::exit::Exit;
use super::spans::{instant, moment, relative, short};
use super::terminal::{Colour, Format, Look, print, print_json_text};
use super::view::{DeliveryView, EntryView, NotificationView};

#[derive(Args)]
pub struct ExplainArgs {
    /// The notification, ntf_…, or one of its deliveries, dlv_…
    id: String,
    #[command(flatten)]
    server: ServerArgs,
}

pub async fn run(shell: &Shell, args: &ExplainArgs) -> anyhow::Result<Exit> {
    let client = Client::discover(&args.server, &shell.config()?)?;
    let answer = super::status::fetch(&client, &args.id).await?;
    match shell.look.format {
        Format::Json => print_json_text(&answer.text)?,
        Format::Table => print(&drawn(&shell.look, &NotificationView::of(&answer)?))?,
    }
    Ok(Exit::Ok)
}

fn drawn(look: &Look, it: &NotificationView) -> String {
    let mut text = format!("{}  {}  {}\n", look.paint(Colour::Bold, &it.id), it.class, look.state(&it.state));
    let whom = it.recipient.as_ref().map(|name| format!(" for {name}")).unwrap_or_default();
    let from = it.template.as_ref().map(|it| format!(", made from {} ({})", it.name, it.locale)).unwrap_or_default();
    text.push_str(&format!("Received {}{whom}{from}.", instant(it.created_at)));
    if let Some(expires) = it.expires_at {
        text.push_str(&format!(" Expires {}.", instant(expires)));
    }
    match it.repeats {
        0 => {}
        1 => text.push_str(" 1 repeat was recognised and caused nothing."),
        many => text.push_str(&format!(" {many} repeats were recognised and caused nothing.")),
    }
    if let Some(until) = it.remembered_until {
        text.push_str(&format!(" Repeats are recognised until {}.", instant(until)));
    }
    match it.gathered.len() {
        0 => {}
        count => text.push_str(&format!(" It is a digest of {count}, the first of them {}.", it.gathered[0])),
    }
    text.push('\n');
    for delivery in &it.deliveries {
        text.push('\n');
        text.push_str(&one_delivery(look, delivery, it.created_at));
    }
    if !it.left_out.is_empty() {
        text.push('\n');
        text.push_str(&it.not_sent());
    }
    text
}

fn one_delivery(look: &Look, it: &DeliveryView, start: Timestamp) -> String {
    let to = it.whereto();
    let to = if to.is_empty() { to } else { format!(" to {to}") };
    let mut text = format!("{}{to}  {}  {}\n", it.channel, look.state(&it.state), look.paint(Colour::Faint, &it.id));
    text.push_str(&format!("  {}\n", it.reason));
    for entry in &it.timeline {
        let line = format!("  {:>10}  {}\n", relative(start, entry.at), happened(entry, &it.provider, start));
        text.push_str(&line);
    }
    if let Some(count) = it.timeline_left_out {
        text.push_str(&format!("  {count} further entries were left out of the middle.\n"));
    }
    text
}

fn happened(entry: &EntryView, provider: &str, start: Timestamp) -> String {
    let text = |prefix: &str| entry.text.as_ref().map(|text| format!("{prefix}{text}")).unwrap_or_default();
    let by = || entry.by.clone().unwrap_or_else(|| "somebody".into());
    let word = |word: &Option<String>| word.clone().unwrap_or_else(|| "?".into());
    let worker = || entry.worker.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    match entry.what.as_str() {
        "received" => format!("received, {}", via(entry.via.as_deref())),
        "attempt" => attempt(entry, provider),
        "lapsed" => {
            let sent = if entry.may_have_sent == Some(true) { "it may have sent" } else { "nothing was sent" };
            format!("worker{} did not come back: {sent}", worker())
        }
        "stale_report" => format!(
            "worker{} told too late that its call was {}{}",
            worker(),
            outcome(&word(&entry.outcome), entry.why.as_deref()),
            text(": ")
        ),
        "deferred" => {
            let until = entry.until.map(|until| format!(" until {}", moment(start, until))).unwrap_or_default();
            let times = entry.times.map(|times| format!(", {times} times in a row")).unwrap_or_default();
            let why = match &entry.cap {
                Some(cap) => format!("as many as the cap \"{cap}\" allows are counted"),
                None => deferred(&word(&entry.deferred_for)).to_owned(),
            };
            format!("put off{until}{times}: {why}")
        }
        "cap_full" => {
            let cap = entry.cap.as_ref().map_or_else(|| "a cap".into(), |cap| format!("the cap \"{cap}\""));
            let until = entry.until.map(|until| format!(" before {}", moment(start, until))).unwrap_or_default();
            format!("not sent: {cap} is full, and has no room{until}")
        }
        "folded" => format!("part of the digest {}", word(&entry.into)),
        "looked_up" if entry.found == Some(true) => "asked the provider: it has it".into(),
        "looked_up" => "asked the provider: it has it not".into(),
        "readdressed" => "sent to the device's newer token from here on".into(),
        "stop_asked" => format!("asked to stop by {}{}", by(), text(": ")),
        "receipt" => format!("receipt from {provider}: {}", word(&entry.receipt)),
        "redriven" => format!("put back by {}", by()),
        "sent_again" => format!("sent again by {}: send {}", by(), entry.send.unwrap_or_default()),
        "resolved" => format!("resolved as {} by {}{}", word(&entry.resolution), by(), text(": ")),
        "ended" => format!("ended: {}", word(&entry.state)),
        // A newer server may know more.
        other => other.replace('_', " "),
    }
}

fn attempt(entry: &EntryView, provider: &str) -> String {
    let number = entry.attempt.unwrap_or_default();
    let send = entry.send.filter(|send| *send > 1).map(|send| format!(" of send {send}")).unwrap_or_default();
    let took = entry
        .took_ms
        .filter(|ms| *ms > 0)
        .map(|ms| format!(" after {}", short(Duration::from_millis(ms))))
        .unwrap_or_default();
    let word = entry.outcome.as_deref().unwrap_or("?");
    // The next one has the same number.
    let counted = if word == "throttled" { " (not counted)" } else { "" };
    let said = match (word, &entry.text) {
        ("accepted", _) | (_, None) => String::new(),
        (_, Some(text)) => format!(": {text}"),
    };
    format!("attempt {number}{send} through {provider}: {}{took}{counted}{said}", outcome(word, entry.why.as_deref()))
}

fn via(hop: Option<&str>) -> &'static str {
    match hop {
        Some("batch") => "in a batch",
        Some("broadcast") => "as a row of a broadcast",
        Some("unique") => "by its business key",
        _ => "over HTTP",
    }
}

fn outcome<'a>(word: &'a str, why: Option<&str>) -> &'a str {
    match word {
        "throttled" if why == Some("credential_refused") => "our login was refused",
        "throttled" => "told to wait",
        "recipient_gone" => "refused, the recipient is gone",
        "not_accepted" => "not accepted",
        "unknown" => "of unknown outcome",
        other => other,
    }
}

fn deferred(word: &str) -> &str {
    match word {
        "retry" => "to try again",
        "budget" => "the lane's retry budget is used up",
        "pace" => "the provider asked to slow down",
        "cap" => "as many as a cap allows are counted",
        "quiet_hours" => "the recipient's quiet hours",
        "breaker" => "nothing goes through the provider or service at the moment",
        "unconfigured" => "no provider is configured for it",
        "gathering" => "others of its kind, to go out with them as one digest",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Look = Look { format: Format::Table, colour: false, width: None };

    #[test]
    fn devices_are_called_by_their_names_and_those_left_out_are_told() {
        let json = r#"{"id":"ntf_000000000000000000000001","class":"receipt","state":"accepted","recipient":"user-42",
            "created_at":"2026-11-29T12:00:00Z","deliveries":[
            {"id":"dlv_000000000000000000000002","channel":"apns","address":"…78ad","state":"accepted","reason":"R.",
             "provider":"ios","device":{"id":"phone","app":"com.example.app","environment":"sandbox"},"timeline":[
            {"at":"2026-11-29T12:00:00Z","what":"readdressed"}]},
            {"id":"dlv_000000000000000000000003","channel":"fcm","address":"…1234","state":"accepted","reason":"R.",
             "device":{"app":"com.example.app"}}],
            "left_out":[{"device":"old","kind":"apns","why":"dead","since":"2026-11-28T10:00:00Z"},
             {"device":"watch","kind":"apns","why":"quarantined","since":"2026-11-28T11:00:00Z"}]}"#;
        let view: NotificationView = serde_json::from_str(json).unwrap();
        let expected = "\
ntf_000000000000000000000001  receipt  accepted
Received 2026-11-29T12:00:00.000Z for user-42.

apns to phone (…78ad, com.example.app, sandbox)  accepted  dlv_000000000000000000000002
  R.
       +0 ms  sent to the device's newer token from here on

fcm to …1234 (com.example.app)  accepted  dlv_000000000000000000000003
  R.

Not sent to old (apns): its token is dead since 2026-11-28T10:00:00.000Z.
Not sent to watch (apns): its token is quarantined since 2026-11-28T11:00:00.000Z, because the provider does not take it.
";
        assert_eq!(drawn(&PLAIN, &view), expected);
        let status = crate::cli::status::drawn(&PLAIN, &view);
        assert!(status.starts_with("ntf_000000000000000000000001  receipt  accepted, for user-42\n"), "{status}");
        assert!(status.contains("  phone (…78ad, com.example.app, sandbox)  ios  "), "{status}");
        assert!(status.ends_with("does not take it.\n"), "{status}");
    }

    #[test]
    fn a_timeline_reads_like_a_story() {
        let json = r#"{"id":"ntf_000000000000000000000001","class":"code","state":"accepted","repeats":2,
            "created_at":"2026-11-29T12:00:00Z","remembered_until":"2026-12-14T12:00:00Z","expires_at":"2026-11-29T12:10:00Z",
            "template":{"name":"login","version":"1","locale":"sv"},
            "deliveries":[{"id":"dlv_000000000000000000000002","notification":"ntf_000000000000000000000001",
            "channel":"email","slot":"to","address":"a…@example.com","state":"accepted","provider":"main","attempts":2,
            "reason":"The provider accepted it; whether it arrived is not known.","timeline_left_out":7,"timeline":[
            {"at":"2026-11-29T12:00:00Z","what":"received","via":"http"},
            {"at":"2026-11-29T12:00:00.005Z","what":"attempt","send":1,"attempt":1,"outcome":"throttled","why":"credential_refused",
             "text":"535 5.7.8 no","took_ms":1},
            {"at":"2026-11-29T12:00:00.012Z","what":"attempt","send":1,"attempt":1,"outcome":"unknown","why":"cut_after",
             "text":"the connection was cut","took_ms":1500},
            {"at":"2026-11-29T12:00:01Z","what":"deferred","until":"2026-11-29T12:01:05Z","deferred_for":"retry"},
            {"at":"2026-11-29T12:01:05Z","what":"deferred","until":"2026-11-29T12:01:35Z","deferred_for":"cap","cap":"hourly","times":7},
            {"at":"2026-11-29T12:02:00Z","what":"lapsed","worker":"w1","fence":3,"may_have_sent":false},
            {"at":"2026-12-01T13:02:03Z","what":"attempt","send":2,"attempt":1,"outcome":"accepted","why":"ok","text":"it was accepted","took_ms":20},
            {"at":"2026-12-01T13:02:03Z","what":"ended","state":"accepted"},
            {"at":"2026-11-29T11:59:00Z","what":"from_the_future"}]}]}"#;
        let view: NotificationView = serde_json::from_str(json).unwrap();
        let expected = "\
ntf_000000000000000000000001  code  accepted
Received 2026-11-29T12:00:00.000Z, made from login (sv). Expires 2026-11-29T12:10:00.000Z. 2 repeats were recognised and caused nothing. Repeats are recognised until 2026-12-14T12:00:00.000Z.

email to a…@example.com  accepted  dlv_000000000000000000000002
  The provider accepted it; whether it arrived is not known.
       +0 ms  received, over HTTP
       +5 ms  attempt 1 through main: our login was refused after 1 ms (not counted): 535 5.7.8 no
      +12 ms  attempt 1 through main: of unknown outcome after 1.5 s: the connection was cut
      +1.0 s  put off until 12:01:05.000Z (+1m 5s): to try again
      +1m 5s  put off until 12:01:35.000Z (+1m 35s), 7 times in a row: as many as the cap \"hourly\" allows are counted
      +2m 0s  worker w1 did not come back: nothing was sent
      +2d 1h  attempt 1 of send 2 through main: accepted after 20 ms
      +2d 1h  ended: accepted
       +0 ms  from the future
  7 further entries were left out of the middle.
";
        assert_eq!(drawn(&PLAIN, &view), expected);
    }
}
