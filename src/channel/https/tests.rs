//! Against small servers written by hand, in plain text on loopback. TLS and GOAWAY are tested with APNs.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::*;
use crate::channel::setting::Given;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

fn settings() -> HttpsSettings {
    HttpsSettings {
        roots: None,
        identity: None,
        protocol: Protocol::Any,
        addresses: Addresses::Any,
        connections: 4,
        streams: 100,
        origins: 8,
        connect: LONG,
        answer: LONG,
        body: LONG,
        most_body: 1000,
        keepalive: LONG,
        keepalive_wait: LONG,
        idle: LONG,
    }
}

fn client(settings: HttpsSettings) -> Https {
    Https::new(settings).unwrap()
}

/// What a server does once a request was read.
#[derive(Clone, Copy)]
enum Then {
    Say(&'static str),
    /// Says it and closes.
    SayAndClose(&'static str),
    Close,
    Nothing,
}

const OK: Then = Then::Say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: b\r\n\r\nok");

/// An HTTP/1.1 server that does one thing after the other, and then the last one for ever.
struct Server {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
    /// Told whenever a connection has ended on both sides.
    left: Arc<Notify>,
    _serving: JoinSet<()>,
}

impl Server {
    async fn doing(script: &'static [Then]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (connections, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let left = Arc::new(Notify::new());
        let mut serving = JoinSet::new();
        let (counted, noted, told) = (connections.clone(), requests.clone(), left.clone());
        serving.spawn(async move {
            let mut sessions = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                let (noted, told) = (noted.clone(), told.clone());
                sessions.spawn(async move {
                    serve(stream, script, &noted).await;
                    told.notify_one();
                });
            }
        });
        Self { address, connections, requests, left, _serving: serving }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    fn url(&self) -> String {
        format!("http://{}/a?b=c", self.address)
    }
}

async fn serve(mut stream: TcpStream, script: &[Then], noted: &Mutex<Vec<String>>) {
    while let Some(request) = whole(&mut stream).await {
        let at = {
            let mut noted = noted.lock().unwrap();
            noted.push(request);
            noted.len() - 1
        };
        match script[at.min(script.len() - 1)] {
            Then::Say(text) => stream.write_all(text.as_bytes()).await.unwrap(),
            Then::SayAndClose(text) => {
                stream.write_all(text.as_bytes()).await.unwrap();
                break;
            }
            Then::Close => break,
            Then::Nothing => std::future::pending().await,
        }
    }
    // Until the client has seen it, too.
    stream.shutdown().await.unwrap_or_default();
    while stream.read_u8().await.is_ok() {}
}

/// One request with its body.
async fn whole(stream: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    loop {
        read.push(stream.read_u8().await.ok()?);
        if read.ends_with(b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&read).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
            stream.read_exact(&mut body).await.ok()?;
            read.extend(body);
            return Some(String::from_utf8_lossy(&read).into_owned());
        }
    }
}

async fn ask(client: &Https, url: &str) -> Result<Answer, Fault> {
    let request = Request::builder().method(Method::POST).uri(url).body(Bytes::from_static(b"hello")).unwrap();
    client.ask(request, &|| Ok(())).await
}

fn body(answer: Result<Answer, Fault>) -> Option<Bytes> {
    answer.unwrap().body
}

#[tokio::test]
async fn http_1_is_spoken_where_the_other_side_knows_no_better() {
    let server = Server::doing(&[OK]).await;
    let client = client(settings());
    let answer = ask(&client, &server.url()).await.unwrap();
    assert_eq!((answer.status, answer.headers["x-a"].as_bytes()), (StatusCode::OK, &b"b"[..]));
    assert_eq!(answer.body.as_deref(), Some(&b"ok"[..]));
    assert_eq!(body(ask(&client, &server.url()).await).as_deref(), Some(&b"ok"[..]));
    assert_eq!(server.connections(), 1);
    let [first, _] = server.requests().try_into().unwrap();
    let expected = format!("POST /a?b=c HTTP/1.1\r\ncontent-length: 5\r\nhost: {}\r\n\r\nhello", server.address);
    assert_eq!(first, expected);
}

#[tokio::test]
async fn each_request_of_http_1_has_a_connection_to_itself() {
    let server = Server::doing(&[OK]).await;
    let client = client(HttpsSettings { connections: 3, ..settings() });
    let answers = futures::future::join_all((0..20).map(|_| async { ask(&client, &server.url()).await })).await;
    assert_eq!(answers.into_iter().filter_map(body).count(), 20);
    assert!(server.connections() <= 3, "{}", server.connections());
}

#[tokio::test]
async fn a_closed_idle_connection_costs_nothing() {
    let server = Server::doing(&[Then::SayAndClose("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), OK]).await;
    let client = client(settings());
    assert!(body(ask(&client, &server.url()).await).is_some());
    server.left.notified().await;
    assert!(body(ask(&client, &server.url()).await).is_some());
    assert_eq!((server.connections(), server.requests().len()), (2, 2));
}

#[tokio::test]
async fn a_request_that_was_read_is_never_sent_again() {
    let server =
        Server::doing(&[Then::Close, Then::SayAndClose("HTTP/1."), Then::SayAndClose("rubbish\r\n\r\n"), OK]).await;
    let client = client(settings());
    for _ in 0..3 {
        assert_eq!(ask(&client, &server.url()).await.unwrap_err(), Fault::Unknown { code: WhyCode::CutAfter });
    }
    assert!(body(ask(&client, &server.url()).await).is_some());
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn silence_is_unknown_and_that_connection_is_not_used_again() {
    let server = Server::doing(&[Then::Nothing, OK]).await;
    let client = client(HttpsSettings { answer: SHORT, ..settings() });
    assert_eq!(ask(&client, &server.url()).await.unwrap_err(), Fault::Unknown { code: WhyCode::TimedOutAfter });
    assert!(body(ask(&client, &server.url()).await).is_some());
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn half_an_answer_has_a_status_and_no_body() {
    const HALF: Then = Then::Say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    const CUT: Then = Then::SayAndClose("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    const LONG_ONE: Then = Then::Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n");
    let server = Server::doing(&[HALF, CUT, LONG_ONE, OK]).await;
    let client = client(HttpsSettings { body: SHORT, ..settings() });
    for _ in 0..3 {
        let answer = ask(&client, &server.url()).await.unwrap();
        assert_eq!((answer.status, answer.body), (StatusCode::OK, None));
    }
    assert!(body(ask(&client, &server.url()).await).is_some());
    assert_eq!(server.connections(), 4, "half an answer leaves the connection in the middle of it");
}

#[tokio::test]
async fn a_body_has_a_bound() {
    let server = Server::doing(&[OK]).await;
    for (most_body, expected) in [(2, true), (1, false)] {
        let client = client(HttpsSettings { most_body, ..settings() });
        assert_eq!(body(ask(&client, &server.url()).await).is_some(), expected);
    }
}

#[tokio::test]
async fn whoever_names_our_own_network_is_not_called() {
    let server = Server::doing(&[OK]).await;
    let client = client(HttpsSettings { addresses: Addresses::PublicOnly, ..settings() });
    for host in ["127.0.0.1", "localhost", "[::1]", "127.1"] {
        let fault = ask(&client, &format!("https://{host}:{}/", server.address.port())).await.unwrap_err();
        assert_eq!(fault, Fault::Internal, "{host}");
    }
    // In plain text only a host that is this machine by its name gets so far as to be resolved.
    for (host, internal) in [("127.0.0.1", true), ("localhost", true), ("[::1]", true), ("127.1", false)] {
        let fault = ask(&client, &format!("http://{host}:{}/", server.address.port())).await.unwrap_err();
        assert_eq!(fault == Fault::Internal, internal, "{host}: {fault:?}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn the_longest_unused_origin_goes() {
    let (one, two, three) = (Server::doing(&[OK]).await, Server::doing(&[OK]).await, Server::doing(&[OK]).await);
    let client = client(HttpsSettings { origins: 2, ..settings() });
    for server in [&one, &two, &one, &three, &one, &two] {
        assert!(body(ask(&client, &server.url()).await).is_some());
    }
    assert_eq!((one.connections(), two.connections(), three.connections()), (1, 2, 1));
    assert_eq!(format!("{client:?}"), "Https(2 origins)");
    two.left.notified().await;
}

#[tokio::test]
async fn what_was_idle_too_long_is_not_used_again() {
    let server = Server::doing(&[OK]).await;
    let client = client(HttpsSettings { idle: Duration::from_nanos(1), ..settings() });
    for _ in 0..3 {
        assert!(body(ask(&client, &server.url()).await).is_some());
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn what_is_idle_closes_by_itself() {
    let server = Server::doing(&[OK]).await;
    let client = client(HttpsSettings { keepalive: SHORT, idle: SHORT, ..settings() });
    assert!(body(ask(&client, &server.url()).await).is_some());
    server.left.notified().await;
    assert!(body(ask(&client, &server.url()).await).is_some());
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn with_the_last_client_its_connections_end() {
    let server = Server::doing(&[OK]).await;
    let client = client(settings());
    let other = client.clone();
    assert!(body(ask(&client, &server.url()).await).is_some());
    drop(client);
    assert!(body(ask(&other, &server.url()).await).is_some());
    assert_eq!(server.connections(), 1);
    drop(other);
    server.left.notified().await;
}

#[tokio::test]
async fn a_lapsed_claim_connects_and_says_nothing() {
    let server = Server::doing(&[OK]).await;
    let client = client(settings());
    let request = Request::builder().uri(server.url()).body(Bytes::new()).unwrap();
    assert_eq!(client.ask(request, &|| Err(LeaseLost)).await.unwrap_err(), Fault::LeaseLost);
    assert_eq!(server.requests(), [""; 0]);
}

#[tokio::test]
async fn http_2_needs_no_asking_where_it_is_agreed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(stream).await.unwrap();
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            assert_eq!(request.headers()["content-length"], "5");
            respond.send_response(http::Response::new(()), true).unwrap();
        }
    });
    let client = client(HttpsSettings { protocol: Protocol::Http2, ..settings() });
    assert_eq!(body(ask(&client, &url).await), Some(Bytes::new()));
}

#[test]
fn what_cannot_be_used_is_named() {
    let key = |settings| Https::new(settings).err().map(|error| error.key);
    let given = |key, text: &str| Given { key, text: text.into() };
    let identity =
        |chain: &str, key: &str| Identity { chain: given("certificate", chain), key: given("key_file", key) };
    assert_eq!(key(settings()), None);
    assert_eq!(key(HttpsSettings { roots: Some(given("ca", "nothing")), ..settings() }), Some("ca"));
    let made = rcgen::generate_simple_self_signed(["client.test".to_owned()]).unwrap();
    let (chain, own) = (made.cert.pem(), made.signing_key.serialize_pem());
    let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
    for (identity, expected) in [
        (identity(&chain, &own), None),
        (identity("", &own), Some("certificate")),
        (identity(&chain, "x"), Some("key_file")),
        (identity(&chain, &other), Some("certificate")),
    ] {
        assert_eq!(key(HttpsSettings { identity: Some(identity), ..settings() }), expected);
    }
}
