//! The simulator's line: TLS, HTTP/2 or HTTP/1.1 by ALPN.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::Shared;

/// A request, read whole.
pub struct Asked {
    pub method: String,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Asked {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// An answer.
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Body,
}

#[derive(Clone, Debug)]
pub enum Body {
    Whole(String),
    /// The headers, then silence.
    Stalled,
    /// Without end.
    Endless,
}

/// A certificate for loopback, and the authority that signed it, as PEM.
pub fn certificate(alpn: &[&str]) -> (TlsAcceptor, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // OpenSSL takes a certificate that names itself as its issuer for one that nobody signed.
    params.distinguished_name.push(DnType::CommonName, "the stand-in's authority");
    let key = KeyPair::generate().unwrap();
    let ca = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    let leaf = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    (TlsAcceptor::from(Arc::new(config)), ca)
}

/// Takes connections until it is dropped, with all of them.
pub async fn accept(listener: TcpListener, tls: TlsAcceptor, shared: Arc<Shared>) {
    let mut open = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        while open.try_join_next().is_some() {}
        open.spawn(serve(stream, tls.clone(), shared.clone()));
    }
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, shared: Arc<Shared>) {
    // Whoever does not trust us, or goes away, is of no interest.
    let Ok(stream) = tls.accept(stream).await else { return };
    shared.seen.send_modify(|seen| seen.connections += 1);
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        http2(stream, shared).await;
    } else {
        http1(stream, shared).await;
    }
}

type Stream = tokio_rustls::server::TlsStream<TcpStream>;

async fn http1(stream: Stream, shared: Arc<Shared>) {
    let service = service_fn(|request: Request<hyper::body::Incoming>| {
        let shared = shared.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            let reply = shared.answer(&asked(parts, body)).await;
            let made = head(&reply);
            Ok::<_, Infallible>(made.map(|()| bytes_of(reply.body)))
        }
    });
    let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    drop(served);
}

fn bytes_of(body: Body) -> UnsyncBoxBody<Bytes, Infallible> {
    let part = || Ok(Frame::data(Bytes::from_static(&[b' '; 8192])));
    match body {
        Body::Whole(text) => Full::new(Bytes::from(text)).boxed_unsync(),
        Body::Stalled => StreamBody::new(futures::stream::pending()).boxed_unsync(),
        Body::Endless => StreamBody::new(futures::stream::repeat_with(part)).boxed_unsync(),
    }
}

async fn http2(stream: Stream, shared: Arc<Shared>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    let mut streams = JoinSet::new();
    while let Some(Ok((request, respond))) = connection.accept().await {
        while streams.try_join_next().is_some() {}
        streams.spawn(exchange(request, respond, shared.clone()));
    }
}

async fn exchange(
    request: Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
    shared: Arc<Shared>,
) -> Option<()> {
    let (parts, mut stream) = request.into_parts();
    let mut body = Vec::new();
    while let Some(part) = stream.data().await {
        let part = part.ok()?;
        stream.flow_control().release_capacity(part.len()).ok()?;
        body.extend_from_slice(&part);
    }
    let reply = shared.answer(&asked(parts, body.into())).await;
    let mut send = respond.send_response(head(&reply), false).ok()?;
    match reply.body {
        Body::Whole(text) => send.send_data(Bytes::from(text), true).ok(),
        Body::Stalled => pending().await,
        Body::Endless => loop {
            send.reserve_capacity(8192);
            let room = poll_fn(|context| send.poll_capacity(context)).await?.ok()?;
            send.send_data(Bytes::from(vec![b' '; room]), false).ok()?;
        },
    }
}

fn asked(parts: http::request::Parts, body: Bytes) -> Asked {
    Asked {
        method: parts.method.to_string(),
        path: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        headers: parts.headers,
        body,
    }
}

fn head(reply: &Reply) -> Response<()> {
    let mut response = Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(*name, value);
    }
    response.body(()).unwrap()
}
