//! Connections that go, stay silent, or are never made.

use belfry_domain::outcome::Why;

use super::*;
use crate::peers::apns_sim::Act;
use crate::peers::apns_sim::tls::SimTls;

fn not_accepted(code: WhyCode) -> Outcome {
    Outcome::NotAccepted { retry_after: None, why: Why::new(code) }
}

fn unknown(code: WhyCode) -> Outcome {
    Outcome::Unknown { retry_after: None, why: Why::new(code) }
}

/// Deadlines that pass within the test: what has to pass is the product's own wait.
fn short(bed: &Bed) -> ApnsConfig {
    let short = Span(Duration::from_millis(400));
    let long = Span::secs(60);
    ApnsConfig { timeouts: ApnsTimeouts { connect: long, answer: short, body: short }, ..bed.config() }
}

#[tokio::test]
async fn a_refused_stream_is_sent_again() {
    let bed = Bed::new().await;
    let channel = bed.channel();
    bed.sim.next(1, &Act::Refuse);
    assert!(is_accepted(&send(&channel, &push_to("a", &token(1))).await));
    bed.sim.next(2, &Act::Refuse);
    assert!(is_accepted(&send(&channel, &push_to("b", &token(1))).await));
    assert_eq!((bed.sim.effects().len(), bed.sim.not_looked_at()), (2, 3));
    bed.sim.next(10, &Act::Refuse);
    assert_eq!(send(&channel, &push_to("c", &token(1))).await, not_accepted(WhyCode::TryLater));
    assert_eq!((bed.sim.effects().len(), bed.sim.not_looked_at()), (2, 6), "three times in all");
}

#[tokio::test]
async fn a_lapsed_claim_sends_nothing_not_even_again() {
    let bed = Bed::new().await;
    let channel = bed.channel();
    let outcome = channel.send(&push_to("a", &token(1)), &lapsed_call()).await;
    assert_eq!(outcome, not_accepted(WhyCode::LeaseLost));
    assert_eq!(bed.sim.requests().len(), 0);
    /// Covers one call.
    struct Once(std::sync::atomic::AtomicBool);
    impl LeaseGate for Once {
        fn covers(&self) -> bool {
            self.0.swap(false, std::sync::atomic::Ordering::SeqCst)
        }
    }
    bed.sim.next(1, &Act::Refuse);
    let call = Call::new(Arc::new(Once(true.into())));
    assert_eq!(channel.send(&push_to("a", &token(1)), &call).await, not_accepted(WhyCode::LeaseLost));
    assert_eq!((bed.sim.requests().len(), bed.sim.not_looked_at()), (0, 1));
}

#[tokio::test]
async fn an_idle_connection_that_was_closed_costs_nothing() {
    let bed = Bed::new().await;
    let channel = bed.channel();
    for round in 0..3 {
        assert!(is_accepted(&send(&channel, &push_to(&round.to_string(), &token(1))).await));
        bed.sim.close_all().await;
    }
    assert_eq!((bed.sim.effects().len(), bed.sim.connections()), (3, 3));
}

#[tokio::test]
async fn a_frozen_connection_is_noticed_and_the_rest_goes_over_another() {
    let bed = Bed::new().await;
    let keepalive = Span(Duration::from_millis(400));
    let channel = bed.channel_of(&ApnsConfig { keepalive, keepalive_wait: keepalive, connections: 1, ..bed.config() });
    assert!(is_accepted(&send(&channel, &push_to("before", &token(1))).await));
    bed.sim.freeze();
    // Open when it is noticed: it may have arrived. No deadline but the question's passes.
    assert_eq!(send(&channel, &push_to("open", &token(2))).await, unknown(WhyCode::CutAfter));
    for number in 3..20 {
        assert!(is_accepted(&send(&channel, &push_to("after", &token(number))).await));
    }
    assert_eq!((bed.sim.effects().len(), bed.sim.connections()), (18, 2));
}

#[tokio::test]
async fn a_connection_that_gave_no_answer_is_asked_before_it_is_used_again() {
    let bed = Bed::new().await;
    let wait = Span(Duration::from_millis(400));
    let channel = bed.channel_of(&ApnsConfig { keepalive_wait: wait, connections: 1, ..short(&bed) });
    assert!(is_accepted(&send(&channel, &push_to("before", &token(1))).await));
    bed.sim.freeze();
    assert_eq!(send(&channel, &push_to("open", &token(2))).await, unknown(WhyCode::TimedOutAfter));
    assert!(is_accepted(&send(&channel, &push_to("after", &token(3))).await), "not lost on the same dead connection");
    assert_eq!(bed.sim.connections(), 2);
}

#[tokio::test]
async fn silence_after_a_request_is_unknown_and_the_connection_stays() {
    let bed = Bed::new().await;
    let channel = bed.channel_of(&short(&bed));
    bed.sim.next(1, &Act::Silence);
    assert_eq!(send(&channel, &push_to("a", &token(1))).await, unknown(WhyCode::TimedOutAfter));
    assert!(is_accepted(&send(&channel, &push_to("b", &token(1))).await));
    assert_eq!((bed.sim.effects().len(), bed.sim.connections()), (2, 1));
}

#[tokio::test]
async fn a_body_that_does_not_end_costs_its_own_deadline_and_its_own_bound() {
    let bed = Bed::new().await;
    let stalled = bed.channel_of(&short(&bed));
    let endless = bed.channel();
    let gone = Outcome::RecipientGone { since: None, why: Why::said(WhyCode::NoSuchRecipient, "410") };
    let odd = Outcome::NotAccepted { retry_after: None, why: Why::said(WhyCode::Unrecognised, "403") };
    for (status, expected) in [(410, &gone), (403, &odd)] {
        bed.sim.next(1, &Act::StalledBody(status));
        assert_eq!(send(&stalled, &push_to("a", &token(1))).await, *expected);
        bed.sim.next(1, &Act::EndlessBody(status));
        assert_eq!(send(&endless, &push_to("a", &token(1))).await, *expected);
    }
    for act in [Act::StalledBody(200), Act::EndlessBody(200)] {
        bed.sim.next(1, &act);
        assert!(is_accepted(&send(&stalled, &push_to("b", &token(1))).await), "the status was heard");
    }
}

#[tokio::test]
async fn what_breaks_off_after_the_request_is_unknown_and_not_sent_again() {
    let bed = Bed::new().await;
    let channel = bed.channel();
    for act in [Act::Reset, Act::Cut] {
        bed.sim.next(1, &act);
        assert_eq!(send(&channel, &push_to("a", &token(1))).await, unknown(WhyCode::CutAfter), "{act:?}");
    }
    assert_eq!(bed.sim.effects().len(), 2);
    assert!(is_accepted(&send(&channel, &push_to("b", &token(1))).await));
}

#[tokio::test]
async fn nobody_there_and_nobody_trusted_is_not_accepted() {
    let bed = Bed::new().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = format!("https://{}", listener.local_addr().unwrap());
    drop(listener);
    let channel = bed.channel_of(&ApnsConfig { url: Some(closed), ..bed.config() });
    let many = (0..50).map(|number| push_to("a", &token(number))).collect::<Vec<_>>();
    for outcome in futures::future::join_all(many.iter().map(|out| send(&channel, out))).await {
        assert_eq!(outcome, not_accepted(WhyCode::Unreachable));
    }
    let channel = bed.channel_of(&ApnsConfig { ca: Some(SimTls::new().ca_pem), ..bed.config() });
    assert_eq!(send(&channel, &push_to("a", &token(1))).await, not_accepted(WhyCode::TlsFailed));
    assert_eq!(bed.sim.requests().len(), 0);
}

#[tokio::test]
async fn a_server_that_does_not_finish_the_handshake_is_given_up() {
    let bed = Bed::new().await;
    // Accepts by the kernel's hand, and says nothing.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = Some(format!("https://{}", listener.local_addr().unwrap()));
    let timeouts = ApnsTimeouts { connect: Span(Duration::from_millis(100)), ..bed.config().timeouts };
    let channel = bed.channel_of(&ApnsConfig { url, timeouts, ..bed.config() });
    assert_eq!(send(&channel, &push_to("a", &token(1))).await, not_accepted(WhyCode::TimedOutBefore));
}

#[tokio::test]
async fn more_calls_than_streams_wait_their_turn() {
    let bed = Bed::with(|options| Options { streams: 3, ..options }).await;
    let channel = bed.channel();
    let outs: Vec<Outgoing> = (0..100).map(|number| push_to("a", &token(number))).collect();
    let outcomes = futures::future::join_all(outs.iter().map(|out| send(&channel, out))).await;
    assert!(outcomes.iter().all(is_accepted));
    assert_eq!((bed.sim.effects().len(), bed.sim.connections()), (100, 2));
}

#[tokio::test]
async fn a_call_that_finds_no_free_stream_was_not_sent() {
    let bed = Bed::with(|options| Options { streams: 0, ..options }).await;
    let channel = bed.channel_of(&short(&bed));
    assert_eq!(send(&channel, &push_to("a", &token(1))).await, not_accepted(WhyCode::TimedOutBefore));
    assert_eq!(bed.sim.requests().len(), 0);
}

#[tokio::test]
async fn calls_use_as_many_connections_as_they_need_and_no_more() {
    let bed = Bed::new().await;
    let channel = bed.channel_of(&ApnsConfig { connections: 3, streams: 2, ..bed.config() });
    for number in 0..4 {
        assert!(is_accepted(&send(&channel, &push_to("one by one", &token(number))).await));
    }
    assert_eq!(bed.sim.connections(), 1);
    bed.sim.next(6, &Act::AnswerOnRelease);
    let outs: Vec<Outgoing> = (0..7).map(|number| push_to("at once", &token(number))).collect();
    let all = futures::future::join_all(outs.iter().map(|out| send(&channel, out)));
    let released = async {
        bed.sim.wait_for(4 + 6).await;
        assert_eq!(bed.sim.connections(), 3);
        for _ in 0..6 {
            bed.sim.release();
            // One at a time: a second word to nobody in between would be lost.
            tokio::task::yield_now().await;
        }
    };
    let (outcomes, ()) = futures::future::join(all, released).await;
    assert!(outcomes.iter().all(is_accepted), "the seventh had its turn when another was done");
    assert_eq!(bed.sim.connections(), 3);
}

#[tokio::test]
async fn a_stream_that_gives_up_makes_room_for_the_next() {
    let bed = Bed::new().await;
    let channel = bed.channel_of(&ApnsConfig { connections: 1, streams: 1, ..short(&bed) });
    bed.sim.next(1, &Act::Silence);
    let (first, second) = (push_to("a", &token(1)), push_to("b", &token(2)));
    let outcomes = futures::future::join(send(&channel, &first), async {
        bed.sim.wait_for(1).await;
        send(&channel, &second).await
    });
    let (first, second) = outcomes.await;
    assert_eq!(first, unknown(WhyCode::TimedOutAfter));
    assert!(is_accepted(&second));
}

#[tokio::test]
async fn a_server_without_http_2_is_no_apns() {
    let bed = Bed::new().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Some(format!("https://{}", listener.local_addr().unwrap()));
    let mut tls = rustls::ServerConfig::clone(&bed.sim.tls().server(false));
    tls.alpn_protocols.clear();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
    let accepting = async {
        let (stream, _) = listener.accept().await.unwrap();
        acceptor.accept(stream).await.unwrap()
    };
    let channel = bed.channel_of(&ApnsConfig { url, ..bed.config() });
    let (_held, problem) = futures::future::join(accepting, channel.check()).await;
    let said = "no secure connection to the provider could be made: the other side does not offer HTTP/2";
    assert_eq!(problem.unwrap_err().to_string(), said);
}

#[tokio::test]
async fn a_simulator_that_looks_at_nothing_counts() {
    let bed = Bed::with(|options| Options { fast: true, ..options }).await;
    let channel = bed.channel();
    let outs: Vec<Outgoing> = (0..500).map(|number| push_to("a", &token(number))).collect();
    let outcomes = futures::future::join_all(outs.iter().map(|out| send(&channel, out))).await;
    assert!(outcomes.iter().all(is_accepted));
    assert_eq!((bed.sim.taken(), bed.sim.requests().len()), (500, 0));
}

#[tokio::test]
async fn a_call_broken_off_leaves_nothing_behind() {
    let bed = Bed::new().await;
    let channel = bed.channel_of(&ApnsConfig { connections: 1, streams: 1, ..bed.config() });
    bed.sim.next(1, &Act::AnswerOnRelease);
    let out = push_to("a", &token(1));
    tokio::select! {
        _ = send(&channel, &out) => panic!("it was not released"),
        () = bed.sim.wait_for(1) => {}
    }
    assert!(is_accepted(&send(&channel, &push_to("b", &token(2))).await), "the stream came free");
    assert_eq!(bed.sim.connections(), 1);
}
