//! One contestant's run: how soon all of it has come to the sink, and what processor time it took.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::child::Server;
use crate::http_load::Load;
use crate::redis_server::RedisServer;
use crate::{smtp_sink, webhook_sink};

const PATIENCE: Duration = Duration::from_secs(180);
/// What is recorded after the last message has come counts as well.
const AFTERMATH: Duration = Duration::from_millis(500);

/// What all contestants share.
pub(super) struct Arena {
    pub redis: RedisServer,
    pub http: webhook_sink::Sink,
    pub smtp: smtp_sink::Sink,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    Http,
    Smtp,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Ran {
    /// Items a second.
    pub rate: f64,
    /// Microseconds of processor time for each item: all of its processes, and Redis's.
    pub busy: f64,
    /// Of these, Redis's.
    pub busy_redis: f64,
}

/// Where items go in.
pub(super) trait Door {
    /// Sends the numbered ones and returns once all of them were taken.
    async fn send(&mut self, from: usize, count: usize) -> Result<()>;

    /// All that runs for it, Redis and the sink excepted.
    fn servers(&self) -> Vec<&Server>;

    async fn stop(self) -> Result<()>;
}

impl Arena {
    async fn count(&self, goal: Goal) -> Result<usize> {
        match goal {
            Goal::Http => self.http.count().await,
            Goal::Smtp => Ok(self.smtp.count()),
        }
    }

    async fn has(&self, goal: Goal, count: usize) -> Result<Instant> {
        match goal {
            Goal::Http => self.http.has(count, PATIENCE).await,
            Goal::Smtp => self.smtp.has(count, PATIENCE).await,
        }
    }

    fn busy<D: Door>(&self, door: &D) -> Result<(Duration, Duration)> {
        let servers: Duration = door.servers().into_iter().map(Server::busy).sum::<Result<_>>()?;
        Ok((servers, self.redis.busy()?))
    }

    /// Warms up, then measures `items`.
    pub(super) async fn race<D: Door>(&self, mut door: D, goal: Goal, items: usize) -> Result<Ran> {
        let warm = items / 4;
        let before = self.count(goal).await?;
        door.send(0, warm).await?;
        self.has(goal, before + warm).await.context("warming up")?;
        tokio::time::sleep(AFTERMATH).await;
        let (servers, redis) = self.busy(&door)?;
        let started = Instant::now();
        door.send(warm, items).await?;
        let took = self.has(goal, before + warm + items).await?.duration_since(started);
        tokio::time::sleep(AFTERMATH).await;
        let (servers_after, redis_after) = self.busy(&door)?;
        door.stop().await?;
        self.redis.empty().await?;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let items = items as f64;
        let each = |time: Duration| time.as_secs_f64() * 1e6 / items;
        let busy_redis = each(redis_after.saturating_sub(redis));
        let busy = each(servers_after.saturating_sub(servers)) + busy_redis;
        Ok(Ran { rate: items / took.as_secs_f64(), busy, busy_redis })
    }

    pub(super) async fn stop(self) -> Result<()> {
        self.http.stop().await?;
        self.smtp.stop().await?;
        self.redis.stop().await
    }
}

/// A door that speaks HTTP, one request for each item.
pub(super) struct HttpDoor {
    /// The door first.
    pub servers: Vec<Server>,
    pub request: fn(usize) -> Vec<u8>,
}

impl Door for HttpDoor {
    async fn send(&mut self, from: usize, count: usize) -> Result<()> {
        let request = self.request;
        let make = std::sync::Arc::new(move |number| request(from + number));
        let address = self.servers[0].address.clone();
        Load { address, requests: count, make, status: "202" }.run().await?;
        Ok(())
    }

    fn servers(&self) -> Vec<&Server> {
        self.servers.iter().collect()
    }

    async fn stop(self) -> Result<()> {
        for server in self.servers {
            server.stop().await?;
        }
        Ok(())
    }
}
