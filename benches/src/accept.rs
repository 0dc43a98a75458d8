//! Accept over HTTP, durable in the store, beside a handler that only parses the same body.

use std::sync::Arc;

use anyhow::Result;

use crate::child::Server;
use crate::http_load::{Load, Measured, post};
use crate::plan::Plan;
use crate::records::mail_request;
use crate::redis_server::{Persistence, RedisServer};
use crate::rows::{Report, Row};
use crate::stores::{Place, StoreKind};

const PER_BATCH: usize = 100;
/// Nothing but the outbox, so that accept is what is measured; what is accepted is due much later.
pub(crate) const LISTEN: &str = "[http]\nlisten = \"127.0.0.1:0\"\n";

pub(crate) async fn measure(plan: &Plan, kind: StoreKind, report: &mut Report) -> Result<()> {
    let place = Place::new(kind, Persistence::EverySecond).await?;
    let other = Server::parse_only(None).await?;
    let least = Least::beside(kind).await?;
    let ours = Server::belfry(place.folder.path(), &format!("{LISTEN}{}", place.config()?)).await?;
    let name = |what: &str| format!("{what}, {}", kind.name());
    let mut single = Row::higher(&name("accept, one per request"), "accepts/s", 0.30, 0.45).beside("parse only");
    let mut p99 = Row::lower(&name("accept, one per request: p99"), "ms", 4.0, 2.0).beside("parse only");
    let mut batched = Row::higher(&name("accept, 100 per request"), "accepts/s", 0.60, 0.90).beside("parse only");
    let (singles, batches) = (plan.sized(20_000), plan.sized(400));
    let mut least_single = Row::told("parse and set one plain key, one per request", "accepts/s").beside("parse only");
    let mut least_batched = Row::told("parse and set plain keys, 100 per request", "accepts/s").beside("parse only");
    for round in 0..plan.rounds {
        let theirs = singly(&other, round, singles).await?;
        if let Some(least) = &least {
            least_single.rounds.push((singly(&least.server, round, singles).await?.rate, theirs.rate));
        }
        let mine = singly(&ours, round, singles).await?;
        single.rounds.push((mine.rate, theirs.rate));
        p99.rounds.push((mine.p99.as_secs_f64() * 1e3, theirs.p99.as_secs_f64() * 1e3));
        let theirs = in_batches(&other, round, batches).await?;
        if let Some(least) = &least {
            let kept = in_batches(&least.server, round, batches).await?;
            least_batched.rounds.push((kept.rate * 100.0, theirs.rate * 100.0));
        }
        let mine = in_batches(&ours, round, batches).await?;
        batched.rounds.push((mine.rate * 100.0, theirs.rate * 100.0));
    }
    report.add([single, p99, batched]);
    if let Some(least) = least {
        report.add([least_single, least_batched]);
        least.server.stop().await?;
        least.redis.stop().await?;
    }
    ours.stop().await?;
    other.stop().await?;
    place.stop().await
}

/// The least that could be called keeping something in Redis, where that is the store.
struct Least {
    redis: RedisServer,
    server: Server,
}

impl Least {
    async fn beside(kind: StoreKind) -> Result<Option<Self>> {
        if kind != StoreKind::Redis {
            return Ok(None);
        }
        let redis = RedisServer::start(Persistence::EverySecond).await?;
        let server = Server::parse_only(Some(&redis.url())).await?;
        Ok(Some(Self { redis, server }))
    }
}

async fn singly(server: &Server, round: usize, requests: usize) -> Result<Measured> {
    let make = move |number| {
        post("/v1/notifications", &format!("r{round}/{number}"), &mail_request(number, Some(in_a_month())))
    };
    Load { address: server.address.clone(), requests, make: Arc::new(make), status: "202" }.run().await
}

async fn in_batches(server: &Server, round: usize, requests: usize) -> Result<Measured> {
    let make = move |number: usize| {
        let items: Vec<String> = (0..PER_BATCH)
            .map(|at| {
                let number = number * PER_BATCH + at;
                let rest = mail_request(number, Some(in_a_month()));
                format!("{{\"key\":\"b{round}/{number}\",{}", &rest[1..])
            })
            .collect();
        let body = format!("{{\"items\":[{}]}}", items.join(","));
        post("/v1/notifications/batch", &format!("batch{round}/{number}"), &body)
    };
    Load { address: server.address.clone(), requests, make: Arc::new(make), status: "200" }.run().await
}

/// A month ahead, to the day.
fn in_a_month() -> &'static str {
    static DUE: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    DUE.get_or_init(|| crate::rows::day(30))
}
