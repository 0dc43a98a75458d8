//! What accept over HTTP is measured against: an axum handler that parses the same body, answers
//! 202 with as much, and keeps nothing; or the least that could be called keeping it, which no accept that
//! keeps anything in Redis can beat: one plain key for each item, all of a request in one command.

use anyhow::Result;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Request {
    class: String,
    to: To,
    content: Content,
    reference: String,
    send_at: String,
}

#[derive(Deserialize)]
struct To {
    email: String,
}

#[derive(Deserialize)]
struct Content {
    subject: String,
    text: String,
}

#[derive(Deserialize)]
struct Item {
    key: String,
    #[serde(flatten)]
    request: Request,
}

#[derive(Deserialize)]
struct Batch {
    items: Vec<Box<RawValue>>,
}

#[derive(Serialize)]
struct Answer {
    id: String,
    class: String,
    state: &'static str,
    bytes: usize,
}

fn answer(request: Request) -> Answer {
    let bytes = request.to.email.len()
        + request.content.subject.len()
        + request.content.text.len()
        + request.reference.len()
        + request.send_at.len();
    Answer { id: request.reference, class: request.class, state: "scheduled", bytes }
}

/// Where items are kept, if they are.
type Kept = Option<MultiplexedConnection>;

async fn keep(kept: Kept, items: Vec<(&str, &str)>) -> Result<(), StatusCode> {
    let Some(mut connection) = kept else { return Ok(()) };
    let set: redis::RedisResult<()> = redis::cmd("MSET").arg(&items).query_async(&mut connection).await;
    set.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)
}

async fn one(State(kept): State<Kept>, body: Bytes) -> Result<(StatusCode, Json<Answer>), StatusCode> {
    let text = std::str::from_utf8(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let request: Request = serde_json::from_str(text).map_err(|_| StatusCode::BAD_REQUEST)?;
    keep(kept, vec![(&request.reference, text)]).await?;
    Ok((StatusCode::ACCEPTED, Json(answer(request))))
}

async fn batch(State(kept): State<Kept>, Json(batch): Json<Batch>) -> Result<Json<Vec<Answer>>, StatusCode> {
    let parsed: Result<Vec<Item>, _> = batch.items.iter().map(|item| serde_json::from_str(item.get())).collect();
    let items = parsed.map_err(|_| StatusCode::BAD_REQUEST)?;
    keep(kept, items.iter().zip(&batch.items).map(|(item, text)| (item.key.as_str(), text.get())).collect()).await?;
    let answers = items.into_iter().map(|item| Answer { id: item.key, ..answer(item.request) });
    Ok(Json(answers.collect()))
}

pub(crate) fn serve(keeping: Option<String>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let kept = match keeping {
            Some(url) => Some(redis::Client::open(url)?.get_multiplexed_async_connection().await?),
            None => None,
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        let router = Router::new()
            .route("/v1/notifications", post(one))
            .route("/v1/notifications/batch", post(batch))
            .with_state(kept);
        Ok(axum::serve(listener, router).await?)
    })
}
