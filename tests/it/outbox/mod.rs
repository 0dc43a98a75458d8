//! The outbox provider over its ports: what is kept, what is answered, what is heard later.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use belfry::channel::outbox::{MAGIC_PHONES, OutboxChannel, Simulated, TEMPORARY_FAILURES};
use belfry::ports::StoreError;
use belfry::ports::channel::{Call, Channel, LeaseGate, Receipt};
use belfry::ports::clock::{Boot, Clock};
use belfry::ports::deliveries::Owner;
use belfry::ports::message::{Address, Outgoing, Rendered};
use belfry::ports::outbox::{Misbehaviour, OutboxMessage, OutboxMessages};
use belfry_domain::outcome::OutcomeKind;
use belfry_domain::timeline::ReceiptKind;
use belfry_domain::{ChannelKind, DeliveryId, KeyKind, NotificationId, Outcome, UnixMs, WhyCode, child_key};
use tokio::sync::{mpsc, watch};

/// Messages in memory, with the port's rules; away on request.
#[derive(Default)]
struct Memory {
    messages: Mutex<Vec<OutboxMessage>>,
    away: AtomicBool,
    says_kept: bool,
}

impl Memory {
    fn reach(&self) -> Result<(), StoreError> {
        if self.away.load(Ordering::SeqCst) { Err(StoreError::Unavailable("away".to_owned())) } else { Ok(()) }
    }
}

fn is_of(message: &OutboxMessage, owner: &Owner, to: Option<&str>) -> bool {
    message.tenant == owner.tenant
        && message.environment == owner.environment
        && to.is_none_or(|to| to.eq_ignore_ascii_case(&message.to))
}

#[async_trait]
impl OutboxMessages for Memory {
    async fn add(&self, message: OutboxMessage, keep: u32) -> Result<u64, StoreError> {
        self.reach()?;
        let mut messages = self.messages.lock().unwrap();
        let seq = messages.last().map_or(1, |last| last.seq + 1);
        messages.push(OutboxMessage { seq, ..message });
        if messages.len() > keep as usize {
            messages.remove(0);
        }
        if self.says_kept {
            println!("kept {seq}");
        }
        Ok(seq)
    }

    async fn list(
        &self,
        owner: &Owner,
        to: Option<&str>,
        after: Option<u64>,
        limit: u16,
    ) -> Result<Vec<OutboxMessage>, StoreError> {
        self.reach()?;
        let messages = self.messages.lock().unwrap();
        let found = messages.iter().rev().filter(|one| is_of(one, owner, to) && after.is_none_or(|seq| one.seq > seq));
        Ok(found.take(limit.into()).cloned().collect())
    }

    async fn clear(&self, owner: &Owner, to: Option<&str>) -> Result<u64, StoreError> {
        self.reach()?;
        let mut messages = self.messages.lock().unwrap();
        let before = messages.len();
        messages.retain(|message| !is_of(message, owner, to));
        Ok((before - messages.len()) as u64)
    }
}

/// A clock that the test moves.
struct Hand(watch::Sender<Boot>);

#[async_trait]
impl Clock for Hand {
    fn now(&self) -> UnixMs {
        UnixMs(1_000)
    }
    fn boot(&self) -> Boot {
        *self.0.borrow()
    }
    async fn sleep_until(&self, until: Boot) {
        self.0.subscribe().wait_for(|now| *now >= until).await.unwrap();
    }
}

struct Lease(bool);

impl LeaseGate for Lease {
    fn covers(&self) -> bool {
        self.0
    }
}

fn call() -> Call {
    Call::new(Arc::new(Lease(true)))
}

struct Bench {
    messages: Arc<Memory>,
    clock: Arc<Hand>,
    channel: Arc<OutboxChannel>,
    receipts: mpsc::Receiver<Receipt>,
}

fn bench() -> Bench {
    let messages = Arc::new(Memory::default());
    let clock = Arc::new(Hand(watch::channel(Duration::from_secs(100)).0));
    let (told, receipts) = mpsc::channel(2);
    let channel = OutboxChannel::new(messages.clone(), clock.clone(), told, 50);
    Bench { messages, clock, channel, receipts }
}

impl Bench {
    async fn send(&self, out: &Outgoing) -> Outcome {
        self.channel.send(out, &call()).await
    }
    fn kept(&self) -> Vec<OutboxMessage> {
        self.messages.messages.lock().unwrap().clone()
    }
}

fn outgoing(intent: &str, address: &str) -> Outgoing {
    let notification = NotificationId(child_key(KeyKind::Http, &[intent.as_bytes()]));
    let delivery = DeliveryId(child_key(KeyKind::Delivery, &[intent.as_bytes()]));
    Outgoing {
        channel: ChannelKind::Email,
        tenant: "t".to_owned(),
        environment: "test".to_owned(),
        notification,
        delivery,
        send: 1,
        send_key: delivery.send_key(1),
        message_key: notification.message_key(1),
        created_at: UnixMs(1),
        expires_at: UnixMs(i64::MAX),
        address: Address(address.to_owned()),
        message: Rendered::Sms { text: "hello".to_owned() },
        collapse: None,
        seen_token: None,
    }
}

#[tokio::test]
async fn a_message_is_kept_whole_and_accepted() {
    let mut bench = bench();
    let out = outgoing("one", "ann@example.com");
    let outcome = bench.send(&out).await;
    assert!(matches!(outcome, Outcome::Accepted { provider_ref: Some(found), .. } if found == "outbox-1"));
    let [kept] = &bench.kept()[..] else { panic!() };
    assert_eq!((kept.seq, kept.at, kept.to.as_str()), (1, UnixMs(1_000), "ann@example.com"));
    assert_eq!(
        (kept.notification, kept.delivery, kept.send_key.as_str()),
        (out.notification, out.delivery, &*out.send_key.to_string())
    );
    assert!(kept.message == out.message);
    assert!(bench.receipts.try_recv().is_err());
}

#[tokio::test]
async fn receipts_follow_where_the_address_asks_for_them() {
    let mut bench = bench();
    for (intent, address, kind) in [
        ("d", "ann+sim-delivered@example.com", ReceiptKind::Delivered),
        ("b", "ann+sim-bounced@example.com", ReceiptKind::Bounced),
        ("p", "+12025550102", ReceiptKind::Bounced),
        ("t", "sim-delivered-token", ReceiptKind::Delivered),
    ] {
        let out = outgoing(intent, address);
        assert_eq!(bench.send(&out).await.kind(), OutcomeKind::Accepted);
        assert_eq!(bench.receipts.try_recv().unwrap(), Receipt { delivery: out.delivery, kind });
    }
    assert_eq!((bench.kept().len(), MAGIC_PHONES.len()), (4, Simulated::NAMED.len()));
    // They come at once or never: nothing is left open for them.
    assert!(!bench.channel.receipts());
}

#[tokio::test]
async fn a_full_line_of_receipts_holds_the_call_back_before_anything_is_kept() {
    let mut bench = bench();
    for intent in ["1", "2"] {
        bench.send(&outgoing(intent, "sim-delivered")).await;
    }
    let third = outgoing("3", "sim-delivered");
    let call = call();
    let mut held = Box::pin(bench.channel.send(&third, &call));
    assert!(futures::poll!(&mut held).is_pending());
    assert_eq!((bench.kept().len(), call.committed()), (2, false));
    bench.receipts.recv().await.unwrap();
    assert_eq!(held.await.kind(), OutcomeKind::Accepted);
    assert_eq!(bench.kept().len(), 3);
    bench.receipts.close();
    assert_eq!(bench.send(&outgoing("4", "sim-delivered")).await.kind(), OutcomeKind::Accepted);
}

#[tokio::test]
async fn a_temporary_failure_passes_per_send() {
    let bench = bench();
    for intent in ["a", "b"] {
        let out = outgoing(intent, "ann+sim-temporary@example.com");
        for _ in 0..TEMPORARY_FAILURES {
            let outcome = bench.send(&out).await;
            assert_eq!((outcome.kind(), outcome.why().code), (OutcomeKind::NotAccepted, WhyCode::TryLater));
        }
        assert_eq!(bench.send(&out).await.kind(), OutcomeKind::Accepted);
        assert_eq!(bench.send(&out).await.kind(), OutcomeKind::Accepted);
    }
    assert_eq!(bench.kept().len(), 4);
}

#[tokio::test]
async fn a_permanent_failure_and_a_slip_are_refused() {
    let bench = bench();
    for (address, kind, says) in [
        ("ann+sim-permanent@example.com", OutcomeKind::Refused, "sim-permanent"),
        ("+12025550104", OutcomeKind::Refused, "sim-permanent"),
        ("ann+sim-gone@example.com", OutcomeKind::RecipientGone, "sim-gone"),
        ("+12025550107", OutcomeKind::RecipientGone, "sim-gone"),
        ("ann+sim-permanant@example.com", OutcomeKind::Refused, "there are sim-delivered, sim-bounced, "),
    ] {
        let outcome = bench.send(&outgoing("p", address)).await;
        assert_eq!(outcome.kind(), kind, "{address}");
        let answer = outcome.why().answer.clone().unwrap();
        assert!(answer.contains(says) && answer.chars().count() <= 200, "{answer}");
        assert!(!answer.contains("ann+") && !answer.contains("permanant"), "{answer}");
    }
    assert!(bench.kept().is_empty());
}

#[tokio::test]
async fn a_slow_message_is_kept_at_once_and_answered_late() {
    let bench = bench();
    let out = outgoing("s", "ann+sim-slow@example.com");
    let call = call();
    let mut slow = Box::pin(bench.channel.send(&out, &call));
    assert!(futures::poll!(&mut slow).is_pending());
    assert_eq!((bench.kept().len(), call.committed()), (1, true));
    bench.clock.0.send_replace(Duration::from_millis(104_999));
    assert!(futures::poll!(&mut slow).is_pending());
    bench.clock.0.send_replace(Duration::from_secs(105));
    assert_eq!(slow.await.kind(), OutcomeKind::Accepted);
}

#[tokio::test]
async fn an_answer_is_lost_once_per_send_also_over_a_restart() {
    let bench = bench();
    let out = outgoing("u", "ann+sim-unknown@example.com");
    let first = bench.send(&out).await;
    assert_eq!((first.kind(), first.why().code), (OutcomeKind::Unknown, WhyCode::TimedOutAfter));
    let restarted = OutboxChannel::new(bench.messages.clone(), bench.clock.clone(), mpsc::channel(1).0, 50);
    assert_eq!(restarted.send(&out, &call()).await.kind(), OutcomeKind::Accepted);
    let copies = bench.kept();
    assert_eq!((copies.len(), copies[0].send_key == copies[1].send_key), (2, true));
    let again = Outgoing { send: 2, send_key: out.delivery.send_key(2), ..out };
    assert_eq!(bench.send(&again).await.kind(), OutcomeKind::Unknown);
}

#[tokio::test]
async fn no_call_is_made_without_a_lease() {
    let bench = bench();
    for address in ["ann@example.com", "ann+sim-unknown@example.com", "ann+sim-slow@example.com", "sim-delivered"] {
        let call = Call::new(Arc::new(Lease(false)));
        let outcome = bench.channel.send(&outgoing("l", address), &call).await;
        assert_eq!((outcome.kind(), outcome.why().code), (OutcomeKind::NotAccepted, WhyCode::LeaseLost), "{address}");
        assert!(!call.committed());
    }
    assert!(bench.kept().is_empty());
}

#[tokio::test]
async fn a_store_that_does_not_answer_leaves_it_open() {
    let bench = bench();
    bench.messages.away.store(true, Ordering::SeqCst);
    assert_eq!(bench.send(&outgoing("a", "ann@example.com")).await.kind(), OutcomeKind::Unknown);
    // Here nothing was committed: the look for an earlier copy came first.
    assert_eq!(bench.send(&outgoing("u", "sim-unknown")).await.kind(), OutcomeKind::NotAccepted);
}

#[tokio::test]
async fn switches_are_counted_down() {
    let bench = bench();
    bench.channel.misbehave().arm(Misbehaviour::FailNext, 2);
    bench.channel.misbehave().arm(Misbehaviour::TimeOutAfterAccept, 1);
    let out = outgoing("m", "ann@example.com");
    let mut kinds = Vec::new();
    for _ in 0..4 {
        kinds.push((bench.send(&out).await.kind(), bench.kept().len()));
    }
    let expected = [
        (OutcomeKind::NotAccepted, 0),
        (OutcomeKind::NotAccepted, 0),
        (OutcomeKind::Unknown, 1),
        (OutcomeKind::Accepted, 2),
    ];
    assert_eq!(kinds, expected);
}

#[tokio::test]
async fn the_oldest_message_goes_first() {
    let bench = bench();
    for n in 0..60 {
        bench.send(&outgoing(&n.to_string(), "ann@example.com")).await;
    }
    let seqs: Vec<u64> = bench.kept().iter().map(|kept| kept.seq).collect();
    assert_eq!(seqs, (11..=60).collect::<Vec<_>>());
}

/// The other half of the next test: run by it in a process of its own.
#[tokio::test]
#[ignore = "aborts its process; the next test runs it in one of its own"]
async fn worker_that_is_told_to_crash() {
    let messages = Arc::new(Memory { says_kept: true, ..Memory::default() });
    let clock = Arc::new(Hand(watch::channel(Duration::ZERO).0));
    let channel = OutboxChannel::new(messages, clock, mpsc::channel(1).0, 50);
    channel.misbehave().arm(Misbehaviour::CrashMidSend, 1);
    let outcome = channel.send(&outgoing("c", "ann@example.com"), &call()).await;
    println!("went on with {outcome:?}");
}

#[test]
fn a_crash_comes_after_the_message_is_kept_and_before_anything_else() {
    let worker = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "outbox::worker_that_is_told_to_crash", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&worker.stdout);
    assert_eq!(worker.status.signal(), Some(6), "{said}");
    assert!(said.contains("kept 1") && !said.contains("went on"), "{said}");
}
