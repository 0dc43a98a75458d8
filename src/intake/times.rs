//! Reading when a notification is to go out, and until when.

use belfry_domain::UnixMs;
use belfry_domain::zone::{LocalTime, Zone};

use super::fields::{FieldProblem, Object, Problems, line};
use super::json::{Node, Value};
use super::submission::MOST_AHEAD;

/// Members of a `send_at` that is a local time.
pub const LOCAL: &[&str] = &["local", "fallback_zone"];

/// `send_at` and `expires_at`. `zone`: the recipient's, as the request or what is stored of them says.
pub(super) fn read(
    request: &Object<'_, '_>,
    (now, zone): (UnixMs, Option<&str>),
    problems: &mut Problems,
) -> (Option<UnixMs>, Option<UnixMs>) {
    let (send_at, pointer) = match request.get("send_at") {
        Some(node) if matches!(node.value, Value::Object(_)) => (local(node, zone, problems), "/send_at/local"),
        _ => (request.instant("send_at", problems), "/send_at"),
    };
    let expires_at = request.instant("expires_at", problems);
    if send_at.is_some_and(|at| at > now.plus(MOST_AHEAD)) {
        problems.add_passing(FieldProblem::new(pointer, "must lie within 90 days from now"));
    }
    match (send_at, expires_at) {
        (Some(send), Some(expires)) if expires <= send => {
            problems.add("/expires_at", "must come after send_at");
        }
        (_, Some(expires)) if expires <= now => {
            problems.add_passing(FieldProblem::new("/expires_at", "has passed already"));
        }
        _ => {}
    }
    (send_at, expires_at)
}

/// The moment that a time of the recipient's own day is.
fn local(node: &Node<'_>, zone: Option<&str>, problems: &mut Problems) -> Option<UnixMs> {
    let object = Object::open(node, "/send_at", LOCAL, problems)?;
    let fallback = object.text("fallback_zone", line(64), problems).and_then(|name| match name.parse::<Zone>() {
        Ok(zone) => Some(zone),
        Err(_) => {
            problems.add("/send_at/fallback_zone", "must be an IANA time zone such as Europe/Stockholm");
            None
        }
    });
    if !object.has("local") {
        problems.add("/send_at/local", "is required");
    }
    let local = object.text("local", line(32), problems).and_then(|text| match text.parse::<LocalTime>() {
        Ok(local) => Some(local),
        Err(_) => {
            let detail = "must be a date and time of day that there is, without an offset, such as 2026-12-24T09:00:00";
            problems.add("/send_at/local", detail);
            None
        }
    })?;
    // What is stored of a recipient was checked when it was stored.
    let own = zone.and_then(|name| name.parse().ok());
    let Some(zone) = own.or(fallback) else {
        if !object.has("fallback_zone") {
            let detail = "the recipient's time zone is not known: give to.time_zone, or send_at.fallback_zone";
            problems.add_passing(FieldProblem::new("/send_at/local", detail));
        }
        return None;
    };
    let at = zone.at(local);
    if at.is_none() {
        problems.add("/send_at/local", "must lie within 90 days from now");
    }
    at
}
