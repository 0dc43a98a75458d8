//! What a push may hold. The same rules for what stands in a request and for what a template makes.

use super::super::json::{Json, child};
use crate::ports::message::PushType;

/// Every member.
pub const MEMBERS: &[&str] = &[
    "title",
    "subtitle",
    "body",
    "title_key",
    "title_args",
    "body_key",
    "body_args",
    "badge",
    "sound",
    "link",
    "image",
    "category",
    "thread",
    "actions",
    "data",
    "silent",
    "urgency",
    "apns",
    "fcm",
    "web_push",
];

pub const PUSH_TYPES: [(&str, PushType); 8] = [
    ("alert", PushType::Alert),
    ("background", PushType::Background),
    ("voip", PushType::Voip),
    ("complication", PushType::Complication),
    ("fileprovider", PushType::FileProvider),
    ("liveactivity", PushType::LiveActivity),
    ("location", PushType::Location),
    ("pushtotalk", PushType::PushToTalk),
];

/// Texts and how many characters they may have.
const TEXTS: [(&str, usize); 10] = [
    ("title", 1000),
    ("subtitle", 1000),
    ("body", 4000),
    ("title_key", 255),
    ("body_key", 255),
    ("sound", 255),
    ("link", 2048),
    ("image", 2048),
    ("category", 255),
    ("thread", 255),
];
/// What else than data a push may be about.
const PURPOSES: [&str; 10] =
    ["title", "body", "title_key", "body_key", "badge", "data", "silent", "apns", "fcm", "web_push"];
/// Browsers show two, iOS four.
const MOST_ACTIONS: usize = 4;
const MOST_ARGS: usize = 20;
/// A badge is the number that is then shown, so that a repeat shows the same.
const MOST_BADGE: u64 = 1_000_000;

/// A fault and its place within the push (`/data/from`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    pub pointer: String,
    pub detail: String,
}

/// Everything wrong with a push that stands in a request: as [`check`], and lengths and characters.
#[must_use]
pub fn check_written(push: &Json) -> Vec<Wrong> {
    checked(push, true)
}

/// Everything wrong with `push`.
#[must_use]
pub fn check(push: &Json) -> Vec<Wrong> {
    checked(push, false)
}

fn checked(push: &Json, written: bool) -> Vec<Wrong> {
    let mut checks = Checks { written, found: Vec::new() };
    let Json::Object(members) = push else {
        checks.add("", "must be an object");
        return checks.found;
    };
    for (name, value) in members {
        checks.member(name, value);
    }
    if !PURPOSES.iter().any(|name| push.get(name).is_some()) {
        checks.add("", "must have a title, a body or data");
    }
    checks.silent(push);
    checks.background(push);
    for (key, args) in [("title_key", "title_args"), ("body_key", "body_args")] {
        if push.get(args).is_some() && push.get(key).is_none() {
            checks.add(&format!("/{args}"), &format!("stands only beside {key}"));
        }
    }
    checks.found
}

struct Checks {
    /// By hand, in a request.
    written: bool,
    found: Vec<Wrong>,
}

impl Checks {
    fn add(&mut self, pointer: &str, detail: &str) {
        self.found.push(Wrong { pointer: pointer.to_owned(), detail: detail.to_owned() });
    }

    fn member(&mut self, name: &str, value: &Json) {
        let pointer = child("", name);
        if let Some((_, most)) = TEXTS.iter().find(|(known, _)| *known == name) {
            return self.text(&pointer, value, *most, name == "body");
        }
        match name {
            "title_args" | "body_args" => self.args(&pointer, value),
            "badge" => self.badge(&pointer, value),
            "actions" => self.actions(&pointer, value),
            "data" => self.pairs(&pointer, value),
            "silent" if !matches!(value, Json::Bool(_)) => self.add(&pointer, "must be true or false"),
            "silent" => {}
            "urgency" => self.one_of(&pointer, value, &["high", "normal", "low"]),
            "apns" => self.apns(&pointer, value),
            "fcm" => self.fcm(&pointer, value),
            "web_push" => self.web_push(&pointer, value),
            _ => self.add(&pointer, &format!("is not a field here; there are {}", MEMBERS.join(", "))),
        }
    }

    fn text(&mut self, pointer: &str, value: &Json, most: usize, lines: bool) {
        let Json::Text(text) = value else { return self.add(pointer, "must be a string") };
        // What a template makes of a person's name is cut by nothing but the platforms' sizes.
        if !self.written {
            return;
        }
        let count = text.chars().count();
        if count > most || count == 0 {
            return self.add(pointer, &format!("must have 1 to {most} characters, has {count}"));
        }
        let control = |c: char| c.is_control() && !(lines && matches!(c, '\n' | '\r' | '\t'));
        if text.contains(control) {
            self.add(pointer, "must not contain control characters");
        }
    }

    fn one_of(&mut self, pointer: &str, value: &Json, names: &[&str]) {
        if !matches!(value, Json::Text(text) if names.contains(&text.as_str())) {
            self.add(pointer, &format!("must be one of {}", names.join(", ")));
        }
    }

    fn args(&mut self, pointer: &str, value: &Json) {
        match value {
            Json::List(items) if items.len() <= MOST_ARGS && items.iter().all(|one| matches!(one, Json::Text(_))) => {}
            _ => self.add(pointer, &format!("must be a list of at most {MOST_ARGS} strings")),
        }
    }

    fn badge(&mut self, pointer: &str, value: &Json) {
        match value {
            Json::Number(text) if text.parse::<u64>().is_ok_and(|badge| badge <= MOST_BADGE) => {}
            Json::Number(text) if text.starts_with('-') => self.add(pointer, "must not be negative"),
            _ => self.add(pointer, "must be the whole number that the badge then shows, never a difference"),
        }
    }

    fn actions(&mut self, pointer: &str, value: &Json) {
        let Json::List(items) = value else { return self.add(pointer, "must be a list") };
        if items.len() > MOST_ACTIONS {
            self.add(pointer, &format!("must hold at most {MOST_ACTIONS}, holds {}", items.len()));
        }
        for (at, item) in items.iter().enumerate() {
            let pointer = format!("{pointer}/{at}");
            let Json::Object(members) = item else {
                self.add(&pointer, "must be an object");
                continue;
            };
            for name in ["id", "title"] {
                if item.get(name).is_none() {
                    self.add(&child(&pointer, name), "is required");
                }
            }
            for (name, value) in members {
                let pointer = child(&pointer, name);
                match name.as_str() {
                    "id" => self.text(&pointer, value, 64, false),
                    "title" => self.text(&pointer, value, 100, false),
                    "link" | "icon" => self.text(&pointer, value, 2048, false),
                    _ => self.add(&pointer, "is not a field here; there are id, title, link, icon"),
                }
            }
        }
    }

    /// FCM takes strings only, and every platform keeps some names to itself.
    fn pairs(&mut self, pointer: &str, value: &Json) {
        let Json::Object(members) = value else { return self.add(pointer, "must be an object") };
        for (name, value) in members {
            let pointer = child(pointer, name);
            if !matches!(value, Json::Text(_)) {
                self.add(&pointer, "must be a string: push data holds strings only");
            } else if is_taken(name) {
                self.add(&pointer, "has a name that push providers keep to themselves");
            } else if is_ours(name) {
                self.add(&pointer, "has a name under which another part of the push arrives: aps, link, image, actions, category, thread, belfry…");
            }
        }
    }

    fn apns(&mut self, pointer: &str, value: &Json) {
        let Json::Object(members) = value else { return self.add(pointer, "must be an object") };
        for (name, value) in members {
            let pointer = child(pointer, name);
            match name.as_str() {
                "push_type" => self.one_of(&pointer, value, &PUSH_TYPES.map(|(name, _)| name)),
                "aps" if !matches!(value, Json::Object(_)) => self.add(&pointer, "must be an object"),
                "belfry" => self.add(&pointer, "has a name under which another part of the push arrives"),
                _ => {}
            }
        }
    }

    fn web_push(&mut self, pointer: &str, value: &Json) {
        let Json::Object(members) = value else { return self.add(pointer, "must be an object") };
        if members.iter().any(|(name, _)| name == "belfry") {
            self.add(&child(pointer, "belfry"), "has a name under which another part of the push arrives");
        }
    }

    fn fcm(&mut self, pointer: &str, value: &Json) {
        let Json::Object(members) = value else { return self.add(pointer, "must be an object") };
        for (name, value) in members {
            let pointer = child(pointer, name);
            match name.as_str() {
                "data" => self.pairs(&pointer, value),
                "notification" | "android" | "apns" | "webpush" | "fcm_options" => {
                    if !matches!(value, Json::Object(_)) {
                        self.add(&pointer, "must be an object");
                    }
                    // Both take the place of the common data, and go by the same rules.
                    if let Some(pairs) = value.get("data").filter(|_| matches!(name.as_str(), "android" | "webpush")) {
                        self.pairs(&child(&pointer, "data"), pairs);
                    }
                }
                _ => {
                    let known = "notification, data, android, apns, webpush, fcm_options";
                    self.add(&pointer, &format!("is not a field here; there are {known}"));
                }
            }
        }
    }

    /// The same where APNs is told so by name.
    fn background(&mut self, push: &Json) {
        let named = push.get("apns").and_then(|apns| apns.get("push_type"));
        if named == Some(&Json::Text("background".into()))
            && ["title", "body", "badge", "sound"].iter().any(|name| push.get(name).is_some())
        {
            self.add("/apns/push_type", "must not be background beside what is shown");
        }
    }

    /// A background push with something to show is refused by Apple, or shown by chance.
    fn silent(&mut self, push: &Json) {
        if push.get("silent") != Some(&Json::Bool(true)) {
            return;
        }
        for name in ["title", "subtitle", "body", "title_key", "body_key", "badge", "sound"] {
            if push.get(name).is_some() {
                self.add(&format!("/{name}"), "must not stand beside silent");
            }
        }
    }
}

fn is_taken(name: &str) -> bool {
    matches!(name, "from" | "message_type" | "notification") || name.starts_with("google") || name.starts_with("gcm")
}

fn is_ours(name: &str) -> bool {
    matches!(name, "aps" | "link" | "image" | "actions" | "category" | "thread") || name.starts_with("belfry")
}
