//! Pushes over HTTP/2, delivered (claimed, rendered, sent, settled) beside the same sender in a bare loop that
//! makes each message from the same inputs: an instant sink, so many calls at once on both sides.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use belfry::channel::apns::config::ApnsConfig;
use belfry::channel::apns::{ApnsChannel, Mints};
use belfry::content::Content;
use belfry::machine::MachineClock;
use belfry::ports::channel::{Call, Channel};
use belfry::ports::clock::Clock;
use belfry_domain::{Order, Outcome};
use rcgen::KeyPair;

use crate::apns_sink::Sink;
use crate::delivered::{Always, Delivered, PROVIDER, loop_over, outgoing};
use crate::plan::Plan;
use crate::records::Shape;
use crate::rows::{Report, Row};

const SHAPE: Shape = Shape::push(PROVIDER);
const CONNECTIONS: u16 = 2;
/// Calls at once; a quarter of the provider's are kept for urgent lanes.
const CALLS: u16 = 96;

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    let sink = Sink::start().await?;
    let messages = plan.sized(40_000);
    let name = |what: &str| format!("{what}, {}", plan.store.name());
    let row = |what: &str, floor, goal| Row::higher(&name(what), "messages/s", floor, goal).beside("bare loop");
    let mut rows = [
        row("delivered to APNs (HTTP/2), at least once, instant sink", 0.70, 0.85),
        row("delivered to APNs (HTTP/2), at most once, instant sink", 0.45, 0.55),
    ];
    for _ in 0..plan.rounds {
        let bare = bare(&sink, messages).await?;
        for (row, order) in rows.iter_mut().zip([Order::SendThenRecord, Order::RecordThenSend]) {
            let channel = Arc::new(channel(&sink)?);
            let concurrency = CALLS / 3 * 4;
            let ours =
                Delivered { kind: plan.store, shape: SHAPE, order, messages, channel, concurrency, caps: Vec::new() };
            row.rounds.push((ours.run().await?, bare));
        }
    }
    report.add(rows);
    sink.stop().await
}

fn channel(sink: &Sink) -> Result<ApnsChannel> {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?.serialize_pem();
    let config: ApnsConfig = serde_json::from_value(serde_json::json!({
        "topic": "com.example.shop",
        "url": sink.url(),
        "team_id": "TEAM000001",
        "key_id": "KEY0000001",
        "key": key,
        "ca": sink.ca()?,
        "connections": CONNECTIONS,
        "streams": 1_000,
    }))?;
    ApnsChannel::new(&config, &Mints::default(), Arc::new(MachineClock)).map_err(|error| anyhow::anyhow!("{error}"))
}

/// Makes each message from the same inputs and sends it: no claim, no record.
async fn bare(sink: &Sink, messages: usize) -> Result<f64> {
    let channel = Arc::new(channel(sink)?);
    let content = Arc::new(Content::built_in().ok().context("the templates")?);
    let all: Vec<_> = (0..messages).map(|at| SHAPE.planned(at, MachineClock.now())).collect();
    loop_over(all, usize::from(CALLS), move |new| {
        let (channel, content) = (channel.clone(), content.clone());
        async move {
            let outcome = channel.send(&outgoing(&content, &new)?, &Call::new(Arc::new(Always))).await;
            ensure!(matches!(outcome, Outcome::Accepted { .. }), "{outcome:?}");
            Ok(())
        }
    })
    .await
}
