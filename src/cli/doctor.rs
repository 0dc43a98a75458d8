//! `doctor`: everything that can be looked at from here, each with what to do about it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::Shell;
use super::client::{Answer, Client, ServerArgs};
use super::exit::Exit;
use super::status::Readiness;
use super::terminal::{Colour, Format, Look, print, print_json, table};
use crate::app::Stores;
use crate::app::probe::{self, NoStore, open_store};
use crate::config::{Config, StoreKind};
use crate::content::Content;
use crate::content::lint::lint;
use crate::machine::MachineClock;
use crate::ports::clock::Clock;

/// Under this the store may soon be unable to accept.
const LITTLE_SPACE: u64 = 1 << 30;
/// How long a program on this machine may take to take a connection.
const MOMENT: std::time::Duration = std::time::Duration::from_secs(1);
/// 2026-01-01: before any release of this program, so a clock that says so is wrong.
const EARLIEST: i64 = 1_767_225_600_000;

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
    // The store's own lock says whether a server runs on it; who answers at the address may be another.
    match open_store(&config).await {
        opened if config.store.kind == StoreKind::Redis => {
            checks.push(one_of_several(&config).await);
            checks.push(store(&config, opened).await);
        }
        Err(NoStore::Held) => {
            checks.push(server(&config).await);
            let what = format!("{} is held by the running server, as it should be", shown(&config));
            checks.push(Check::new("store", Verdict::Good, what));
        }
        opened => {
            checks.push(nobody_here(&config).await);
            checks.push(store(&config, opened).await);
        }
    }
    checks.push(folder(&config));
    checks.push(disk(&config));
    checks.push(clock());
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
    // Whole sentences: what to do about a finding must not be cut off.
    let whole = Look { width: None, ..*look };
    print(&table(&whole, &["VERDICT", "CHECK", "WHAT"], &rows))?;
    Ok(())
}

fn configuration(shell: &Shell, config: &Config) -> Check {
    let from = shell.sources.file.as_ref().map_or_else(
        || "the embedded defaults".to_owned(),
        |path| format!("{} over the embedded defaults", path.display()),
    );
    Check::new("configuration", Verdict::Good, format!("{} keys from {from}", config.shown().len()))
}

/// The server that holds the store.
async fn server(config: &Config) -> Check {
    let asked = match Client::discover(&ServerArgs::default(), config) {
        Ok(client) => client.get("/readyz?verbose").await.map(|answer| (client, answer)),
        Err(failure) => Err(failure),
    };
    match asked {
        Ok((_, answer)) if holds(&answer) => Check::new("server", Verdict::Finding, HELD),
        Ok((client, answer)) if answer.status.is_success() => {
            let what = format!("ready at {}{}: it made a real write and read", client.base(), roles(&answer));
            Check::new("server", Verdict::Good, what)
        }
        Ok((client, answer)) => {
            let what = format!("{} answers {}: not ready", client.base(), answer.status.as_u16());
            Check::new("server", Verdict::Finding, what)
        }
        Err(failure) => {
            let what = format!("one holds {}, but does not answer: {failure}", shown(config));
            Check::new("server", Verdict::Finding, what)
        }
    }
}

/// Several nodes may share a Redis: one that is reached from here says what it does.
async fn one_of_several(config: &Config) -> Check {
    let asked = match Client::discover(&ServerArgs::default(), config) {
        Ok(client) => client.get("/readyz?verbose").await.map(|answer| (client, answer)),
        Err(failure) => Err(failure),
    };
    match asked {
        Ok((client, answer)) if answer.status.is_success() => {
            Check::new("server", Verdict::Good, format!("ready at {}{}", client.base(), roles(&answer)))
        }
        Ok((client, answer)) => {
            let what = format!("{} answers {}: not ready", client.base(), answer.status.as_u16());
            Check::new("server", Verdict::Finding, what)
        }
        Err(_) => Check::new("server", Verdict::Note, "no node of this store answers on this machine"),
    }
}

/// ` as api, worker`; nothing of a server that does not say.
fn roles(answer: &Answer) -> String {
    match answer.read::<Readiness>("what a server says about itself") {
        Ok(it) if !it.roles.is_empty() => format!(" as {}", it.roles.join(", ")),
        Ok(_) | Err(_) => String::new(),
    }
}

fn holds(answer: &Answer) -> bool {
    answer.read::<Readiness>("what a server says about itself").is_ok_and(|it| it.ready && it.holds())
}

/// Nobody has this store open. Somebody else may have the address.
async fn nobody_here(config: &Config) -> Check {
    let listen = config.http.listen;
    let taken = listen.port() != 0 && std::net::TcpStream::connect_timeout(&listen, MOMENT).is_ok();
    let what = if taken {
        format!(
            "none runs on this store; another program answers at {listen}, so that a start here needs --port or \
             another http.listen"
        )
    } else {
        "none runs on this store".into()
    };
    Check::new("server", Verdict::Note, what)
}

fn store_folder(config: &Config) -> PathBuf {
    let folder = config.store.sqlite.path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

/// The nearest of the folder and those above it that is there.
fn existing(folder: &Path) -> &Path {
    folder.ancestors().find(|one| !one.as_os_str().is_empty() && one.exists()).unwrap_or(Path::new("."))
}

fn folder(config: &Config) -> Check {
    let folder = store_folder(config);
    let shown = folder.display();
    if !folder.exists() {
        return match can_be_made(&folder) {
            Ok(()) => {
                Check::new("folder", Verdict::Note, format!("{shown} is not there yet; the first start makes it"))
            }
            Err(why) => {
                Check::new("folder", Verdict::Finding, format!("{shown} is not there and cannot be made: {why}"))
            }
        };
    }
    let mode = match std::fs::metadata(&folder) {
        Ok(found) if !found.is_dir() => {
            return Check::new("folder", Verdict::Finding, format!("{shown} is no folder"));
        }
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

/// Tries it with another name: permissions alone do not tell (of `/proc`, of a read-only mount).
fn can_be_made(folder: &Path) -> std::io::Result<()> {
    let trial = existing(folder).join(format!(".belfry-doctor-{}", std::process::id()));
    std::fs::create_dir(&trial)?;
    std::fs::remove_dir(&trial)
}

fn disk(config: &Config) -> Check {
    let folder = store_folder(config);
    let place = existing(&folder);
    match rustix::fs::statvfs(place) {
        Err(error) => Check::new("disk", Verdict::Finding, format!("{}: {error}", place.display())),
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let what = format!("{} free at {}", size(free), place.display());
            if free < LITTLE_SPACE {
                return Check::new("disk", Verdict::Finding, format!("only {what}: a full disk means 503"));
            }
            Check::new("disk", Verdict::Good, what)
        }
    }
}

/// `27.3 GiB`.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    // In tenths: whole numbers keep what they say.
    let mut tenths = u128::from(bytes) * 10 / 1024;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

async fn store(config: &Config, opened: Result<Stores, NoStore>) -> Check {
    let stores = match opened {
        Ok(stores) => stores,
        Err(absent @ NoStore::Absent(_)) if can_be_made(&config.store.sqlite.path).is_ok() => {
            return Check::new("store", Verdict::Note, absent.to_string());
        }
        Err(NoStore::Absent(path)) => {
            return Check::new("store", Verdict::Finding, format!("{} cannot be made", path.display()));
        }
        Err(error) => return Check::new("store", Verdict::Finding, error.to_string()),
    };
    let probed = stores.deliveries.probe().await;
    let mut findings = stores.findings().await.unwrap_or_else(|error| vec![error.to_string()]);
    if let Ok(Some(_)) = stores.holds.standing().await {
        findings.push(HELD.into());
    }
    stores.close().await;
    match probed {
        Ok(()) if !findings.is_empty() => Check::new("store", Verdict::Finding, findings.join("\n")),
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
    // Honest about how little this is.
    let what = format!("it is {shown} here: not before 2026; compared with no time server");
    Check::new("clock", Verdict::Good, what)
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
        let count = findings.len();
        let word = if count == 1 { "finding" } else { "findings" };
        let what = format!("{count} {word} in {}; see `belfry templates lint`", path.display());
        return Check::new("templates", Verdict::Finding, what);
    }
    Check::new("templates", Verdict::Good, format!("those in {} compile and survive repeats", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_for_people() {
        for (bytes, shown) in [(0, "0.0 KiB"), (1536, "1.5 KiB"), (73_263_603_712, "68.2 GiB"), (1 << 50, "1024.0 TiB")]
        {
            assert_eq!(size(bytes), shown);
        }
    }
}
