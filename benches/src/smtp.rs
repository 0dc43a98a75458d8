//! Mail: the sender beside a hand-pipelined loop, and delivered end to end (claimed, rendered, sent,
//! settled) beside the same sender in a bare loop. All on as many connections to the same sink.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use belfry::channel::smtp::SmtpChannel;
use belfry::channel::smtp::config::SmtpConfig;
use belfry::content::Content;
use belfry::machine::MachineClock;
use belfry::ports::channel::{Call, Channel};
use belfry::ports::clock::Clock;
use belfry::ports::message::Outgoing;
use belfry_domain::{Order, Outcome};
use tokio::task::JoinSet;

use crate::delivered::{Always, Delivered, PROVIDER, loop_over, outgoing, rate};
use crate::plan::Plan;
use crate::records::Shape;
use crate::rows::{Report, Row};
use crate::smtp_sink::Sink;
use crate::stores::StoreKind;

pub(crate) const CONNECTIONS: usize = 8;
const SHAPE: Shape = Shape::mail(PROVIDER);

pub(crate) async fn measure(plan: &Plan, kind: StoreKind, report: &mut Report) -> Result<()> {
    let sink = Sink::start().await?;
    let messages = plan.sized(12_000);
    let name = |what: &str| format!("{what}, {}", kind.name());
    let mut sender = Row::higher("SMTP sender", "mails/s", 0.4, 0.5).beside("hand-pipelined loop");
    let mut delivered =
        Row::higher(&name("delivered by SMTP, at least once"), "mails/s", 0.75, 0.90).beside("bare loop");
    let mut once = Row::higher(&name("delivered by SMTP, at most once"), "mails/s", 0.45, 0.55).beside("bare loop");
    for _ in 0..plan.rounds {
        let pipelined = pipelined(&sink, messages).await?;
        sender.rounds.push((sent(&sink, messages).await?, pipelined));
        let bare = bare(&sink, messages).await?;
        for (row, order) in [(&mut delivered, Order::SendThenRecord), (&mut once, Order::RecordThenSend)] {
            let channel = Arc::new(channel(sink.address())?);
            let concurrency = u16::try_from(CONNECTIONS)?;
            let ours = Delivered { kind, shape: SHAPE, order, messages, channel, concurrency, caps: Vec::new() };
            row.rounds.push((ours.run().await?, bare));
        }
    }
    report.add([sender, delivered, once]);
    Ok(())
}

/// To the mail server at `address`.
pub(crate) fn channel(address: &str) -> Result<SmtpChannel> {
    let config: SmtpConfig = serde_json::from_value(serde_json::json!({
        "url": format!("smtp://{address}"),
        "from": "Shop <shop@example.com>",
        "helo": "bench.example",
        "connections": CONNECTIONS,
        "reuse": { "messages": 1_000_000 },
    }))?;
    Ok(SmtpChannel::new(&config)?)
}

async fn pipelined(sink: &Sink, messages: usize) -> Result<f64> {
    let content = Content::built_in().ok().context("the templates")?;
    let out = outgoing(&content, &SHAPE.planned(0, MachineClock.now()))?;
    let mail = channel(sink.address())?.build(&out).context("the mail")?;
    let body = String::from_utf8(mail.bytes)?;
    let started = Instant::now();
    let mut connections = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (address, body) = (sink.address().to_owned(), body.clone());
        connections.spawn(async move { Sink::pipelined(&address, messages / CONNECTIONS, &body).await });
    }
    while let Some(done) = connections.join_next().await {
        done??;
    }
    Ok(rate(messages, started))
}

async fn send(channel: &SmtpChannel, out: &Outgoing) -> Result<()> {
    let outcome = channel.send(out, &Call::new(Arc::new(Always))).await;
    ensure!(matches!(outcome, Outcome::Accepted { .. }), "{outcome:?}");
    Ok(())
}

/// Nothing but the sender: messages made beforehand.
async fn sent(sink: &Sink, messages: usize) -> Result<f64> {
    let content = Content::built_in().ok().context("the templates")?;
    let made = |at| outgoing(&content, &SHAPE.planned(at, MachineClock.now()));
    let all: Vec<Outgoing> = (0..messages).map(made).collect::<Result<_>>()?;
    let channel = Arc::new(channel(sink.address())?);
    loop_over(all, CONNECTIONS, move |out| {
        let channel = channel.clone();
        async move { send(&channel, &out).await }
    })
    .await
}

/// Makes each message from the same inputs and sends it: no claim, no record.
async fn bare(sink: &Sink, messages: usize) -> Result<f64> {
    let channel = Arc::new(channel(sink.address())?);
    let content = Arc::new(Content::built_in().ok().context("the templates")?);
    let all: Vec<_> = (0..messages).map(|at| SHAPE.planned(at, MachineClock.now())).collect();
    loop_over(all, CONNECTIONS, move |new| {
        let (channel, content) = (channel.clone(), content.clone());
        async move { send(&channel, &outgoing(&content, &new)?).await }
    })
    .await
}
