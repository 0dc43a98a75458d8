//! The one sender of webhook-like messages: kept HTTP/1.1 connections to one place. The bare loop
//! uses it as it is, Belfry as a channel around it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use async_trait::async_trait;
use belfry::ports::channel::{Call, Channel};
use belfry::ports::message::{Outgoing, Rendered};
use belfry_domain::Outcome;
use belfry_domain::outcome::{RepeatGuard, Why, WhyCode};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// For one call, from connecting to the answer's head.
const PATIENCE: Duration = Duration::from_secs(10);

type Connection = SendRequest<Full<Bytes>>;

pub(crate) struct Sender {
    /// `127.0.0.1:port`.
    address: String,
    path: &'static str,
    idle: Mutex<Vec<Connection>>,
}

impl Sender {
    pub(crate) fn new(address: &str, path: &'static str) -> Self {
        Self { address: address.to_owned(), path, idle: Mutex::default() }
    }

    /// Sends `body` and fails on anything but success.
    pub(crate) async fn post(&self, body: Bytes) -> Result<()> {
        let status = self.answered(body).await?;
        ensure!(status.is_success(), "{status}");
        Ok(())
    }

    async fn answered(&self, body: Bytes) -> Result<StatusCode> {
        tokio::time::timeout(PATIENCE, self.exchanged(body)).await?
    }

    async fn exchanged(&self, body: Bytes) -> Result<StatusCode> {
        let mut connection = self.connection().await?;
        let request = Request::post(self.path)
            .header(HOST, &self.address)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))?;
        let status = connection.send_request(request).await?.status();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        Ok(status)
    }

    async fn connection(&self) -> Result<Connection> {
        loop {
            let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(mut kept) = kept else { return self.open().await };
            if kept.ready().await.is_ok() {
                return Ok(kept);
            }
        }
    }

    async fn open(&self) -> Result<Connection> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // Ends with its connection, which ends with the sender.
        tokio::spawn(connection);
        Ok(sender)
    }
}

/// A provider that makes one POST of each message's body.
pub(crate) struct WebhookLike(pub Sender);

#[async_trait]
impl Channel for WebhookLike {
    fn repeat_guard(&self) -> RepeatGuard {
        RepeatGuard::None
    }

    fn receipts(&self) -> bool {
        false
    }

    async fn send(&self, out: &Outgoing, call: &Call) -> Outcome {
        let Rendered::Webhook { body } = &out.message else {
            return Outcome::Refused { why: Why::new(WhyCode::RenderFailed) };
        };
        if call.commit().is_err() {
            return Outcome::NotAccepted { retry_after: None, why: Why::new(WhyCode::LeaseLost) };
        }
        match self.0.answered(Bytes::copy_from_slice(body.as_bytes())).await {
            Ok(status) if status.is_success() => Outcome::Accepted { provider_ref: None, why: Why::new(WhyCode::Ok) },
            Ok(_) => Outcome::Unknown { retry_after: None, why: Why::new(WhyCode::Unrecognised) },
            Err(_) => Outcome::Unknown { retry_after: None, why: Why::new(WhyCode::CutAfter) },
        }
    }
}
