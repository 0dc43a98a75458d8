//! What may be in a body, and how much of it.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belfry::http::ApiLimits;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::bed::*;

/// 2 MiB of JSON white space around `{}`, compressed to 2 KiB.
const BOMB: &[u8] = include_bytes!("two_mebibytes.json.gz");

fn mail(text: &str) -> Value {
    json!({"class": "receipt", "to": {"email": "ann@example.com"}, "content": {"subject": "S", "text": text}})
}

#[tokio::test]
async fn the_limit_counts_what_comes_out_of_the_compression() {
    let bed = Bed::new().await;
    let ask = |encoding: &str, body: Vec<u8>| {
        bed.ask(Method::POST, "/v1/notifications").key("k").header("content-encoding", encoding).body(body).told()
    };
    assert!(BOMB.len() < 10_000);
    assert_eq!(ask("gzip", BOMB.to_vec()).await.problem(), (413, "body_too_large".into()));
    assert_eq!(ask("gzip", b"no gzip".to_vec()).await.problem(), (400, "bad_body".into()));
    assert_eq!(ask("gzip", BOMB[..BOMB.len() / 2].to_vec()).await.problem(), (400, "bad_body".into()));
    for unknown in ["zstd", "deflate", "gzip, gzip", "x"] {
        let told = ask(unknown, BOMB.to_vec()).await;
        assert_eq!(told.problem(), (415, "unsupported_encoding".into()));
        assert_eq!(told.header("accept-encoding"), Some("gzip, br"));
    }
    let told = ask("GZip", gzip_stored(mail("packed").to_string().as_bytes())).await;
    assert_eq!(told.status, 202);
    let told = ask("gzip", gzip_stored(mail("packed").to_string().as_bytes())).await;
    assert_eq!(told.status, 202, "{}", told.text);
}

/// A gzip member of one stored block.
fn gzip_stored(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap();
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    packed.extend(length.to_le_bytes());
    packed.extend((!length).to_le_bytes());
    packed.extend(bytes);
    let crc = !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 })
    });
    packed.extend(crc.to_le_bytes());
    packed.extend(u32::from(length).to_le_bytes());
    packed
}

#[tokio::test]
async fn one_mebibyte_without_attachments_fifteen_with() {
    let bed = Bed::new().await;
    let told = bed.send("k", &mail(&"x".repeat(1024 * 1024))).await;
    assert_eq!(told.problem(), (413, "body_too_large".into()));
    let mut body = mail("T");
    let attached = |bytes: usize| json!([{"filename": "a.bin", "content_type": "application/octet-stream", "base64": STANDARD.encode(vec![7; bytes])}]);
    body["content"]["attachments"] = attached(10 * 1024 * 1024);
    assert_eq!(bed.send("large", &body).await.status, 202);
    body["content"]["attachments"] = attached(10 * 1024 * 1024 + 1);
    assert_eq!(bed.send("larger", &body).await.pointers(), ["/content/attachments"]);
    body["content"]["attachments"] = attached(12 * 1024 * 1024);
    assert_eq!(bed.send("largest", &body).await.problem(), (413, "body_too_large".into()));
    // The rest of the request has its one mebibyte, whatever hangs on it.
    body["content"]["attachments"] = attached(1024);
    body["content"]["text"] = json!("x".repeat(1024 * 1024));
    assert_eq!(bed.send("k", &body).await.problem(), (413, "body_too_large".into()));
}

#[tokio::test]
async fn only_json_is_taken() {
    let bed = Bed::new().await;
    let url = format!("http://{}/v1/notifications", bed.addr);
    for kind in ["text/plain", "application/json; charset=latin1", "application/jsonp", "application/xml"] {
        let ask = bed.client.post(&url).bearer_auth(&bed.key).header("idempotency-key", "k");
        let answer = ask.header("content-type", kind).body(mail("T").to_string()).send().await.unwrap();
        assert_eq!(answer.status(), 415, "{kind}");
    }
    let bare = bed.client.post(&url).bearer_auth(&bed.key).header("idempotency-key", "k").body("{}").send().await;
    assert_eq!(bare.unwrap().status(), 415);
    let ask = bed.client.post(&url).bearer_auth(&bed.key).header("idempotency-key", "k");
    let ask = ask.header("content-type", "Application/JSON; charset=\"UTF-8\"").body(mail("T").to_string());
    assert_eq!(ask.send().await.unwrap().status(), 202);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let limits = ApiLimits { body_deadline: Duration::from_millis(200), store_deadline: SOON, ..ApiLimits::default() };
    let bed = Bed::planned(Plan { limits, ..Plan::default() }).await;
    let mut stream = TcpStream::connect(bed.addr).await.unwrap();
    let head = format!(
        "POST /v1/notifications HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nIdempotency-Key: k\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{\"class\":",
        bed.key
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(SOON, async {
        while !String::from_utf8_lossy(&answer).contains("request_timeout") {
            let many = stream.read_buf(&mut answer).await.unwrap();
            assert!(many > 0, "{}", String::from_utf8_lossy(&answer));
        }
    });
    read.await.expect("an answer");
    assert!(answer.starts_with(b"HTTP/1.1 408"));
}
