//! One connection of the simulator.

use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::server::TlsStream;

use super::{Act, CutShort, PATIENCE, Seen, Shared, rules};

type Refusal = (u16, &'static str);

/// The stream, also for one who speaks past the HTTP/2 library.
#[derive(Clone)]
struct Line(Arc<Mutex<TlsStream<TcpStream>>>);

impl AsyncRead for Line {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock().unwrap()).poll_read(cx, buf)
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.lock().unwrap()).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock().unwrap()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock().unwrap()).poll_shutdown(cx)
    }
}

/// Says goodbye, and waits until the other side does: a connection that is dropped with something unread is reset,
/// and what was said last is lost.
pub async fn hang_up(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let both = async {
        stream.shutdown().await.ok()?;
        let mut rest = [0; 4096];
        while stream.read(&mut rest).await.ok()? > 0 {}
        Some(())
    };
    // Whoever left first makes no difference.
    drop(tokio::time::timeout(PATIENCE, both).await);
}

/// What requests on one connection share.
struct Connection {
    number: usize,
    certified: bool,
    /// Apple: one team on each.
    team: Mutex<Option<String>>,
    cut: tokio::sync::Notify,
}

pub async fn run(stream: TlsStream<TcpStream>, shared: &Arc<Shared>, number: usize) {
    let certified = stream.get_ref().1.peer_certificates().is_some();
    let line = Line(Arc::new(Mutex::new(stream)));
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(shared.options.streams);
    let Ok(mut http2) = builder.handshake::<_, Bytes>(line.clone()).await else { return };
    if let Some(cut) = shared.options.cut_first.filter(|_| number == 0) {
        return cut_short(http2, line, shared, cut).await;
    }
    let connection =
        Arc::new(Connection { number, certified, team: Mutex::default(), cut: tokio::sync::Notify::new() });
    let (mut frozen, mut farewell) = (shared.frozen.subscribe(), shared.farewell.subscribe());
    let mut serving = JoinSet::new();
    let mut requests = 0;
    loop {
        tokio::select! {
            asked = http2.accept() => {
                let Some(Ok((request, respond))) = asked else { return };
                requests += 1;
                if Some(requests) == shared.options.goaway_every {
                    http2.graceful_shutdown();
                }
                serving.spawn(serve(request, respond, shared.clone(), connection.clone()));
            }
            Some(_) = serving.join_next() => {}
            Ok(()) = frozen.changed() => std::future::pending().await,
            Ok(()) = farewell.changed() => {
                drop(http2);
                return hang_up(line).await;
            }
            () = connection.cut.notified() => return,
        }
    }
}

/// Reads requests and answers none; names the last one that it took, in a frame written by hand, since the library
/// always names the last one that it read.
async fn cut_short(
    mut http2: h2::server::Connection<Line, Bytes>,
    mut line: Line,
    shared: &Arc<Shared>,
    cut: CutShort,
) {
    let mut open = Vec::new();
    let mut last = 0;
    while open.len() < cut.after {
        let Some(Ok((request, respond))) = http2.accept().await else { return };
        if open.len() < cut.last {
            last = respond.stream_id().as_u32();
        }
        open.push((request, respond));
    }
    let mut above = Vec::new();
    let mut reading = JoinSet::new();
    let answers: Vec<_> = open
        .into_iter()
        .enumerate()
        .map(|(at, (request, respond))| {
            reading.spawn(async move { (at, read(request).await) });
            respond
        })
        .collect();
    while !reading.is_empty() {
        tokio::select! {
            Some(read) = reading.join_next() => {
                let (at, asked) = read.unwrap();
                let Some(asked) = asked else { return };
                if at < cut.last {
                    note(shared, &asked, 0, None, true);
                } else {
                    shared.book.send_modify(|book| book.not_looked_at += 1);
                }
            }
            more = http2.accept() => {
                let Some(Ok(more)) = more else { return };
                shared.book.send_modify(|book| book.not_looked_at += 1);
                above.push(more);
            }
        }
    }
    drop((http2, answers, above));
    let mut goaway = vec![0, 0, 8, 7, 0, 0, 0, 0, 0];
    goaway.extend(last.to_be_bytes());
    goaway.extend(0_u32.to_be_bytes());
    if line.write_all(&goaway).await.is_ok() {
        hang_up(line).await;
    }
}

/// A request, read whole.
struct Asked {
    token: Result<String, Refusal>,
    headers: HeaderMap,
    body: Bytes,
}

async fn read(request: Request<RecvStream>) -> Option<Asked> {
    let token = rules::token(&request);
    let (parts, mut incoming) = request.into_parts();
    let mut body = BytesMut::new();
    while let Some(part) = incoming.data().await {
        let part = part.ok()?;
        incoming.flow_control().release_capacity(part.len()).ok()?;
        assert!(body.len() + part.len() <= 64 * 1024, "no push is so large");
        body.extend_from_slice(&part);
    }
    Some(Asked { token, headers: parts.headers, body: body.freeze() })
}

fn note(shared: &Shared, asked: &Asked, connection: usize, refused: Option<Refusal>, taken: bool) {
    if taken {
        shared.taken.fetch_add(1, Ordering::SeqCst);
    }
    if shared.options.fast {
        return;
    }
    let headers = asked
        .headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
    let seen = Seen {
        token: asked.token.clone().unwrap_or_default(),
        headers: headers.collect(),
        body: asked.body.clone(),
        connection,
        refused,
        taken,
    };
    shared.book.send_modify(|book| book.requests.push(seen));
}

async fn serve(
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
    shared: Arc<Shared>,
    connection: Arc<Connection>,
) {
    // Who left half-way had no effect.
    let Some(asked) = read(request).await else { return };
    if let Err((status, reason)) = look(&asked, &shared, &connection) {
        note(&shared, &asked, connection.number, Some((status, reason)), false);
        return answer(respond, &asked, status, Some(format!(r#"{{"reason":"{reason}"}}"#)), None);
    }
    let token = asked.token.clone().unwrap_or_default();
    let next = shared.next.lock().unwrap().pop_front();
    let act = next.or_else(|| shared.always.lock().unwrap().get(&token).cloned());
    match act {
        None => {
            note(&shared, &asked, connection.number, None, true);
            answer(respond, &asked, 200, None, None);
        }
        Some(act) => perform(act, respond, &asked, &shared, &connection).await,
    }
}

fn look(asked: &Asked, shared: &Shared, connection: &Connection) -> Result<(), Refusal> {
    asked.token.clone()?;
    if shared.options.fast {
        return Ok(());
    }
    let headers = rules::headers(&asked.headers)?;
    if !connection.certified {
        let authorization = headers.get("authorization").map(String::as_str);
        let team = shared.logins.lock().unwrap().check(authorization, shared.now.load(Ordering::SeqCst))?;
        if connection.team.lock().unwrap().get_or_insert_with(|| team.clone()) != &team {
            return Err((403, "Forbidden"));
        }
    }
    rules::check(&headers, &asked.body, &shared.options.topics)
}

fn answer(
    mut respond: SendResponse<Bytes>,
    asked: &Asked,
    status: u16,
    body: Option<String>,
    retry_after: Option<String>,
) {
    let response = head(asked, status, retry_after);
    let Ok(mut stream) = respond.send_response(response, body.is_none()) else { return };
    // Who has left hears nothing.
    if let Some(body) = body
        && stream.send_data(Bytes::from(body), true).is_err()
    {}
}

fn head(asked: &Asked, status: u16, retry_after: Option<String>) -> Response<()> {
    let mut response = Response::builder().status(status);
    if let Some(id) = asked.headers.get("apns-id") {
        response = response.header("apns-id", id);
    }
    if let Some(wait) = retry_after {
        response = response.header("retry-after", wait);
    }
    response.body(()).unwrap()
}

async fn perform(act: Act, mut respond: SendResponse<Bytes>, asked: &Asked, shared: &Shared, connection: &Connection) {
    let taken = match &act {
        Act::Refuse => {
            shared.book.send_modify(|book| book.not_looked_at += 1);
            return respond.send_reset(Reason::REFUSED_STREAM);
        }
        Act::Answer { status, .. } => *status == 200,
        _ => true,
    };
    note(shared, asked, connection.number, None, taken);
    match act {
        Act::Refuse => {}
        Act::Answer { status, body, retry_after } => {
            answer(respond, asked, status, Some(body).filter(|body| !body.is_empty()), retry_after);
        }
        Act::Silence => std::future::pending().await,
        Act::StalledBody(status) => {
            let Ok(mut stream) = respond.send_response(head(asked, status, None), false) else { return };
            if stream.send_data(Bytes::from_static(br#"{"reason":"Unreg"#), false).is_ok() {
                std::future::pending().await
            }
        }
        Act::EndlessBody(status) => endless(respond, head(asked, status, None)).await,
        Act::Reset => respond.send_reset(Reason::INTERNAL_ERROR),
        Act::Cut => connection.cut.notify_one(),
        Act::AnswerOnRelease => {
            shared.release.notified().await;
            answer(respond, asked, 200, None, None);
        }
    }
}

/// Until the other side has had enough.
async fn endless(mut respond: SendResponse<Bytes>, head: Response<()>) {
    let Ok(mut stream) = respond.send_response(head, false) else { return };
    let blanks = Bytes::from(vec![b' '; 4096]);
    loop {
        stream.reserve_capacity(blanks.len());
        let capacity = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await;
        let Some(Ok(capacity)) = capacity else { return };
        if stream.send_data(blanks.slice(..capacity.min(blanks.len())), false).is_err() {
            return;
        }
    }
}
