//! TLS, HTTP/2 and HTTP/1.1 under the push service.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::stream;
use h2::SendStream;
use h2::server::SendResponse;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{Reply, Service, Speaks};

const PIECE: &[u8] = &[b'x'; 1024];

/// The root in PEM, and the server's side of it.
pub(super) fn tls(speaks: Speaks) -> (String, TlsAcceptor) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = match speaks {
        Speaks::Http2 => vec![b"h2".to_vec()],
        Speaks::Http1 => vec![b"http/1.1".to_vec()],
    };
    (made.cert.pem(), TlsAcceptor::from(Arc::new(config)))
}

/// Ends, with all its connections, when it is dropped.
pub(super) async fn serve(listener: TcpListener, acceptor: TlsAcceptor, service: Arc<Service>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        service.inner().connections += 1;
        connections.spawn(connection(stream, acceptor.clone(), service.clone()));
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, service: Arc<Service>) {
    // The other side may break off at any point.
    let Ok(stream) = acceptor.accept(stream).await else { return };
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        http2(stream, service).await;
    } else {
        let answering = service_fn(move |request| http1(request, service.clone()));
        let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answering);
        drop(served.await);
    }
}

async fn http2(stream: TlsStream<TcpStream>, service: Arc<Service>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    let mut streams = JoinSet::new();
    while let Some(Ok((request, respond))) = connection.accept().await {
        streams.spawn(http2_stream(request, respond, service.clone()));
    }
}

async fn http2_stream(request: Request<h2::RecvStream>, mut respond: SendResponse<Bytes>, service: Arc<Service>) {
    let (head, mut body) = request.into_parts();
    let mut whole = BytesMut::new();
    while let Some(part) = body.data().await {
        let Ok(part) = part else { return };
        whole.extend_from_slice(&part);
        body.flow_control().release_capacity(part.len()).unwrap();
    }
    let Some(reply) = service.react(&head, &whole.freeze()) else { return pending().await };
    let head = response(&reply, ());
    match &reply.body {
        Some(body) => {
            let Ok(mut stream) = respond.send_response(head, body.is_empty()) else { return };
            if !body.is_empty() {
                drop(stream.send_data(Bytes::from(body.clone()), true));
            }
        }
        None => {
            let Ok(stream) = respond.send_response(head, false) else { return };
            endless(stream).await;
        }
    }
}

/// Until the other side has had enough.
async fn endless(mut stream: SendStream<Bytes>) {
    loop {
        stream.reserve_capacity(PIECE.len());
        let room = poll_fn(|context| stream.poll_capacity(context)).await;
        let Some(Ok(room)) = room else { return };
        if stream.send_data(Bytes::from_static(&PIECE[..room.min(PIECE.len())]), false).is_err() {
            return;
        }
    }
}

async fn http1(
    request: Request<Incoming>,
    service: Arc<Service>,
) -> Result<Response<BoxBody<Bytes, Infallible>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let whole = body.collect().await?.to_bytes();
    let Some(reply) = service.react(&head, &whole) else { return pending().await };
    let body = match &reply.body {
        Some(body) => Full::new(Bytes::from(body.clone())).boxed(),
        None => StreamBody::new(stream::repeat_with(|| Ok(Frame::data(Bytes::from_static(PIECE))))).boxed(),
    };
    Ok(response(&reply, body))
}

fn response<B>(reply: &Reply, body: B) -> Response<B> {
    let mut response = Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(*name, value);
    }
    response.body(body).unwrap()
}
