//! One request on one connection, and what is known of it without an answer.

use std::sync::PoisonError;

use belfry_domain::WhyCode;
use bytes::{Bytes, BytesMut};
use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use tokio::time::{Instant, timeout, timeout_at};

use super::connection::{Connection, Http1Sender, Way};
use super::{Answer, HttpsSettings};

/// No answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The other side said that it did not take it.
    Refused,
    /// None of its bytes left.
    NeverWritten,
    Unknown(WhyCode),
}

/// `by`: when the headers must be there.
pub(super) async fn exchange(
    connection: &Connection,
    request: &Request<Bytes>,
    by: Instant,
    settings: &HttpsSettings,
) -> Result<Answer, Lost> {
    match &connection.way {
        Way::Http2 { sender, .. } => http2(connection, sender.clone(), request, (by, settings)).await,
        Way::Http1 { sender } => {
            let lent = sender.lock().unwrap_or_else(PoisonError::into_inner).take();
            let mut lent = lent.ok_or(Lost::NeverWritten)?;
            let answer = http1(connection, &mut lent, request, (by, settings)).await?;
            // Half an answer leaves the connection in the middle of it.
            if answer.body.is_some() {
                *sender.lock().unwrap_or_else(PoisonError::into_inner) = Some(lent);
            }
            Ok(answer)
        }
    }
}

/// The head without the body, its length said.
fn head(request: &Request<Bytes>) -> Request<()> {
    let mut head = Request::new(());
    *head.method_mut() = request.method().clone();
    *head.uri_mut() = request.uri().clone();
    *head.headers_mut() = request.headers().clone();
    if !request.body().is_empty() || matches!(*request.method(), Method::POST | Method::PUT) {
        head.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(request.body().len()));
    }
    head
}

async fn http2(
    connection: &Connection,
    mut sender: SendRequest<Bytes>,
    request: &Request<Bytes>,
    (by, settings): (Instant, &HttpsSettings),
) -> Result<Answer, Lost> {
    let sent_at = Instant::now();
    let body = request.body().clone();
    // An error here means that the connection has gone, or takes nothing new.
    let (response, mut stream) = sender.send_request(head(request), body.is_empty()).map_err(|_| Lost::NeverWritten)?;
    let number = stream.stream_id().as_u32();
    let sent = if body.is_empty() { Ok(()) } else { stream.send_data(body, true) };
    if let Err(error) = sent {
        return Err(lost(connection, number, &error).await);
    }
    match timeout_at(by, response).await {
        Err(_) => {
            connection.doubt(sent_at);
            Err(Lost::Unknown(WhyCode::TimedOutAfter))
        }
        Ok(Err(error)) => Err(lost(connection, number, &error).await),
        Ok(Ok(response)) => {
            let (parts, body) = response.into_parts();
            let body = timeout(settings.body, http2_body(body, settings.most_body)).await.ok().flatten();
            Ok(Answer { status: parts.status, headers: parts.headers, body })
        }
    }
}

async fn lost(connection: &Connection, stream: u32, error: &h2::Error) -> Lost {
    let refused = error.is_reset() && error.is_remote() && error.reason() == Some(Reason::REFUSED_STREAM);
    if refused || connection.seen.was_left_out(stream) {
        return Lost::Refused;
    }
    if error.is_reset() {
        return Lost::Unknown(WhyCode::CutAfter);
    }
    // The connection is done for. While its task has not ended it may still write what lay ready.
    connection.ended().await;
    if connection.seen.was_left_out(stream) {
        Lost::Refused
    } else if connection.seen.was_opened(stream) {
        Lost::Unknown(WhyCode::CutAfter)
    } else {
        Lost::NeverWritten
    }
}

/// `None`: it broke off, or would be larger than `most`.
async fn http2_body(mut body: RecvStream, most: usize) -> Option<Bytes> {
    let mut read = BytesMut::new();
    while let Some(part) = body.data().await {
        let part = part.ok()?;
        if read.len() + part.len() > most {
            return None;
        }
        read.extend_from_slice(&part);
        // What was read makes room for more.
        body.flow_control().release_capacity(part.len()).ok()?;
    }
    Some(read.freeze())
}

async fn http1(
    connection: &Connection,
    sender: &mut Http1Sender,
    request: &Request<Bytes>,
    (by, settings): (Instant, &HttpsSettings),
) -> Result<Answer, Lost> {
    let (mut parts, ()) = head(request).into_parts();
    let host = request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    if let Some(host) = host {
        parts.headers.insert(HOST, host);
    }
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    parts.uri = path.parse().unwrap_or_else(|_| Uri::from_static("/"));
    let request = Request::from_parts(parts, Full::new(request.body().clone()));
    if timeout_at(by, sender.ready()).await.ok().is_none_or(|ready| ready.is_err()) {
        return Err(Lost::NeverWritten);
    }
    let before = connection.seen.written();
    match timeout_at(by, sender.send_request(request)).await {
        Err(_) => Err(Lost::Unknown(WhyCode::TimedOutAfter)),
        Ok(Err(_)) => {
            connection.ended().await;
            let left = connection.seen.written() > before;
            Err(if left { Lost::Unknown(WhyCode::CutAfter) } else { Lost::NeverWritten })
        }
        Ok(Ok(response)) => {
            let (parts, body) = response.into_parts();
            let body = timeout(settings.body, http1_body(body, settings.most_body)).await.ok().flatten();
            Ok(Answer { status: parts.status, headers: parts.headers, body })
        }
    }
}

/// `None`: it broke off, or would be larger than `most`.
async fn http1_body(mut body: Incoming, most: usize) -> Option<Bytes> {
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(part) = frame.ok()?.into_data() else { continue };
        if read.len() + part.len() > most {
            return None;
        }
        read.extend_from_slice(&part);
    }
    Some(read.freeze())
}
