//! SIGTERM: with calls open, under load, twice, and with a kill in the middle of it.

use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::load::{self, Ledger, Place};
use super::reconcile::reconcile;
use super::server::{KEY, Site};
use super::sink::{Phase, Sink};
use crate::peers::until::until;

const LONG: Duration = Duration::from_secs(30);
const SHORT_GRACE: &str = "[engine]\nshutdown_grace = \"500ms\"\n";
const LONG_GRACE: &str = "[engine]\nshutdown_grace = \"25s\"\n";

fn place() -> Place {
    Arc::new(Mutex::new(None))
}

/// 20 restarts under load: what was acknowledged is there, and nothing went out twice.
#[test]
fn case_10_restarts_under_load_lose_and_double_nothing() {
    const ROUNDS: usize = 20;
    const PER_ROUND: usize = 50;
    let sink = Sink::start();
    let site = Site::new(sink.address, LONG_GRACE);
    let (place, ledger) = (place(), Ledger::default());
    let (callers, goes_on) = (ledger.clone(), place.clone());
    let load = thread::spawn(move || load::send(&goes_on, &callers, 0..ROUNDS * PER_ROUND));
    for round in 0..ROUNDS {
        let mut server = site.start();
        *place.lock().unwrap() = Some(server.address);
        until("some are accepted", LONG, || (ledger.count() >= round * PER_ROUND + PER_ROUND / 2).then_some(()));
        *place.lock().unwrap() = None;
        server.signal(Signal::TERM);
        assert_eq!(server.ended(LONG).code(), Some(0), "{}", site.log());
    }
    let server = site.start();
    *place.lock().unwrap() = Some(server.address);
    load.join().unwrap();
    let tally = reconcile(&mut server.client(), &ledger, &sink, ROUNDS * PER_ROUND);
    assert_eq!(tally.extra, 0, "a graceful stop doubles nothing: {tally:?}");
    assert_eq!(tally.accepted, ROUNDS * PER_ROUND, "{tally:?}");
}

/// Calls that are still open when the grace is over are recorded as unknown before it ends.
#[test]
fn case_10_open_calls_settle_unknown_when_the_grace_is_over() {
    let sink = Sink::start();
    let site = Site::new(sink.address, SHORT_GRACE);
    let (place, ledger) = (place(), Ledger::default());
    sink.hold(Phase::FinalDot);
    let mut server = site.start();
    *place.lock().unwrap() = Some(server.address);
    load::send(&place, &ledger, 0..2);
    until("both calls are under way", LONG, || (sink.total() == 2).then_some(()));
    server.signal(Signal::TERM);
    assert_eq!(server.ended(Duration::from_secs(10)).code(), Some(0), "{}", site.log());
    sink.let_go();
    let server = site.start();
    let tally = reconcile(&mut server.client(), &ledger, &sink, 2);
    // The at-most-once one stays unknown; the other was sent again, and its record says why.
    assert_eq!((tally.unknown, tally.accepted, tally.extra), (1, 1, 1));
}

#[test]
fn case_10_a_second_sigterm_ends_it_at_once() {
    let sink = Sink::start();
    let site = Site::new(sink.address, LONG_GRACE);
    let (place, ledger) = (place(), Ledger::default());
    sink.hold(Phase::FinalDot);
    let mut server = site.start();
    *place.lock().unwrap() = Some(server.address);
    load::send(&place, &ledger, 0..2);
    until("both calls are under way", LONG, || (sink.total() == 2).then_some(()));
    server.signal(Signal::TERM);
    until("it drains", LONG, || server.client().get("/readyz").map_or(true, |it| it.status == 503).then_some(()));
    assert!(server.running(), "calls are open, so it waits for them");
    server.signal(Signal::TERM);
    // Far below the grace of 25 s.
    server.ended(Duration::from_secs(5));
    sink.let_go();
    let server = site.start();
    reconcile(&mut server.client(), &ledger, &sink, 2);
}

/// SIGKILL at many points of a graceful stop.
#[test]
fn case_40_a_kill_in_the_middle_of_a_graceful_stop_loses_nothing() {
    const ROUNDS: usize = 12;
    const PER_ROUND: usize = 30;
    let sink = Sink::start();
    let site = Site::new(sink.address, LONG_GRACE);
    let (place, ledger) = (place(), Ledger::default());
    for round in 0..ROUNDS {
        let server = site.start();
        *place.lock().unwrap() = Some(server.address);
        load::send(&place, &ledger, round * PER_ROUND..(round + 1) * PER_ROUND);
        let sent = sink.total();
        server.signal(Signal::TERM);
        // The stop goes on while its open calls end; the kill comes after more and more of them.
        let mut server = server;
        until("so many calls ended", LONG, || (sink.total() >= sent + round || !server.running()).then_some(()));
        if server.running() {
            server.kill();
        }
    }
    let server = site.start();
    reconcile(&mut server.client(), &ledger, &sink, ROUNDS * PER_ROUND);
}

/// A client that keeps its connection and one that waits for news do not hold up the end.
#[test]
fn case_74_open_connections_do_not_hold_up_the_end() {
    let sink = Sink::start();
    let site = Site::new(sink.address, LONG_GRACE);
    let (place, ledger) = (place(), Ledger::default());
    let mut server = site.start();
    *place.lock().unwrap() = Some(server.address);
    load::send(&place, &ledger, 0..10);
    let mut kept = server.client();
    assert_eq!(kept.get("/livez").unwrap().status, 200);
    let mut waits = TcpStream::connect(server.address).unwrap();
    let request = format!("GET /v1/outbox?wait=30 HTTP/1.1\r\nHost: kill\r\nAuthorization: Bearer {KEY}\r\n\r\n");
    waits.write_all(request.as_bytes()).unwrap();
    let mut half = TcpStream::connect(server.address).unwrap();
    half.write_all(b"POST /v1/notifications HTTP/1.1\r\nHost: kill\r\nContent-Len").unwrap();
    server.signal(Signal::TERM);
    assert_eq!(server.ended(Duration::from_secs(10)).code(), Some(0), "{}", site.log());
    let server = site.start();
    reconcile(&mut server.client(), &ledger, &sink, 10);
}
