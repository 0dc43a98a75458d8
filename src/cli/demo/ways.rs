//! The ten ways in which a request comes again.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use futures::future::try_join_all;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::super::client::{Answer, Client};
use super::super::exit::{Exit, Failure};
use super::super::send::fresh_key;
use super::WentOut;
use super::intent::Intent;

/// How long a message may take to go out before the demonstration gives up.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Bench {
    pub client: Client,
    pub address: SocketAddr,
    pub key: String,
}

/// Repeats sent, and those answered with the first answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    pub sent: usize,
    pub caught: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Again,
    FiveAtOnce,
    ReplyLost,
    InBatch,
    BatchRetried,
    QuotedKey,
    OtherOrder,
    FreshKey,
    FreshKeysInBatch,
    AfterItWentOut,
}

impl Way {
    pub const ALL: [Self; 10] = [
        Self::Again,
        Self::FiveAtOnce,
        Self::ReplyLost,
        Self::InBatch,
        Self::BatchRetried,
        Self::QuotedKey,
        Self::OtherOrder,
        Self::FreshKey,
        Self::FreshKeysInBatch,
        Self::AfterItWentOut,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Again => "the same request again",
            Self::FiveAtOnce => "five at the same time",
            Self::ReplyLost => "again after a lost reply",
            Self::InBatch => "in a batch",
            Self::BatchRetried => "the same batch retried",
            Self::QuotedKey => "with the key in quotes",
            Self::OtherOrder => "with its JSON in another order",
            Self::FreshKey => "under a fresh key, same `unique`",
            Self::FreshKeysInBatch => "fresh keys in a batch, same `unique`",
            Self::AfterItWentOut => "again after it went out",
        }
    }

    /// Repeats `intent` so, through the API.
    pub async fn repeat(self, bench: &Bench, intent: &Intent) -> anyhow::Result<Tally> {
        match self {
            Self::Again => bench.single(intent, &intent.key, intent.body()).await,
            Self::FiveAtOnce => {
                let five = (0..5).map(|_| bench.single(intent, &intent.key, intent.body()));
                Ok(sum(try_join_all(five).await?))
            }
            Self::ReplyLost => {
                bench.lose_the_reply(intent).await?;
                bench.single(intent, &intent.key, intent.body()).await
            }
            Self::InBatch => bench.batch(intent, &[&intent.key]).await,
            Self::BatchRetried => {
                let first = bench.batch(intent, &[&intent.key, &intent.key]).await?;
                Ok(sum([first, bench.batch(intent, &[&intent.key, &intent.key]).await?]))
            }
            Self::QuotedKey => bench.single(intent, &format!("\"{}\"", intent.key), intent.body()).await,
            Self::OtherOrder => bench.single(intent, &intent.key, intent.body_in_another_order()).await,
            Self::FreshKey => bench.single(intent, &fresh_key(), intent.body()).await,
            Self::FreshKeysInBatch => {
                let keys = [fresh_key(), fresh_key(), fresh_key()];
                bench.batch(intent, &keys.each_ref().map(String::as_str)).await
            }
            Self::AfterItWentOut => {
                bench.settled(intent).await?;
                bench.single(intent, &intent.key, intent.body()).await
            }
        }
    }
}

fn sum(tallies: impl IntoIterator<Item = Tally>) -> Tally {
    tallies.into_iter().fold(Tally { sent: 0, caught: 0 }, |all, one| Tally {
        sent: all.sent + one.sent,
        caught: all.caught + one.caught,
    })
}

impl Bench {
    /// The first copy; its id.
    pub async fn first(&self, intent: &Intent) -> Result<String, Failure> {
        let answer = self.client.post("/v1/notifications", Some(&intent.key), intent.body()).await?.ok()?;
        match (answer.replayed, answer.body["id"].as_str()) {
            (false, Some(id)) => Ok(id.to_owned()),
            _ => Err(Failure::new(Exit::Failed, "the first copy was not taken for new")),
        }
    }

    async fn single(&self, intent: &Intent, key: &str, body: String) -> anyhow::Result<Tally> {
        let answer = self.client.post("/v1/notifications", Some(key), body).await?.ok()?;
        let caught = answer.replayed && answer.body["id"] == *intent.id;
        Ok(Tally { sent: 1, caught: usize::from(caught) })
    }

    async fn batch(&self, intent: &Intent, keys: &[&str]) -> anyhow::Result<Tally> {
        let answer = self.client.post("/v1/notifications/batch", None, intent.batch(keys)).await?.ok()?;
        let items = answer.body["data"].as_array().context("the batch's answer has no data")?;
        let caught = items.iter().filter(|one| one["replayed"] == true && one["notification"]["id"] == *intent.id);
        Ok(Tally { sent: keys.len(), caught: caught.count() })
    }

    /// Sends the request and hangs up with the answer unread, like a client that timed out. Not before
    /// there is one: a request whose client is gone may be given up unread, and then nothing was lost.
    async fn lose_the_reply(&self, intent: &Intent) -> anyhow::Result<()> {
        let body = intent.body();
        let head = format!(
            "POST /v1/notifications HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nIdempotency-Key: {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.address,
            self.key,
            intent.key,
            body.len()
        );
        let mut stream = TcpStream::connect(self.address).await?;
        stream.write_all(format!("{head}{body}").as_bytes()).await?;
        stream.flush().await?;
        let there = tokio::time::timeout(PATIENCE, stream.peek(&mut [0])).await.context("no answer came to lose")??;
        anyhow::ensure!(there > 0, "the server hung up before it answered");
        Ok(())
    }

    /// Waits until nothing more goes out for the intent by itself: accepted or an end, a receipt may
    /// still come.
    async fn settled(&self, intent: &Intent) -> anyhow::Result<Answer> {
        let look = async {
            let mut after = Duration::from_millis(5);
            loop {
                let answer = self.client.get(&format!("/v1/notifications/{}", intent.id)).await?.ok()?;
                let state = answer.body["state"].as_str().unwrap_or_default();
                if !["scheduled", "queued", "deferred", "sending"].contains(&state) {
                    return Ok::<_, Failure>(answer);
                }
                tokio::time::sleep(after).await;
                after = (after * 2).min(Duration::from_millis(200));
            }
        };
        let waited = tokio::time::timeout(PATIENCE, look).await;
        Ok(waited.with_context(|| format!("{} did not go out within {PATIENCE:?}", intent.template))??)
    }

    /// What the outbox holds for the intent's address, which nothing else is sent to.
    pub async fn went_out(&self, intent: &Intent) -> anyhow::Result<WentOut> {
        let record = self.settled(intent).await?;
        let to = intent.to.replace('+', "%2B");
        let answer = self.client.get(&format!("/v1/outbox?to={to}")).await?.ok()?;
        let messages = answer.body["messages"].as_array().context("the outbox's answer has no messages")?.len();
        Ok(WentOut {
            messages,
            repeats: record.body["repeats"].as_u64().unwrap_or_default(),
            state: record.body["state"].as_str().unwrap_or("?").to_owned(),
        })
    }
}
