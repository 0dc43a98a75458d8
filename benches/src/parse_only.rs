//! What accept over HTTP is measured against: an axum handler that parses the same body, answers
//! 202 with as much, and keeps nothing.

use anyhow::Result;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
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

async fn one(Json(request): Json<Request>) -> (StatusCode, Json<Answer>) {
    (StatusCode::ACCEPTED, Json(answer(request)))
}

async fn batch(Json(batch): Json<Batch>) -> Result<Json<Vec<Answer>>, StatusCode> {
    let parsed: Result<Vec<Item>, _> = batch.items.iter().map(|item| serde_json::from_str(item.get())).collect();
    let items = parsed.map_err(|_| StatusCode::BAD_REQUEST)?;
    let answers = items.into_iter().map(|item| Answer { id: item.key, ..answer(item.request) });
    Ok(Json(answers.collect()))
}

pub(crate) fn serve() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        let router = Router::new().route("/v1/notifications", post(one)).route("/v1/notifications/batch", post(batch));
        Ok(axum::serve(listener, router).await?)
    })
}
