//! Accept over HTTP, durable in SQLite, beside a handler that only parses the same body.

use std::sync::Arc;

use anyhow::Result;

use crate::Plan;
use crate::child::{KEY, Server};
use crate::http_load::{Load, Measured};
use crate::rows::{Better, Report, Row};

const ONE_BY_ONE: usize = 20_000;
const BATCHES: usize = 400;
const PER_BATCH: usize = 100;
/// Nothing but the outbox, so that accept is what is measured; what is accepted is due much later.
const CONFIG: &str = "[http]\nlisten = \"127.0.0.1:0\"\n";

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    let folder = tempfile::tempdir_in(crate::child::target())?;
    let other = Server::parse_only().await?;
    let ours = Server::belfry(folder.path(), CONFIG).await?;
    let mut single = row("accept, one per request ÷ parse only", "accepts/s", 0.30, 0.45);
    let mut p99 = row("accept, one per request: p99 ÷ parse only", "ms", 4.0, 2.0);
    p99.better = Better::Lower;
    let mut batched = row("accept, 100 per request ÷ parse only", "accepts/s", 0.60, 0.90);
    for round in 0..plan.rounds {
        let theirs = singly(&other, round).await?;
        let mine = singly(&ours, round).await?;
        single.rounds.push((mine.rate, theirs.rate));
        p99.rounds.push((mine.p99.as_secs_f64() * 1e3, theirs.p99.as_secs_f64() * 1e3));
        let theirs = in_batches(&other, round).await?;
        let mine = in_batches(&ours, round).await?;
        batched.rounds.push((mine.rate * 100.0, theirs.rate * 100.0));
    }
    report.rows.extend([single, p99, batched]);
    ours.stop().await?;
    other.stop().await
}

pub(crate) fn row(what: &str, unit: &'static str, floor: f64, goal: f64) -> Row {
    Row { what: what.to_owned(), unit, better: Better::Higher, floor, goal, rounds: Vec::new() }
}

async fn singly(server: &Server, round: usize) -> Result<Measured> {
    let make = move |number| request("/v1/notifications", &format!("r{round}/{number}"), &body(number));
    let make = Arc::new(make);
    Load { address: server.address.clone(), requests: ONE_BY_ONE, make, status: "202" }.run().await
}

async fn in_batches(server: &Server, round: usize) -> Result<Measured> {
    let make = move |number: usize| {
        let items: Vec<String> = (0..PER_BATCH)
            .map(|at| {
                let number = number * PER_BATCH + at;
                let rest = body(number);
                format!("{{\"key\":\"b{round}/{number}\",{}", &rest[1..])
            })
            .collect();
        let body = format!("{{\"items\":[{}]}}", items.join(","));
        request("/v1/notifications/batch", &format!("batch{round}/{number}"), &body)
    };
    let make = Arc::new(make);
    Load { address: server.address.clone(), requests: BATCHES, make, status: "200" }.run().await
}

fn request(path: &str, key: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {KEY}\r\nIdempotency-Key: \"{key}\"\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// About 500 bytes, as a shop would send them.
fn body(number: usize) -> String {
    let text = "Your order has left our warehouse and will be with you in two to three working days. ".repeat(3);
    let due = due();
    format!(
        "{{\"class\":\"receipt\",\"to\":{{\"email\":\"customer{number}@example.com\"}},\"channels\":[\"email\"],\
         \"content\":{{\"subject\":\"Your order {number} is on its way\",\"text\":\"{text}\"}},\
         \"reference\":\"order-{number}\",\"send_at\":\"{due}\"}}"
    )
}

/// A month ahead, to the day.
fn due() -> &'static str {
    static DUE: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    DUE.get_or_init(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let days = i64::try_from(now.as_secs() / 86_400 + 30).unwrap_or(0);
        let (year, month, day) = civil(days);
        format!("{year:04}-{month:02}-{day:02}T00:00:00Z")
    })
}

/// Days since 1970-01-01 as a date (Howard Hinnant, "chrono-compatible low-level date algorithms").
const fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}
