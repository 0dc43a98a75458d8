//! The real process, on a store and a configuration that outlive it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tempfile::TempDir;

use super::http::Client;
use crate::peers::signal;
use crate::peers::until::until;

pub(crate) const KEY: &str = "kill-0123456789abcdef0123456789abcdef";
const START: Duration = Duration::from_secs(20);

/// Where a server lives: its folder stays when it dies.
pub(crate) struct Site {
    folder: TempDir,
}

impl Site {
    /// With mail going to `relay`, leases of a second, and short waits, on a store in its folder.
    pub(crate) fn new(relay: SocketAddr, more: &str) -> Self {
        Self::over("[store.sqlite]\npath = \"store/belfry.db\"\n", relay, more)
    }

    /// The same on the store that `store` describes.
    pub(crate) fn over(store: &str, relay: SocketAddr, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let class = |name: &str, order: &str| {
            format!(
                "[classes.{name}]\norder = \"{order}\"\nlease = \"1s\"\nbudget_exempt = true\n\
                 retry = {{ base = \"20ms\", cap = \"200ms\", max_attempts = 50 }}\n"
            )
        };
        let config = format!(
            "[http]\nlisten = \"127.0.0.1:0\"\n{store}\
             [channels.email]\nproviders = [\"main\"]\n\
             [providers.main]\nkind = \"smtp\"\nurl = \"smtp://{relay}\"\nfrom = \"Shop <no-reply@example.com>\"\n\
             {}{}{more}",
            class("receipt", "send_then_record"),
            class("marketing", "record_then_send"),
        );
        fs::write(folder.path().join("belfry.toml"), config).unwrap();
        Self { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts it and returns once it says where it listens.
    pub(crate) fn start(&self) -> Server {
        self.start_with(&[])
    }

    /// The same with more arguments.
    pub(crate) fn start_with(&self, more: &[&str]) -> Server {
        let log = fs::File::options().create(true).append(true).open(self.folder().join("log")).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_belfry"))
            .args(["serve", "--port", "0", "--config", "belfry.toml"])
            .args(more)
            .current_dir(self.folder())
            .env("BELFRY_BOOTSTRAP_KEY", KEY)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (found, address) = mpsc::sync_channel(1);
        // Reads to the end, so that the server never waits on a full pipe.
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some(address) = address_in(&line) {
                    found.try_send(address).ok();
                }
            }
        });
        let Ok(address) = address.recv_timeout(START) else {
            child.kill().unwrap();
            panic!("it names no address; it said: {}", self.log());
        };
        Server { child, address }
    }

    /// What all its servers wrote so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder().join("log")).unwrap_or_default()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // A failed test says what the server saw; the end of it will do.
        if thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            println!("the log's end:\n{}", lines[lines.len().saturating_sub(60)..].join("\n"));
        }
    }
}

/// `127.0.0.1:port` in a line of output.
fn address_in(line: &str) -> Option<SocketAddr> {
    let rest = &line[line.find("127.0.0.1:")?..];
    let end = rest.find(|letter: char| !matches!(letter, '0'..='9' | '.' | ':')).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

pub(crate) struct Server {
    child: Child,
    pub address: SocketAddr,
}

impl Server {
    pub(crate) fn client(&self) -> Client {
        Client::new(self.address)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        signal::send(Pid::from_child(&self.child), signal);
    }

    /// `kill -9`, and its end.
    pub(crate) fn kill(mut self) {
        self.signal(Signal::KILL);
        let status = self.child.wait().unwrap();
        assert_eq!(status.signal(), Some(9));
    }

    /// Its end, which must come within `within`.
    #[track_caller]
    pub(crate) fn ended(&mut self, within: Duration) -> ExitStatus {
        until("the process ends", within, || self.child.try_wait().unwrap())
    }

    pub(crate) fn running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A failed test leaves no process behind; one that has ended needs no killing.
        if self.running() {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}
