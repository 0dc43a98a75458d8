//! `serve`: starts the server, says how to reach it, and turns signals into its verbs.

use std::io::{IsTerminal, stdout};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use clap::Args;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Shell;
use super::exit::{Exit, Failure};
use super::local::LocalDir;
use super::terminal::{Colour, Format, Look, colour_on_stderr, print, print_json};
use crate::app::{AllRoles, Role, Roles, RunningApp, StartOptions, start_telling};
use crate::config::{BOOTSTRAP_KEY, Config, LogFormat, StoreKind};
use crate::telemetry::start_logging;

#[derive(Args)]
pub struct ServeArgs {
    /// Keep everything in memory: for callers' own tests
    #[arg(long)]
    ephemeral: bool,
    /// Listen on this port; 0 takes a free one
    #[arg(long)]
    port: Option<u16>,
    /// What this node does, of api, worker and scheduler; other nodes on the same Redis do the rest
    #[arg(long, env = "BELFRY_ROLES", value_name = "ROLES", default_value_t = Roles::ALL)]
    roles: Roles,
    /// The store was restored from a backup: hold what was due by now, which may have been sent before
    /// the loss, until it is released (see `belfry restored`)
    #[arg(long, conflicts_with = "ephemeral")]
    after_restore: bool,
}

pub async fn run(shell: &Shell, args: &ServeArgs) -> anyhow::Result<Exit> {
    let config = shell.config()?;
    start_logging(&config.log, colour_on_stderr())?;
    // Before anything is announced: a signal that comes right after has to find its listener.
    let mut signals = Signals::new().context("cannot listen for signals")?;
    let options = StartOptions {
        ephemeral: args.ephemeral,
        port: args.port,
        roles: args.roles,
        after_restore: args.after_restore,
    };
    let left = Left::default();
    // What lives in memory leaves nothing on disk; commands need a node that answers them.
    let leaves = !args.ephemeral && args.roles.has(Role::Api);
    let dir = Some(LocalDir::of(&config)).filter(|_| leaves);
    let listening = |address: SocketAddr| match &dir {
        // Others may run on it, whatever becomes of this start; of a file only one has the say.
        Some(dir) if config.store.kind == StoreKind::Redis => left.leave(dir, address),
        _ => {}
    };
    let running = tokio::select! {
        biased;
        // A start may wait for the store; whoever no longer wants it does not.
        () = signals.end() => return Ok(Exit::Ok),
        running = start_telling(config.clone(), options, listening) => running.map_err(with_code)?,
    };
    if let Some(dir) = &dir {
        if let Some(key) = &running.first_key {
            dir.leave_key(key)?;
        }
        left.leave(dir, running.address);
    }
    announce(shell, &config, &running, dir.as_ref())?;
    let signal = until_asked_to_end(shell, &running, &mut signals).await;
    running.tell_end_asked(signal);
    tokio::select! {
        biased;
        () = running.stop() => Ok(Exit::Ok),
        // At once means at once: the store's files are made to be left like this.
        () = signals.end() => std::process::exit(Exit::Failed as i32),
    }
}

/// The address that commands on this machine find, taken away at the end.
#[derive(Default)]
struct Left(Mutex<Option<(LocalDir, String)>>);

impl Left {
    /// Where it cannot be written the commands have to be told the address: nothing that a server dies of.
    fn leave(&self, dir: &LocalDir, address: SocketAddr) {
        let url = format!("http://{address}");
        match dir.leave_server(&url) {
            Ok(()) => *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((dir.clone(), url)),
            Err(why) => eprintln!("belfry: {why:#}; give the commands on this machine --server {url}"),
        }
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        if let Some((dir, url)) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            // One that stays is passed over: nobody answers there.
            dir.forget_server(url).ok();
        }
    }
}

/// A usage error of the one option that only the start can judge.
fn with_code(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<AllRoles>() {
        Some(refused) => Failure::new(Exit::Usage, refused.to_string()).into(),
        None => error,
    }
}

/// Reloads beside the signals: however long reading takes, the end is obeyed. A reload that is
/// asked for during another follows it.
async fn until_asked_to_end(shell: &Shell, running: &RunningApp, signals: &mut Signals) -> &'static str {
    let mut asked = signals.next().await;
    loop {
        if let Asked::End(signal) = asked {
            return signal;
        }
        let sources = shell.sources.clone();
        // Either end is told by the application itself, as a fact.
        let mut reload = std::pin::pin!(running.reload(move || Config::load(&sources)));
        let mut again = false;
        asked = loop {
            tokio::select! {
                biased;
                next = signals.next() => match next {
                    end @ Asked::End(_) => break end,
                    Asked::Reload => again = true,
                },
                _ = &mut reload => break if again { Asked::Reload } else { signals.next().await },
            }
        };
    }
}

enum Asked {
    Reload,
    /// By which signal.
    End(&'static str),
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Asked {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => Asked::End("SIGTERM"),
            _ = self.interrupt.recv() => Asked::End("SIGINT"),
            _ = self.hang_up.recv() => Asked::Reload,
        }
    }

    async fn end(&mut self) {
        while matches!(self.next().await, Asked::Reload) {}
    }
}

/// Says how to reach the server.
fn announce(shell: &Shell, config: &Config, running: &RunningApp, dir: Option<&LocalDir>) -> anyhow::Result<()> {
    let url = format!("http://{}", running.address);
    let left = dir.filter(|dir| dir.key().is_some()).map(LocalDir::key_path);
    let just_left = left.as_deref().filter(|_| running.first_key.is_some());
    running.tell_started(shell.sources.file.as_deref(), just_left);
    // What is written to no terminal ends up in a journal or a log, where no key belongs; one that
    // is kept nowhere has to be told all the same.
    let told_key = running.first_key.as_deref().filter(|_| left.is_none() || stdout().is_terminal());
    let told = Told {
        url: &url,
        first: running.first_key.is_some(),
        key: told_key,
        file: left.map(|path| path.display().to_string()),
        bootstrap: config.bootstrap_key.is_some(),
        roles: running.roles,
    };
    match (shell.look.format, config.log.format) {
        // Whoever starts a server for a test reads one line and goes on.
        (Format::Json, _) => print_json(&told.as_json(running))?,
        (Format::Table, LogFormat::Pretty) => print(&told.banner(&shell.look))?,
        // Beside lines for programs only what nobody can do without.
        (Format::Table, LogFormat::Json) if told_key.is_some() => print_json(&told.as_json(running))?,
        (Format::Table, LogFormat::Json) => {}
    }
    Ok(())
}

/// What a start tells.
struct Told<'a> {
    url: &'a str,
    /// This start made the first key.
    first: bool,
    /// The first key, where it may be shown.
    key: Option<&'a str>,
    /// The file with the first key, where there is one.
    file: Option<String>,
    /// There is a key in the environment.
    bootstrap: bool,
    roles: Roles,
}

impl Told<'_> {
    fn as_json(&self, running: &RunningApp) -> serde_json::Value {
        if !self.roles.has(Role::Api) {
            return json!({ "address": running.address.to_string(), "roles": self.roles.names() });
        }
        json!({
            "address": running.address.to_string(),
            "roles": self.roles.names(),
            "api": format!("{}/v1", self.url),
            "outbox": format!("{}/admin", self.url),
            "api_key": self.key,
            "api_key_file": self.file,
        })
    }

    fn banner(&self, look: &Look) -> String {
        let url = self.url;
        let strong = |text: &str| look.paint(Colour::Bold, text);
        let up = match self.roles.are_all() {
            true => concat!("Belfry ", env!("CARGO_PKG_VERSION"), " is up.").to_owned(),
            false => format!("Belfry {} is up as {}.", env!("CARGO_PKG_VERSION"), self.roles.names().join(" and ")),
        };
        if !self.roles.has(Role::Api) {
            return format!("{}\n\n  Operations {url}/readyz?verbose and {url}/metrics\n\n", strong(&up));
        }
        let key_line = match (self.key, &self.file) {
            (Some(key), Some(path)) => format!(
                "  API key    {}\n             shown once; commands on this machine find it in {path}\n",
                strong(key)
            ),
            (Some(key), None) => format!("  API key    {}\n             shown once\n", strong(key)),
            (None, Some(path)) if self.first => format!("  API key    made, and kept in {path} (mode 0600)\n"),
            (None, Some(path)) => format!("  API key    the first one is in {path}\n"),
            (None, None) if self.bootstrap => format!("  API key    yours, from {BOOTSTRAP_KEY}\n"),
            (None, None) => "  API key    yours; make another with `belfry keys create`\n".into(),
        };
        let (before, bearer) = match (self.key, &self.file) {
            (Some(key), _) => ("", key.to_owned()),
            (None, Some(path)) => ("", format!("$(cat {path})")),
            (None, None) if self.bootstrap => ("", format!("${BOOTSTRAP_KEY}")),
            (None, None) => (" (with your key in BELFRY_API_KEY)", "$BELFRY_API_KEY".to_owned()),
        };
        format!(
            "{}\n\n  Outbox     {url}/admin\n  API        {url}/v1   (described at {url}/docs)\n{key_line}\n\
             Send something, as often as you like; it goes out once{before}:\n\n{}\n\n",
            strong(&up),
            curl(url, &bearer),
        )
    }
}

fn curl(url: &str, bearer: &str) -> String {
    format!(
        "  curl -sS {url}/v1/notifications \\\n    -H \"Authorization: Bearer {bearer}\" \\\n    \
         -H 'Content-Type: application/json' -H 'Idempotency-Key: hello-1' \\\n    \
         -d '{{\"class\":\"transactional\",\"to\":{{\"email\":\"ada@example.com\"}},\
         \"content\":{{\"subject\":\"Hello\",\"text\":\"It works.\"}}}}'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Look = Look { format: Format::Table, colour: false, width: None };

    #[test]
    fn the_curl_carries_the_key_or_where_it_is() {
        let url = "http://127.0.0.1:8090";
        let told = |key, first, file: Option<&str>, bootstrap| {
            let file = file.map(str::to_owned);
            Told { url, first, key, file, bootstrap, roles: Roles::ALL }.banner(&PLAIN)
        };
        let first = told(Some("blf_live_x"), true, Some(".belfry/api-key"), false);
        assert!(first.contains("Bearer blf_live_x\"") && first.contains(".belfry/api-key"), "{first}");
        for first in [true, false] {
            let kept = told(None, first, Some(".belfry/api-key"), false);
            assert!(kept.contains("Bearer $(cat .belfry/api-key)\"") && !kept.contains("blf_"), "{kept}");
        }
        let own = told(None, false, None, true);
        assert!(own.contains("Bearer $BELFRY_BOOTSTRAP_KEY\""), "{own}");
        assert!(told(None, false, None, false).contains("with your key in BELFRY_API_KEY"));
    }
}
