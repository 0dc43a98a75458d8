//! The listener: deadlines, drain, health.

use std::sync::Arc;
use std::time::Duration;

use belfry::http::ApiLimits;
use belfry::http::server::{Served, ServerLimits};
use belfry::ports::circuits::OpenCircuit;
use belfry::ports::clock::Clock as _;
use belfry::ports::deliveries::Deliveries;
use belfry_domain::breaker::OpenWhy;
use belfry_domain::{UnixMs, WhyCode};
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::away::Failing;
use super::bed::*;

async fn connect(bed: &Bed) -> TcpStream {
    TcpStream::connect(bed.addr).await.unwrap()
}

/// Everything up to the end of the connection, which has to come soon.
async fn rest(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    match tokio::time::timeout(SOON, stream.read_to_end(&mut text)).await.expect("an end in time") {
        Ok(_) => {}
        // Cut while bytes of ours were under way.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
    }
    String::from_utf8(text).unwrap()
}

fn livez() -> &'static [u8] {
    b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
}

/// Reads one answer with a body of known length.
async fn answer(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let read = async {
        while !text.ends_with(b"{\"alive\":true}") {
            assert!(stream.read_buf(&mut text).await.unwrap() > 0, "{}", String::from_utf8_lossy(&text));
        }
    };
    tokio::time::timeout(SOON, read).await.expect("an answer in time");
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn a_head_that_trickles_in_is_cut() {
    let server = ServerLimits { header_timeout: Duration::from_millis(200), ..ServerLimits::default() };
    let bed = Bed::planned(Plan { server, ..Plan::default() }).await;
    // Silent from the start; half a head; half a second head.
    let mut silent = connect(&bed).await;
    assert_eq!(rest(&mut silent).await, "");
    let mut slow = connect(&bed).await;
    slow.write_all(b"GET /livez HTT").await.unwrap();
    rest(&mut slow).await;
    let mut second = connect(&bed).await;
    second.write_all(livez()).await.unwrap();
    answer(&mut second).await;
    second.write_all(b"GET /liv").await.unwrap();
    rest(&mut second).await;
}

#[tokio::test]
async fn an_idle_connection_has_longer_than_a_head() {
    let server = ServerLimits {
        header_timeout: Duration::from_millis(100),
        idle_timeout: Duration::from_millis(600),
        ..ServerLimits::default()
    };
    let bed = Bed::planned(Plan { server, ..Plan::default() }).await;
    let mut stream = connect(&bed).await;
    stream.write_all(livez()).await.unwrap();
    answer(&mut stream).await;
    let idle_since = bed.clock.boot();
    assert_eq!(rest(&mut stream).await, "");
    assert!(bed.clock.boot() - idle_since >= Duration::from_millis(500));
}

#[tokio::test]
async fn heads_have_a_size() {
    let bed = Bed::new().await;
    let mut stream = connect(&bed).await;
    let long = format!("GET /livez HTTP/1.1\r\nHost: x\r\nX-Long: {}\r\n\r\n", "x".repeat(32 * 1024));
    // The server may hang up before it has read all of it.
    let wrote = stream.write_all(long.as_bytes()).await;
    let told = rest(&mut stream).await;
    assert!(told.starts_with("HTTP/1.1 431") || (told.is_empty() && wrote.is_err()), "{told}");
}

#[tokio::test]
async fn beyond_the_most_connections_the_next_one_waits() {
    let server = ServerLimits { most_connections: 1, ..ServerLimits::default() };
    let bed = Bed::planned(Plan { server, ..Plan::default() }).await;
    let mut first = connect(&bed).await;
    first.write_all(livez()).await.unwrap();
    answer(&mut first).await;
    let mut second = connect(&bed).await;
    second.write_all(livez()).await.unwrap();
    drop(first);
    assert!(answer(&mut second).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn case_74_the_end_waits_for_nobody_who_has_nothing_to_say() {
    let bed = Bed::new().await;
    let mut idle = connect(&bed).await;
    idle.write_all(livez()).await.unwrap();
    answer(&mut idle).await;
    let mut fresh = connect(&bed).await;
    // A long poll, which is what an open page holds.
    let mut poll = connect(&bed).await;
    let ask = format!("GET /v1/outbox?wait=30 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n", bed.key);
    poll.write_all(ask.as_bytes()).await.unwrap();
    // It has begun once a request behind it in the queue is answered.
    assert_eq!(bed.get("/livez").await.status, 200);
    let began = bed.clock.boot();
    bed.drain.begin();
    assert_eq!(rest(&mut idle).await, "");
    assert_eq!(rest(&mut fresh).await, "");
    let told = rest(&mut poll).await;
    assert!(told.is_empty() || told.contains("{\"messages\":[]}"), "{told}");
    let served = tokio::time::timeout(SOON, bed.server).await.expect("an end in time").unwrap();
    assert_eq!(served, Served { cut: 0 });
    assert!(bed.clock.boot() - began < Duration::from_secs(10));
    assert!(TcpStream::connect(bed.addr).await.is_err());
}

#[tokio::test]
async fn open_requests_are_finished_within_the_grace() {
    let bed = Bed::new().await;
    let mut stream = connect(&bed).await;
    let body =
        json!({"class": "receipt", "to": {"email": "ann@example.com"}, "content": {"subject": "S", "text": "T"}})
            .to_string();
    let (first, second) = body.split_at(10);
    let head = format!(
        "POST /v1/notifications HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nIdempotency-Key: k\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        bed.key,
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server asks for the body: the request is open.
    let mut told = [0; 25];
    tokio::time::timeout(SOON, stream.read_exact(&mut told)).await.expect("an answer in time").unwrap();
    assert!(told.starts_with(b"HTTP/1.1 100"));
    stream.write_all(first.as_bytes()).await.unwrap();
    bed.drain.begin();
    stream.write_all(second.as_bytes()).await.unwrap();
    let told = rest(&mut stream).await;
    assert!(told.contains("HTTP/1.1 202") && told.contains("\"state\":\"queued\""), "{told}");
    assert_eq!(bed.server.await.unwrap(), Served { cut: 0 });
}

#[tokio::test]
async fn what_outlasts_the_grace_is_cut() {
    let server = ServerLimits { grace: Duration::from_millis(100), ..ServerLimits::default() };
    let bed = Bed::planned(Plan { server, ..Plan::default() }).await;
    let mut stream = connect(&bed).await;
    let head = format!(
        "POST /v1/notifications HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nIdempotency-Key: k\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n",
        bed.key
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut told = [0; 25];
    tokio::time::timeout(SOON, stream.read_exact(&mut told)).await.expect("an answer in time").unwrap();
    bed.drain.begin();
    assert_eq!(bed.server.await.unwrap(), Served { cut: 1 });
}

#[tokio::test]
async fn whoever_asks_hears_which_circuits_are_open() {
    let open = OpenCircuit {
        provider: "ios".into(),
        service: None,
        why: OpenWhy::Credential,
        cause: WhyCode::CredentialRefused,
        since: UnixMs(1_700_000_000_000),
    };
    let bed = Bed::planned(Plan { circuits: Arc::new(move || vec![open.clone()]), ..Plan::default() }).await;
    assert_eq!(bed.get("/readyz").await.json(), json!({"ready": true}));
    let told = bed.get("/readyz?verbose").await;
    assert_eq!(told.status, 200);
    let detail = "ios: messages wait since 2023-11-14T22:13:20.000Z: our login is refused: look at the key or password \
                  and at its file (credential_refused)";
    let check = json!({"name": "circuit", "ok": false, "detail": detail, "took_ms": 0});
    assert_eq!(told.json()["checks"][2], check);
}

#[tokio::test]
async fn ready_only_while_the_store_is_and_nobody_drains() {
    let failing = Failing::new();
    let bed = Bed::planned(Plan { deliveries: Some(failing.clone() as Arc<dyn Deliveries>), ..Plan::default() }).await;
    failing.serve(bed.store.clone());
    assert_eq!(bed.get("/readyz").await.json(), json!({"ready": true}));
    let verbose = bed.get("/readyz?verbose").await.json();
    let names: Vec<_> = verbose["checks"].as_array().unwrap().iter().map(|check| check["name"].clone()).collect();
    assert_eq!(names, ["draining", "store"]);
    failing.fail_after(0);
    let told = bed.get("/readyz?verbose").await;
    assert_eq!((told.status.as_u16(), &told.json()["checks"][1]["ok"]), (503, &json!(false)));
    assert_eq!(bed.get("/livez").await.status, 200);
    failing.heal();
    assert_eq!(bed.get("/readyz").await.status, 200);
    // A connection that is open when the end begins still hears that it has begun.
    let mut stream = connect(&bed).await;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: x").await.unwrap();
    assert_eq!(bed.get("/livez").await.status, 200);
    bed.drain.begin();
    // The head may have been cut or read; if it is answered, it is answered so.
    if stream.write_all(b"\r\n\r\n").await.is_ok() {
        let told = rest(&mut stream).await;
        assert!(told.is_empty() || told.contains("503 Service Unavailable"), "{told}");
    }
}

#[tokio::test]
async fn a_store_that_never_answers_is_told_within_two_seconds() {
    let failing = Failing::new();
    let plan = Plan { deliveries: Some(failing.clone()), limits: ApiLimits::default(), ..Plan::default() };
    let bed = Bed::planned(plan).await;
    failing.serve(bed.store.clone());
    failing.hang();
    assert!(ApiLimits::default().store_deadline < Duration::from_secs(2));
    let body =
        json!({"class": "receipt", "to": {"email": "ann@example.com"}, "content": {"subject": "S", "text": "T"}});
    let told = bed.ask(Method::POST, "/v1/notifications").key("k").json(&body).told().await;
    assert_eq!(told.problem(), (503, "store_unavailable".into()));
    assert_eq!(told.header("retry-after"), Some("1"));
}
