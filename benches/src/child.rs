//! Servers as children: the real Belfry, or one that it is measured against. Killed when dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// The first admin key of every server that is measured.
pub(crate) const KEY: &str = "bench-0123456789abcdef0123456789abcdef";

pub(crate) struct Server {
    child: Child,
    /// `127.0.0.1:port`.
    pub address: String,
}

/// The folder of the builds: this program's own stands in it.
pub(crate) fn target() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.parent().and_then(Path::parent).map_or_else(|| PathBuf::from("target"), Path::to_path_buf)
}

impl Server {
    /// An axum handler that parses the body and does nothing else.
    pub(crate) async fn parse_only() -> Result<Self> {
        Self::start(Command::new(std::env::current_exe()?).arg("parse-only")).await
    }

    /// The real server with its store in `folder`.
    pub(crate) async fn belfry(folder: &Path, config: &str) -> Result<Self> {
        let path = folder.join("belfry.toml");
        fs::write(&path, config)?;
        let own = std::env::current_exe()?;
        let program = own.with_file_name("belfry");
        let mut command = Command::new(program);
        command.current_dir(folder).env("BELFRY_BOOTSTRAP_KEY", KEY);
        command.arg("serve").arg("--port").arg("0").arg("--config").arg(path);
        Self::start(&mut command).await
    }

    async fn start(command: &mut Command) -> Result<Self> {
        let log = fs::File::create(target().join("bench.log")).or_else(|_| fs::File::create("/dev/null"))?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{command:?}"))?;
        let output = child.stdout.take().context("its output")?;
        let mut lines = BufReader::new(output).lines();
        let address = tokio::time::timeout(Duration::from_secs(30), async {
            while let Some(line) = lines.next_line().await? {
                if let Some(address) = address_in(&line) {
                    return Ok(address);
                }
            }
            bail!("it ended without naming its address")
        })
        .await??;
        // Read on, so that it never waits on a full pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self { child, address })
    }

    /// Resident memory in MiB.
    pub(crate) fn resident(&self) -> Result<f64> {
        let id = self.child.id().context("it has ended")?;
        let status = fs::read_to_string(format!("/proc/{id}/status"))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("VmRSS")?;
        let kib: f64 = line.split_whitespace().nth(1).context("VmRSS")?.parse()?;
        Ok(kib / 1024.0)
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        self.child.kill().await?;
        Ok(())
    }
}

/// `127.0.0.1:port` in a line of output.
fn address_in(line: &str) -> Option<String> {
    let from = line.find("127.0.0.1:")?;
    let rest = &line[from..];
    let end = rest.find(|letter: char| !matches!(letter, '0'..='9' | '.' | ':')).unwrap_or(rest.len());
    Some(rest[..end].to_owned())
}
