//! `serve`: starts the server, says how to reach it, and turns signals into its verbs.

use anyhow::Context;
use clap::Args;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Shell;
use super::exit::Exit;
use super::local::LocalDir;
use super::terminal::{Colour, Format, Look, colour_on_stderr, print};
use crate::app::{RunningApp, StartOptions, start};
use crate::config::Config;
use crate::telemetry::start_logging;

#[derive(Args)]
pub struct ServeArgs {
    /// Keep everything in memory: for callers' own tests
    #[arg(long)]
    ephemeral: bool,
    /// Listen on this port; 0 takes a free one
    #[arg(long)]
    port: Option<u16>,
}

pub async fn run(shell: &Shell, args: &ServeArgs) -> anyhow::Result<Exit> {
    let config = shell.config()?;
    start_logging(&config.log, colour_on_stderr())?;
    // Before anything is announced: a signal that comes right after has to find its listener.
    let mut signals = Signals::new().context("cannot listen for signals")?;
    let options = StartOptions { ephemeral: args.ephemeral, port: args.port };
    let running = start(config.clone(), options).await?;
    announce(shell, &config, &running, args.ephemeral)?;
    until_asked_to_end(shell, &running, &mut signals).await;
    tokio::select! {
        biased;
        () = running.stop() => Ok(Exit::Ok),
        // At once means at once: the store's files are made to be left like this.
        () = signals.end() => std::process::exit(Exit::Failed as i32),
    }
}

/// Reloads beside the signals: however long reading takes, the end is obeyed. A reload that is
/// asked for during another follows it.
async fn until_asked_to_end(shell: &Shell, running: &RunningApp, signals: &mut Signals) {
    let mut asked = signals.next().await;
    while let Asked::Reload = asked {
        let sources = shell.sources.clone();
        // Either end is told by the application itself, as a fact.
        let mut reload = std::pin::pin!(running.reload(move || Config::load(&sources)));
        let mut again = false;
        asked = loop {
            tokio::select! {
                biased;
                next = signals.next() => match next {
                    Asked::End => break Asked::End,
                    Asked::Reload => again = true,
                },
                _ = &mut reload => break if again { Asked::Reload } else { signals.next().await },
            }
        };
    }
}

enum Asked {
    Reload,
    End,
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
            _ = self.terminate.recv() => Asked::End,
            _ = self.interrupt.recv() => Asked::End,
            _ = self.hang_up.recv() => Asked::Reload,
        }
    }

    async fn end(&mut self) {
        while !matches!(self.next().await, Asked::End) {}
    }
}

/// Leaves what other commands on this machine need, and says how to reach the server.
fn announce(shell: &Shell, config: &Config, running: &RunningApp, ephemeral: bool) -> anyhow::Result<()> {
    let url = format!("http://{}", running.address);
    let dir = LocalDir::of(config);
    // What lives in memory leaves nothing on disk.
    let left = if ephemeral {
        None
    } else {
        if let Some(key) = &running.first_key {
            dir.leave_key(key)?;
        }
        dir.leave_server(&url)?;
        dir.key().map(|_| dir.key_path())
    };
    match shell.look.format {
        // On one line: whoever starts a server for a test reads one line and goes on.
        Format::Json => {
            let told = json!({
                "address": running.address.to_string(),
                "api": format!("{url}/v1"),
                "dashboard": format!("{url}/admin"),
                "api_key": running.first_key,
            });
            print(&format!("{told}\n"))?;
        }
        Format::Table => {
            let left = left.map(|path| path.display().to_string());
            print(&banner(&shell.look, &url, running.first_key.as_deref(), left.as_deref()))?;
        }
    }
    Ok(())
}

/// `left`: the file with the first key, where there is one.
fn banner(look: &Look, url: &str, first_key: Option<&str>, left: Option<&str>) -> String {
    let strong = |text: &str| look.paint(Colour::Bold, text);
    let key_line = match (first_key, left) {
        (Some(key), Some(path)) => format!(
            "  API key    {}\n             shown once; commands on this machine find it in {path}\n",
            strong(key)
        ),
        (Some(key), None) => format!("  API key    {}\n             shown once\n", strong(key)),
        (None, Some(path)) => format!("  API key    the first one is in {path}\n"),
        (None, None) => "  API key    yours; make another with `belfry keys create`\n".into(),
    };
    let bearer = match (first_key, left) {
        (Some(key), _) => key.to_owned(),
        (None, Some(path)) => format!("$(cat {path})"),
        (None, None) => "$BELFRY_API_KEY".to_owned(),
    };
    format!(
        "{}\n\n  Dashboard  {url}/admin\n  API        {url}/v1   (described at {url}/docs)\n{key_line}\n\
         Send something, as often as you like; it goes out once:\n\n{}\n\n",
        strong(concat!("Belfry ", env!("CARGO_PKG_VERSION"), " is up.")),
        curl(url, &bearer),
    )
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
        let first = banner(&PLAIN, url, Some("blf_live_x"), Some(".belfry/api-key"));
        assert!(first.contains("Bearer blf_live_x\"") && first.contains(".belfry/api-key"), "{first}");
        let later = banner(&PLAIN, url, None, Some(".belfry/api-key"));
        assert!(later.contains("Bearer $(cat .belfry/api-key)\""), "{later}");
        assert!(!later.contains("blf_"));
        assert!(banner(&PLAIN, url, None, None).contains("$BELFRY_API_KEY"));
    }
}
