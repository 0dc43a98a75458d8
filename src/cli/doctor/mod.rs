//! `doctor`: everything that can be looked at from here, each with what to do about it.

use serde_json::json;

use super::Shell;
use super::exit::Exit;
use super::terminal::{Colour, Format, Look, print, print_json, table_of_sentences};
use crate::app::probe::{self, NoStore, open_store};
use crate::config::{Config, StoreKind};
use crate::content::Content;
use crate::content::lint::lint;

mod place;
mod server;
mod store;

const HELD: &str = "what was due before the store was restored is held until it is released or cancelled: see \
                    `belfry restored`";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Good,
    /// Worth knowing; nothing to do.
    Note,
    /// To be looked at: exit code 3.
    Finding,
}

impl Verdict {
    const fn name(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Finding => "finding",
        }
    }
}

struct Check {
    name: String,
    verdict: Verdict,
    what: String,
}

impl Check {
    fn new(name: impl Into<String>, verdict: Verdict, what: impl Into<String>) -> Self {
        Self { name: name.into(), verdict, what: what.into() }
    }

    fn of(name: impl Into<String>, found: Result<String, String>) -> Self {
        match found {
            Ok(what) => Self::new(name, Verdict::Good, what),
            Err(what) => Self::new(name, Verdict::Finding, what),
        }
    }
}

pub async fn run(shell: &Shell) -> anyhow::Result<Exit> {
    let config = shell.config()?;
    let mut checks = vec![configuration(shell, &config)];
    if !config.unread.is_empty() {
        let what = format!("not read: {}; keys are overridden by BELFRY__SECTION__KEY", config.unread.join(", "));
        checks.push(Check::new("environment", Verdict::Note, what));
    }
    checks.extend(config.notes().iter().map(|note| {
        let verdict = if note.matters { Verdict::Finding } else { Verdict::Note };
        Check::new(&note.key, verdict, format!("{} {}", note.key, note.what))
    }));
    // The store's own lock says whether a server runs on it; who answers at the address may be another.
    match open_store(&config).await {
        opened if config.store.kind == StoreKind::Redis => {
            checks.push(server::one_of_several(&config).await);
            store::looked_at(&config, opened, &mut checks).await;
        }
        Err(NoStore::Held) => {
            checks.push(server::of_the_store(&config).await);
            let what = format!("{} is held by the running server, as it should be", shown(&config));
            checks.push(Check::new("store", Verdict::Good, what));
        }
        opened => {
            checks.push(server::none_here(&config).await);
            store::looked_at(&config, opened, &mut checks).await;
        }
    }
    checks.push(place::folder(&config));
    checks.push(place::disk(&config));
    checks.push(place::clock());
    providers(&config, &mut checks).await;
    checks.push(templates(&config));
    printed(&shell.look, &checks)?;
    let found = checks.iter().any(|check| check.verdict == Verdict::Finding);
    Ok(if found { Exit::Findings } else { Exit::Ok })
}

fn shown(config: &Config) -> std::path::Display<'_> {
    config.store.sqlite.path.display()
}

fn printed(look: &Look, checks: &[Check]) -> anyhow::Result<()> {
    if look.format == Format::Json {
        let one = |check: &Check| json!({ "check": check.name, "verdict": check.verdict.name(), "what": check.what });
        print_json(&json!({ "checks": checks.iter().map(one).collect::<Vec<_>>() }))?;
        return Ok(());
    }
    let verdict = |check: &Check| {
        let colour = match check.verdict {
            Verdict::Good => Colour::Green,
            Verdict::Note => Colour::Faint,
            Verdict::Finding => Colour::Red,
        };
        look.paint(colour, check.verdict.name())
    };
    let rows: Vec<Vec<String>> =
        checks.iter().map(|check| vec![verdict(check), check.name.clone(), check.what.clone()]).collect();
    // What to do about a finding must not be cut off.
    print(&table_of_sentences(look, &["VERDICT", "CHECK", "WHAT"], &rows))?;
    Ok(())
}

fn configuration(shell: &Shell, config: &Config) -> Check {
    let from = shell.sources.file.as_ref().map_or_else(
        || "the embedded defaults".to_owned(),
        |path| format!("{} over the embedded defaults", path.display()),
    );
    Check::new("configuration", Verdict::Good, format!("{} keys from {from}", config.shown().len()))
}

async fn providers(config: &Config, checks: &mut Vec<Check>) {
    if config.providers.is_empty() {
        let what = "none: every message goes to the outbox and to nobody";
        checks.push(Check::new("providers", Verdict::Note, what));
    }
    for (name, provider) in &config.providers {
        checks.push(Check::of(format!("provider {name}"), probe::provider(provider).await));
    }
}

fn templates(config: &Config) -> Check {
    let path = &config.templates.path;
    if Content::nothing_given(path) {
        let what = format!("{} is not there: the built-in ones are used", path.display());
        return Check::new("templates", Verdict::Note, what);
    }
    let findings = lint(path, &config.unsubscribing());
    if super::templates::matters(&findings) {
        let count = findings.len();
        let word = if count == 1 { "finding" } else { "findings" };
        let what = format!("{count} {word} in {}; see `belfry templates lint`", path.display());
        return Check::new("templates", Verdict::Finding, what);
    }
    Check::new("templates", Verdict::Good, format!("those in {} compile and survive repeats", path.display()))
}
