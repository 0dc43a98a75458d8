//! Servers as children: the real Belfry, or what it is measured against. Each is the first of a
//! group of its own, so that whatever it starts ends with it. Killed when dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// The first admin key of every server that is measured.
pub(crate) const KEY: &str = "bench-0123456789abcdef0123456789abcdef";
/// For starting, and for ending by itself.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Server {
    child: Child,
    group: Pid,
    /// Nothing of it is left to be killed.
    gone: bool,
    /// `127.0.0.1:port`.
    pub address: String,
}

/// The folder of the builds: this program's own stands in it.
pub(crate) fn target() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.parent().and_then(Path::parent).map_or_else(|| PathBuf::from("target"), Path::to_path_buf)
}

/// What servers say besides their address.
fn log(name: &str) -> Result<fs::File> {
    let folder = target().join("bench");
    fs::create_dir_all(&folder)?;
    Ok(fs::File::create(folder.join(format!("{name}.log")))?)
}

impl Server {
    /// An axum handler that parses the body and does nothing else.
    /// `keeping`: the Redis in which it sets one key for each item.
    pub(crate) async fn parse_only(keeping: Option<&str>) -> Result<Self> {
        Self::start("parse-only", Command::new(std::env::current_exe()?).arg("parse-only").args(keeping)).await
    }

    /// The real server with `config` in `folder`.
    pub(crate) async fn belfry(folder: &Path, config: &str) -> Result<Self> {
        let path = folder.join("belfry.toml");
        fs::write(&path, config)?;
        let own = std::env::current_exe()?;
        let program = own.with_file_name("belfry");
        let mut command = Command::new(program);
        command.current_dir(folder).env("BELFRY_BOOTSTRAP_KEY", KEY);
        command.arg("serve").arg("--port").arg("0").arg("--config").arg(path);
        Self::start("belfry", &mut command).await
    }

    /// Starts it and waits for a line that names its address.
    pub(crate) async fn start(name: &str, command: &mut Command) -> Result<Self> {
        let mut own = Self::spawn(name, command.stdin(Stdio::null()).stdout(Stdio::piped()))?;
        let output = own.child.stdout.take().context("its output")?;
        let mut lines = BufReader::new(output).lines();
        own.address = tokio::time::timeout(PATIENCE, async {
            while let Some(line) = lines.next_line().await? {
                if let Some(address) = address_in(&line) {
                    return Ok(address);
                }
            }
            bail!("{name} ended without naming its address: see target/bench/{name}.log")
        })
        .await
        .with_context(|| format!("{name} names no address"))??;
        // Read on, so that it never waits on a full pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(own)
    }

    /// Starts it and waits until it listens at `address`.
    pub(crate) async fn start_at(name: &str, command: &mut Command, address: String) -> Result<Self> {
        let mut own = Self::spawn(name, command.stdin(Stdio::null()).stdout(Stdio::null()))?;
        own.listens(&address).await?;
        own.address = address;
        Ok(own)
    }

    /// Returns once something listens at `address`; fails where it ends before.
    pub(crate) async fn listens(&mut self, address: &str) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(address).await.is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended with {status} instead of listening: see target/bench/*.log");
            }
            if Instant::now() > until {
                bail!("nothing listens at {address}");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Starts it, and waits for nothing; what it reads and writes is the caller's to say.
    pub(crate) fn spawn(name: &str, command: &mut Command) -> Result<Self> {
        command.stderr(log(name)?).process_group(0);
        let child = command.spawn().with_context(|| format!("{command:?}"))?;
        let id = child.id().context("it has ended")?;
        let group = Pid::from_raw(i32::try_from(id)?).context("no pid")?;
        Ok(Self { child, group, gone: false, address: String::new() })
    }

    /// What it reads and what it says, once, where both were piped.
    pub(crate) fn pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        Some((self.child.stdin.take()?, self.child.stdout.take()?))
    }

    /// What it says, once, where that was piped.
    pub(crate) fn output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Resident memory in MiB.
    pub(crate) fn resident(&self) -> Result<f64> {
        let id = self.group.as_raw_nonzero();
        let status = fs::read_to_string(format!("/proc/{id}/status"))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("VmRSS")?;
        let kib: f64 = line.split_whitespace().nth(1).context("VmRSS")?.parse()?;
        Ok(kib / 1024.0)
    }

    /// Processor time, user and system, of it and all of its group, so far.
    pub(crate) fn busy(&self) -> Result<Duration> {
        let mut all = Duration::ZERO;
        for entry in fs::read_dir("/proc")? {
            let path = entry?.path();
            let numeric = path.file_name().and_then(|name| name.to_str()).is_some_and(|it| it.parse::<u32>().is_ok());
            // Whatever ends while we look is not one of those we measure.
            let Some(stat) = numeric.then(|| fs::read_to_string(path.join("stat")).ok()).flatten() else { continue };
            let (group, busy) = group_and_busy(&stat).unwrap_or_default();
            if group == self.group.as_raw_nonzero().get() {
                all += busy;
            }
        }
        Ok(all)
    }

    /// Asks it to end by itself, and waits until it has; after that its group is killed.
    pub(crate) async fn end(&mut self) -> Result<()> {
        kill_process(self.group, Signal::TERM)?;
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        self.kill_group();
        ended.context("it would not end")??;
        Ok(())
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        self.kill_group();
        self.child.wait().await?;
        Ok(())
    }

    fn kill_group(&mut self) {
        if !std::mem::replace(&mut self.gone, true) {
            // All of it may have ended by itself.
            kill_process_group(self.group, Signal::KILL).ok();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// Processor time of this program so far.
pub(crate) fn own_busy() -> Result<Duration> {
    let (_, busy) = group_and_busy(&fs::read_to_string("/proc/self/stat")?).context("/proc/self/stat")?;
    Ok(busy)
}

/// The group of a process, and its user and system time, from the text of its `stat`.
fn group_and_busy(stat: &str) -> Option<(i32, Duration)> {
    // The name in brackets may hold anything; after it: state, ppid, pgrp, …
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let group = fields.nth(2)?.parse().ok()?;
    let user: u64 = fields.nth(8)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let ticks = user + system;
    Some((group, Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second())))
}

/// `127.0.0.1:port` in a line of output.
fn address_in(line: &str) -> Option<String> {
    let from = line.find("127.0.0.1:")?;
    let rest = &line[from..];
    let end = rest.find(|letter: char| !matches!(letter, '0'..='9' | '.' | ':')).unwrap_or(rest.len());
    Some(rest[..end].to_owned())
}
