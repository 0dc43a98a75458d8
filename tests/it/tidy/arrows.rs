//! Who may know whom. Dependencies point one way, so that a store or a channel can be read, tested
//! and replaced without the rest.

use super::Finding;
use super::source::{File, Kind};

/// A room (a file or folder right under `src/`) and the rooms it may name besides itself. What
/// is not listed is forbidden. `belfry_domain` is for everybody.
const ARROWS: &[(&str, &[&str])] = &[
    ("ports", &[]),
    ("text_file", &[]),
    ("facts", &["ports"]),
    ("machine", &["ports"]),
    ("content", &["ports", "text_file"]),
    ("store", &["ports"]),
    ("channel", &["ports", "text_file"]),
    ("intake", &["ports", "content", "facts"]),
    ("engine", &["ports", "content", "facts"]),
    ("gatherer", &["ports", "facts", "intake"]),
    // It has what it sends accepted through the one door.
    ("schedules", &["ports", "facts", "intake"]),
    ("http", &["ports", "facts", "intake", "content"]),
    // The lanes' depths, the clock their age is told by, and how lines should look.
    ("telemetry", &["facts", "ports", "config"]),
    // Each channel owns the type of its `[providers.<name>]`, the Redis store that of its section.
    ("config", &["ports", "channel", "store", "text_file"]),
    // The only one that names concrete stores and channels.
    (
        "app",
        &[
            "channel",
            "config",
            "content",
            "engine",
            "facts",
            "gatherer",
            "http",
            "intake",
            "machine",
            "ports",
            "schedules",
            "store",
            "telemetry",
        ],
    ),
    // Reached from a command alone: what it can switch off must be nothing to those who serve.
    ("ops", &["ports", "facts", "intake", "engine", "machine"]),
    // `http` for the form of API keys alone.
    ("cli", &["app", "config", "content", "http", "machine", "ops", "ports", "telemetry", "text_file"]),
    // `main.rs` and `lib.rs` themselves.
    ("", &["cli"]),
];

/// Libraries that one room alone may name, so that what they do can be swapped there.
const LIBRARIES: &[(&str, &[&str])] = &[
    ("rusqlite", &["src/store/sqlite/"]),
    ("lettre", &["src/channel/smtp/"]),
    ("axum", &["src/http/"]),
    ("clap", &["src/cli/", "src/main.rs"]),
    ("minijinja", &["src/content/"]),
    ("prometheus_client", &["src/telemetry.rs", "src/telemetry/"]),
    ("tracing_subscriber", &["src/telemetry.rs", "src/telemetry/"]),
    ("figment", &["src/config/"]),
    ("anyhow", &["src/main.rs", "src/cli/", "src/app/"]),
];

fn room_of(file: &File) -> Option<&str> {
    file.module().map(|path| path.first().copied().unwrap_or(""))
}

/// A room that the table forgot.
pub(super) fn nameless(file: &File) -> Option<Finding> {
    let room = room_of(file)?;
    let known = ARROWS.iter().any(|(name, _)| *name == room);
    (!known).then(|| Finding::new("room", file, 1, format!("{room} has no row in the table of arrows")))
}

/// Arrows that the table does not have.
pub(super) fn rooms(file: &File) -> Vec<Finding> {
    let Some(own) = room_of(file) else { return Vec::new() };
    let may = ARROWS.iter().find(|(name, _)| *name == own).map_or(&[][..], |(_, may)| *may);
    named_rooms(file)
        .into_iter()
        .filter(|(room, _)| ARROWS.iter().any(|(name, _)| name == room))
        .filter(|(room, _)| room != own && !may.contains(&room.as_str()))
        .map(|(room, line)| Finding::new("arrow", file, line, format!("{own} → {room}")))
        .collect()
}

/// Every room that is named from the crate's root: `crate::room`, `crate::{room, …}`,
/// `belfry::room` in `main.rs`, or as many `super::` as lead there.
fn named_rooms(file: &File) -> Vec<(String, usize)> {
    let depth = file.module().map_or(0, |path| path.len());
    let mut found = Vec::new();
    let mut inline: Vec<usize> = Vec::new();
    let mut nesting = 0;
    for (at, token) in file.tokens.iter().enumerate() {
        match &token.kind {
            Kind::Open(_) => {
                nesting += 1;
                if at >= 2 && token.is('{') && file.tokens[at - 2].word() == Some("mod") {
                    inline.push(nesting);
                }
            }
            Kind::Close(_) => {
                if inline.last() == Some(&nesting) {
                    inline.pop();
                }
                nesting -= 1;
            }
            Kind::Word(word) if word == "crate" || word == "belfry" => first_words(file, at + 1, &mut found),
            Kind::Word(word) if word == "super" => {
                let first = at < 3 || !file.stands(at - 3, &["super", ":", ":"]);
                let mut end = at + 1;
                let mut supers = 1;
                while file.stands(end, &[":", ":", "super"]) {
                    supers += 1;
                    end += 3;
                }
                if first && supers == depth + inline.len() {
                    first_words(file, end, &mut found);
                }
            }
            _ => {}
        }
    }
    found
}

/// The words right after `::` at `at`, one or a braced list.
fn first_words(file: &File, at: usize, found: &mut Vec<(String, usize)>) {
    if !file.stands(at, &[":", ":"]) {
        return;
    }
    let mut at = at + 2;
    if let Some(word) = file.tokens.get(at).and_then(|token| token.word()) {
        found.push((word.to_owned(), file.tokens[at].line));
        return;
    }
    let mut nesting = 0;
    while let Some(token) = file.tokens.get(at) {
        match &token.kind {
            Kind::Open(_) => nesting += 1,
            Kind::Close(_) => nesting -= 1,
            Kind::Word(word) if nesting == 1 && (file.tokens[at - 1].is('{') || file.tokens[at - 1].is(',')) => {
                found.push((word.clone(), token.line));
            }
            _ => {}
        }
        if nesting == 0 {
            return;
        }
        at += 1;
    }
}

/// Libraries named outside their room.
pub(super) fn libraries(file: &File) -> Vec<Finding> {
    if !file.is_product() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (at, token) in file.tokens.iter().enumerate() {
        let Some(word) = token.word() else { continue };
        let Some((_, rooms)) = LIBRARIES.iter().find(|(name, _)| *name == word) else { continue };
        let names_it = file.stands(at + 1, &[":", ":"]) || at > 0 && file.tokens[at - 1].word() == Some("use");
        let at_home = rooms.iter().any(|room| file.path.starts_with(room));
        if names_it && !at_home {
            found.push(Finding::new("library", file, token.line, word));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        super::super::source::from_text(path, text)
    }

    #[test]
    fn finds_every_way_to_name_a_room() {
        for text in [
            "use crate::store::X;",
            "use crate::{ports::Y, store::X};",
            "use crate::{ports::{A, B}, store};",
            "fn f() { crate::store::x() }",
            "use super::super::store::X;",
            "mod tests { use super::super::super::store::X; }",
            "macro_rules! m { () => { $crate::store::x() } }",
        ] {
            let found = rooms(&file("src/intake/accept.rs", text));
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert_eq!(found[0].what, "intake → store");
        }
    }

    #[test]
    fn lets_through_what_may_be_named() {
        for text in [
            "use crate::ports::X;",
            "use super::batch::X;",
            "use super::super::ports::X;",
            "use belfry_domain::store;",
            "use crate::intake::{store, batch};",
        ] {
            assert_eq!(rooms(&file("src/intake/accept.rs", text)), [], "{text}");
        }
    }

    #[test]
    fn a_library_outside_its_room_is_found() {
        let text = "use rusqlite::Connection;";
        assert_eq!(libraries(&file("src/http/mod.rs", text)).len(), 1);
        assert_eq!(libraries(&file("src/store/sqlite/mod.rs", text)), []);
    }
}
