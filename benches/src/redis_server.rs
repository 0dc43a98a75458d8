//! A Redis server of our own: a free port on loopback, its own folder, and what it tells of itself.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use redis::aio::MultiplexedConnection;
use tempfile::TempDir;

use crate::child::Server;

/// What it writes to its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// Nothing, unless it is told to.
    Nothing,
    /// Every write, synced each second: what one runs a queue on.
    EverySecond,
}

impl Persistence {
    pub(crate) const fn told(self) -> &'static str {
        match self {
            Self::Nothing => "no AOF, no RDB",
            Self::EverySecond => "AOF, fsync every second",
        }
    }
}

pub(crate) struct RedisServer {
    server: Server,
    folder: TempDir,
    persistence: Persistence,
    port: u16,
}

/// What `INFO` says of memory and work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    /// Bytes of keys and values and their tables: without clients, buffers and scripts.
    pub kept: f64,
    /// Of the main thread, user and system.
    pub busy: Duration,
}

impl RedisServer {
    pub(crate) async fn start(persistence: Persistence) -> Result<Self> {
        let folder = tempfile::tempdir_in(crate::child::target())?;
        // A port that was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let server = Self::run(&folder, persistence, port).await?;
        let own = Self { server, folder, persistence, port };
        own.answers(Duration::from_secs(10)).await?;
        Ok(own)
    }

    async fn run(folder: &TempDir, persistence: Persistence, port: u16) -> Result<Server> {
        let mut command = tokio::process::Command::new("redis-server");
        let aof = if persistence == Persistence::EverySecond { "yes" } else { "no" };
        let port_text = port.to_string();
        command.current_dir(folder.path()).args(["--bind", "127.0.0.1", "--port", &port_text]);
        command.args(["--save", "", "--appendonly", aof, "--appendfsync", "everysec"]);
        command.args(["--maxmemory-policy", "noeviction", "--logfile", "redis.log"]);
        // A rewrite of the log would fall into the rounds of whoever comes when it has grown.
        command.args(["--auto-aof-rewrite-percentage", "0"]);
        Server::start_at("redis", &mut command, format!("127.0.0.1:{port}")).await
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// Processor time of all its threads and children so far.
    pub(crate) fn busy(&self) -> Result<Duration> {
        self.server.busy()
    }

    pub(crate) async fn connect(&self) -> Result<MultiplexedConnection> {
        let client = redis::Client::open(self.url())?;
        // A SAVE or a FLUSHALL of millions of keys takes its time.
        let patient = redis::AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(600)));
        Ok(client.get_multiplexed_async_connection_with_config(&patient).await?)
    }

    async fn answers(&self, within: Duration) -> Result<()> {
        let until = Instant::now() + within;
        while Instant::now() < until {
            if let Ok(mut connection) = self.connect().await
                && redis::cmd("PING").query_async::<String>(&mut connection).await.is_ok()
            {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("redis-server does not answer within {within:?}")
    }

    pub(crate) async fn empty(&self) -> Result<()> {
        let mut connection = self.connect().await?;
        let told: String = redis::cmd("FLUSHALL").arg("SYNC").query_async(&mut connection).await?;
        ensure!(told == "OK", "{told}");
        Ok(())
    }

    pub(crate) async fn told(&self) -> Result<Told> {
        let mut connection = self.connect().await?;
        let info: String = redis::cmd("INFO").arg("all").query_async(&mut connection).await?;
        let number = |name: &str| -> Result<f64> {
            let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.with_context(|| format!("INFO without {name}"))?.trim().parse().with_context(|| name.to_owned())
        };
        let mut kept = number("used_memory")?;
        for not_kept in [
            "used_memory_startup",
            "mem_clients_normal",
            "mem_clients_slaves",
            "mem_aof_buffer",
            "mem_replication_backlog",
            "used_memory_scripts",
        ] {
            kept -= number(not_kept)?;
        }
        let busy = number("used_cpu_user_main_thread")? + number("used_cpu_sys_main_thread")?;
        Ok(Told { kept, busy: Duration::from_secs_f64(busy) })
    }

    /// Writes everything down, starts anew, and says how long it took to read it back (its own word).
    pub(crate) async fn reload(&mut self) -> Result<Duration> {
        let mut connection = self.connect().await?;
        let told: String = redis::cmd("SAVE").query_async(&mut connection).await?;
        ensure!(told == "OK", "{told}");
        drop(connection);
        self.server.end().await?;
        let path = self.folder.path().join("redis.log");
        let before = std::fs::read_to_string(&path)?.len();
        self.server = Self::run(&self.folder, self.persistence, self.port).await?;
        self.answers(Duration::from_secs(300)).await?;
        let log = std::fs::read_to_string(&path)?;
        let line = log[before..].lines().find(|line| line.contains("DB loaded from disk: "));
        let seconds = line.and_then(|line| line.split("disk: ").nth(1)?.split(' ').next()).context("no word of it")?;
        Ok(Duration::from_secs_f64(seconds.parse()?))
    }

    pub(crate) async fn stop(self) -> Result<()> {
        self.server.stop().await
    }
}
