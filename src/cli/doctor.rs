//! `doctor`: everything that can be looked at from here, each with what to do about it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::Shell;
use super::client::{Client, ServerArgs};
use super::exit::Exit;
use super::terminal::{Colour, Format, Look, print, print_json, table};
use crate::app::probe::{self, NoStore, open_store};
use crate::config::Config;
use crate::content::Content;
use crate::content::lint::lint;
use crate::machine::MachineClock;
use crate::ports::clock::Clock;

/// Under this the store may soon be unable to accept.
const LITTLE_SPACE: u64 = 1 << 30;
/// 2026-01-01: before any release of this program, so a clock that says so is wrong.
const EARLIEST: i64 = 1_767_225_600_000;

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
    let server_up = server(&config, &mut checks).await;
    checks.push(folder(&config));
    checks.push(disk(&config));
    if server_up {
        let what = "held by the running server, as it should be; readiness made a real write";
        checks.push(Check::new("store", Verdict::Good, what));
    } else {
        checks.push(store(&config).await);
    }
    checks.push(clock());
    providers(&config, &mut checks).await;
    checks.push(templates(&config));
    printed(&shell.look, &checks)?;
    let found = checks.iter().any(|check| check.verdict == Verdict::Finding);
    Ok(if found { Exit::Findings } else { Exit::Ok })
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
    // Whole sentences: what to do about a finding must not be cut off.
    let whole = Look { width: None, ..*look };
    print(&table(&whole, &["", "CHECK", "WHAT"], &rows))?;
    Ok(())
}

fn configuration(shell: &Shell, config: &Config) -> Check {
    let from = shell.sources.file.as_ref().map_or_else(
        || "the embedded defaults".to_owned(),
        |path| format!("{} over the embedded defaults", path.display()),
    );
    Check::new("configuration", Verdict::Good, format!("{} keys from {from}", config.shown().len()))
}

/// Whether a server runs here.
async fn server(config: &Config, checks: &mut Vec<Check>) -> bool {
    let asked = match Client::discover(&ServerArgs::default(), config) {
        Ok(client) => client.get("/readyz?verbose").await.map(|answer| (client, answer)),
        Err(failure) => Err(failure),
    };
    match asked {
        Err(_) => {
            checks.push(Check::new("server", Verdict::Note, "none runs on this machine"));
            false
        }
        Ok((client, answer)) if answer.status.is_success() => {
            checks.push(Check::new("server", Verdict::Good, format!("ready at {}", client.base())));
            true
        }
        Ok((client, answer)) => {
            let what = format!("{} answers {}: not ready", client.base(), answer.status.as_u16());
            checks.push(Check::new("server", Verdict::Finding, what));
            true
        }
    }
}

fn store_folder(config: &Config) -> PathBuf {
    let folder = config.store.sqlite.path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

/// The nearest folder that is there.
fn existing(folder: &Path) -> &Path {
    folder.ancestors().find(|one| one.is_dir()).unwrap_or(Path::new("."))
}

fn folder(config: &Config) -> Check {
    let folder = store_folder(config);
    let shown = folder.display();
    if !folder.exists() {
        return Check::new("folder", Verdict::Note, format!("{shown} is not there yet; the first start makes it"));
    }
    let mode = match std::fs::metadata(&folder) {
        Ok(found) => found.permissions().mode() & 0o777,
        Err(error) => return Check::new("folder", Verdict::Finding, format!("{shown}: {error}")),
    };
    if mode & 0o077 != 0 {
        let what = format!("{shown} has mode {mode:04o}: others can read messages and keys; chmod 700 {shown}");
        return Check::new("folder", Verdict::Finding, what);
    }
    if rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK).is_err() {
        return Check::new("folder", Verdict::Finding, format!("{shown} cannot be written to by this user"));
    }
    Check::new("folder", Verdict::Good, format!("{shown} is the owner's alone"))
}

fn disk(config: &Config) -> Check {
    let folder = store_folder(config);
    let place = existing(&folder);
    match rustix::fs::statvfs(place) {
        Err(error) => Check::new("disk", Verdict::Finding, format!("{}: {error}", place.display())),
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let what = format!("{} MiB free at {}", free >> 20, place.display());
            if free < LITTLE_SPACE {
                return Check::new("disk", Verdict::Finding, format!("only {what}: a full disk means 503"));
            }
            Check::new("disk", Verdict::Good, what)
        }
    }
}

async fn store(config: &Config) -> Check {
    let stores = match open_store(config) {
        Ok(stores) => stores,
        Err(absent @ NoStore::Absent) => return Check::new("store", Verdict::Note, absent.to_string()),
        Err(error) => return Check::new("store", Verdict::Finding, error.to_string()),
    };
    let probed = stores.deliveries.probe().await;
    stores.close().await;
    match probed {
        Ok(()) => Check::new("store", Verdict::Good, format!("opened and written to. {}", stores.durability)),
        Err(error) => Check::new("store", Verdict::Finding, error.to_string()),
    }
}

fn clock() -> Check {
    let now = MachineClock.now();
    if now.0 < EARLIEST {
        let what = "says a time before this program was made: expiry, schedules and remembering would go wrong";
        return Check::new("clock", Verdict::Finding, what);
    }
    let shown = jiff::Timestamp::from_millisecond(now.0).map_or_else(|_| "?".into(), |at| at.to_string());
    Check::new("clock", Verdict::Good, shown)
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
    let findings = lint(path);
    if super::templates::matters(&findings) {
        let what = format!("{} findings in {}; see `belfry templates lint`", findings.len(), path.display());
        return Check::new("templates", Verdict::Finding, what);
    }
    Check::new("templates", Verdict::Good, format!("those in {} compile and survive repeats", path.display()))
}
