//! Reading a body: JSON, but for what people post from pages; bounded after decompression, within a deadline.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use tokio::sync::OwnedSemaphorePermit;

use super::api::Api;
use super::problem::{Code, Problem};
use crate::intake::fields::FieldProblem;
use crate::intake::json::{JsonProblem, Node, parse};

/// A body, attachments left out of account.
pub const MOST_BODY: usize = 1024 * 1024;
/// A body with attachments: 10 MiB of them are 13.4 MiB of base64.
pub const MOST_WITH_ATTACHMENTS: usize = 15 * 1024 * 1024;
/// A batch's body.
pub const MOST_BATCH: usize = 8 * 1024 * 1024;
/// From this size on a body is read and hashed off the threads that serve everybody.
pub const LARGE: usize = 256 * 1024;

/// A body that has been read, and its share of the room for large ones.
pub struct ReadBody {
    pub bytes: Arc<[u8]>,
    /// Given back when the body goes.
    _room: Option<OwnedSemaphorePermit>,
}

impl Api {
    /// Reads a JSON body of at most `most` bytes.
    ///
    /// # Errors
    /// 400, 408, 413, 415 or 503.
    pub async fn json_body(&self, request: Request, most: usize) -> Result<ReadBody, Problem> {
        if !is_json(request.headers()) {
            return Err(Problem::new(
                Code::UnsupportedMediaType,
                "Send the body with `Content-Type: application/json`.",
            ));
        }
        self.body(request.into_body(), most).await
    }

    /// Likewise, where the body may be left out (an empty one is `None`, whatever its type).
    ///
    /// # Errors
    /// As above.
    pub async fn optional_json_body(&self, request: Request, most: usize) -> Result<Option<ReadBody>, Problem> {
        let json = is_json(request.headers());
        let read = self.body(request.into_body(), most).await?;
        if read.bytes.is_empty() {
            return Ok(None);
        }
        if !json {
            return Err(Problem::new(
                Code::UnsupportedMediaType,
                "Send the body with `Content-Type: application/json`.",
            ));
        }
        Ok(Some(read))
    }

    /// Reads a body of any kind, of at most `most` bytes.
    ///
    /// # Errors
    /// 400, 408 or 413.
    pub async fn any_body(&self, request: Request, most: usize) -> Result<ReadBody, Problem> {
        self.body(request.into_body(), most).await
    }

    async fn body(&self, body: Body, most: usize) -> Result<ReadBody, Problem> {
        let deadline = self.deps.limits.body_deadline;
        tokio::time::timeout(deadline, self.collect(body, most)).await.unwrap_or_else(|_| {
            Err(Problem::new(
                Code::RequestTimeout,
                format!("The body was not complete after {} s.", deadline.as_secs()),
            ))
        })
    }

    async fn collect(&self, mut body: Body, most: usize) -> Result<ReadBody, Problem> {
        let mut bytes: Vec<u8> = Vec::new();
        let mut room = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Problem::new(Code::BadBody, "The body broke off or does not decode."))?;
            let Ok(chunk) = frame.into_data() else { continue };
            if bytes.len() + chunk.len() > most {
                return Err(too_large(most));
            }
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MOST_BODY && room.is_none() {
                room = Some(self.room()?);
            }
        }
        Ok(ReadBody { bytes: bytes.into(), _room: room })
    }

    /// Not waited for: whoever holds a megabyte in memory while waiting would defeat the bound.
    fn room(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.large_bodies)
            .try_acquire_owned()
            .map_err(|_| Problem::new(Code::Busy, "Too many large bodies are being read at this moment."))
    }
}

/// Reads bytes as JSON.
///
/// # Errors
/// 400.
pub fn json(bytes: &[u8]) -> Result<Node<'_>, Problem> {
    parse(bytes).map_err(|problem| match problem {
        JsonProblem::Syntax { detail } => Problem::new(Code::InvalidJson, detail),
        JsonProblem::TooDeep { pointer } => Problem::new(Code::InvalidJson, "The body is nested too deep.")
            .with(vec![FieldProblem::new(pointer, "must not be nested deeper than 32 levels")]),
        JsonProblem::Duplicates { pointers } => Problem::new(Code::InvalidJson, "A key stands twice in one object.")
            .with(pointers.into_iter().map(|pointer| FieldProblem::new(pointer, "stands more than once")).collect()),
    })
}

/// One rule for a notification's size: 1 MiB without its attachments, 15 MiB with them.
///
/// # Errors
/// 413.
pub fn check_size(bytes: &[u8], node: &Node<'_>) -> Result<(), Problem> {
    let attachments = node.member("content").and_then(|content| content.member("attachments"));
    let rest = bytes.len() - attachments.map_or(0, |attachments| attachments.raw.len());
    if rest > MOST_BODY { Err(too_large(MOST_BODY)) } else { Ok(()) }
}

fn too_large(most: usize) -> Problem {
    Problem::new(Code::BodyTooLarge, format!("At most {most} bytes are taken, counted after decompression."))
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut kinds = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(kind), None) = (kinds.next(), kinds.next()) else { return false };
    let Ok(kind) = kind.to_str() else { return false };
    let mut parts = kind.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    let utf8 = parts.filter_map(|part| part.split_once('=')).all(|(name, value)| {
        !name.eq_ignore_ascii_case("charset") || value.trim_matches('"').eq_ignore_ascii_case("utf-8")
    });
    essence.eq_ignore_ascii_case("application/json") && utf8
}
