//! Webhook-like messages, delivered (claimed, rendered, sent, settled) beside the same sender in a
//! bare loop: instant sink and one that takes 20 ms, so many calls at once on both sides.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use belfry_domain::Order;
use belfry_domain::caps::{Cap, Per, Then};
use bytes::Bytes;

use crate::delivered::{Delivered, PROVIDER, loop_over};
use crate::plan::Plan;
use crate::records::{Shape, webhook_body};
use crate::redis_server::{Persistence, RedisServer};
use crate::rows::{Report, Row};
use crate::stores::StoreKind;
use crate::webhook_sender::{Sender, WebhookLike};
use crate::webhook_sink::{NOW, SLOW, Sink};

const SHAPE: Shape = Shape::webhook(PROVIDER);
/// Calls at once to the instant sink.
const FEW: u16 = 48;
/// Calls at once to the slow sink.
const MANY: u16 = 96;

/// A lane below the urgent ones has three quarters of its provider's concurrency.
const fn concurrency(calls: u16) -> u16 {
    calls / 3 * 4
}

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    let sink = Sink::start().await?;
    let name = |what: &str| format!("{what}, {}", plan.store.name());
    let row = |what: &str, floor, goal| Row::higher(&name(what), "messages/s", floor, goal).beside("bare loop");
    let mut rows = [
        row("delivered to a webhook, at least once, instant sink", 0.55, 0.70),
        row("delivered to a webhook, at most once, instant sink", 0.45, 0.55),
        row("delivered to a webhook, at least once, 20 ms sink", 0.93, 0.97),
        row("delivered to a webhook, at most once, 20 ms sink", 0.93, 0.97),
    ];
    let cost = |sink: &str, floor, goal| {
        let what = name(&format!("a delivery with three caps on, at least once, {sink}"));
        Row::lower(&what, "us each", floor, goal).beside("without caps")
    };
    let mut capped = [cost("instant sink", 1.6, 1.4), cost("20 ms sink", 1.2, 1.1)];
    let mut least = Row::told("bare loop with a Redis key set before each call and after it", "messages/s");
    let orders = [Order::SendThenRecord, Order::RecordThenSend];
    for _ in 0..plan.rounds {
        for (at, (path, calls, messages)) in
            [(NOW, FEW, plan.sized(40_000)), (SLOW, MANY, plan.sized(20_000))].into_iter().enumerate()
        {
            let other = bare(&sink, path, calls, messages).await?;
            if path == NOW && plan.store == StoreKind::Redis {
                least.rounds.push((guarded(&sink, calls, messages).await?, other));
            }
            for (order, row) in orders.into_iter().zip(&mut rows[at * 2..]) {
                let channel = Arc::new(WebhookLike(Sender::new(sink.address(), path)));
                let concurrency = concurrency(calls);
                let caps = Vec::new();
                let ours = Delivered { kind: plan.store, shape: SHAPE, order, messages, channel, concurrency, caps };
                row.rounds.push((ours.run().await?, other));
            }
            let channel = Arc::new(WebhookLike(Sender::new(sink.address(), path)));
            let (order, concurrency, caps) = (Order::SendThenRecord, concurrency(calls), three_caps());
            let ours = Delivered { kind: plan.store, shape: SHAPE, order, messages, channel, concurrency, caps };
            let without = rows[at * 2].rounds.last().map_or(f64::NAN, |(without, _)| *without);
            capped[at].rounds.push((1e6 / ours.run().await?, 1e6 / without));
        }
    }
    report.add(rows);
    report.add(capped);
    if plan.store == StoreKind::Redis {
        report.add([least.beside("bare loop")]);
    }
    sink.stop().await
}

/// Each of every address, in three windows: three ledgers a message, and none full.
fn three_caps() -> Vec<Cap> {
    let cap = |(name, window): (&str, u64)| Cap {
        name: name.to_owned(),
        per: Per::Address,
        limit: 100,
        window: Duration::from_secs(window),
        then: Then::Defer,
        classes: Vec::new(),
        channels: Vec::new(),
        templates: Vec::new(),
    };
    [("an hour", 3_600), ("a day", 86_400), ("a week", 604_800)].map(cap).into()
}

/// So many tasks, each sending the next body, all made beforehand.
async fn bare(sink: &Sink, path: &'static str, calls: u16, messages: usize) -> Result<f64> {
    let sender = Arc::new(Sender::new(sink.address(), path));
    let bodies: Vec<Bytes> = (0..messages).map(|at| Bytes::from(webhook_body(SHAPE.class, at))).collect();
    loop_over(bodies, usize::from(calls), move |body| {
        let sender = sender.clone();
        async move { sender.post(body).await }
    })
    .await
}

/// The same with the least that could be called a guard, and that no crash would respect: a key in Redis
/// before each call, and the same key after it. What keeps anything in Redis cannot be cheaper.
async fn guarded(sink: &Sink, calls: u16, messages: usize) -> Result<f64> {
    let server = RedisServer::start(Persistence::EverySecond).await?;
    let connection = redis::Client::open(server.url())?.get_multiplexed_async_connection().await?;
    let sender = Arc::new(Sender::new(sink.address(), NOW));
    let bodies: Vec<(usize, Bytes)> =
        (0..messages).map(|at| (at, Bytes::from(webhook_body(SHAPE.class, at)))).collect();
    let rate = loop_over(bodies, usize::from(calls), move |(at, body)| {
        let (sender, mut connection) = (sender.clone(), connection.clone());
        async move {
            let key = format!("call:{at}");
            let first = redis::cmd("SET").arg(&key).arg("node").arg("NX").arg("PX").arg(30_000).to_owned();
            let () = first.query_async(&mut connection).await?;
            sender.post(body).await?;
            let done = redis::cmd("SET").arg(&key).arg("done").arg("PX").arg(86_400_000).to_owned();
            Ok(done.query_async(&mut connection).await?)
        }
    })
    .await?;
    server.stop().await?;
    Ok(rate)
}
