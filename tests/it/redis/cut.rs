//! A connection that is cut after the server has run a call and before its answer has come.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use belfry::ports::caps::{Ended, Room, TakeAsk, TakeEnd, Taken};
use belfry::ports::deliveries::Accepted;
use belfry::ports::outbox::OutboxMessages;
use belfry::ports::store_news::Unwatched;
use belfry::store::redis::keys::Names;
use belfry::store::redis::link::Link;
use belfry::store::redis::{Clocks, RedisStore, StoreClock};
use belfry_domain::caps::Fate;
use belfry_domain::{KeyKind, child_key};

use super::Server;
use crate::contract::fixture::{acme, ask, intent};
use crate::contract::harness::{Harness, ManualClock};
use crate::contract::outbox_messages::message;
use crate::contract::recipients::{device, token};

/// Stands before a server, and swallows the next answer together with its connection when it is told to.
struct Wire {
    address: String,
    cut_next: Arc<AtomicBool>,
    /// After so many answers so many more are cut.
    cut_later: Arc<Mutex<(usize, usize)>>,
}

impl Wire {
    fn before(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (to, cut_next) = (server.address(), Arc::new(AtomicBool::new(false)));
        let cut_later = Arc::new(Mutex::new((0, 0)));
        let cut = (cut_next.clone(), cut_later.clone());
        // Ends with the process: it waits for whoever connects.
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(&to) else { return };
                let (near_end, far_end) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                thread::spawn(move || pass(near, far, || false));
                let cut = cut.clone();
                thread::spawn(move || {
                    pass(far_end, near_end, || cut.0.swap(false, Ordering::SeqCst) || is_its_turn(&cut.1))
                });
            }
        });
        Self { address, cut_next, cut_later }
    }

    fn cut_after(&self, answers: usize, cuts: usize) {
        *self.cut_later.lock().unwrap() = (answers, cuts);
    }

    /// Cuts nothing any more. Whether something was.
    fn mend(&self, cuts: usize) -> bool {
        std::mem::take(&mut *self.cut_later.lock().unwrap()).1 < cuts
    }
}

fn is_its_turn(later: &Mutex<(usize, usize)>) -> bool {
    let mut later = later.lock().unwrap();
    match *later {
        (_, 0) => false,
        (0, cuts) => {
            *later = (0, cuts - 1);
            true
        }
        (answers, cuts) => {
            *later = (answers - 1, cuts);
            false
        }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, cut: impl Fn() -> bool) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if cut() || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    for end in [from, to] {
        // Where the other side has closed it already there is nothing to end.
        end.shutdown(Shutdown::Both).ok();
    }
}

/// A store whose next answer can be cut off.
fn over(server: &Server) -> (Harness, Arc<RedisStore>, Wire) {
    let wire = Wire::before(server);
    let clock = ManualClock::new();
    let clocks = Clocks { node: clock.clone(), store: StoreClock::Own(clock.clone()) };
    let link = Link::to(&format!("redis://{}", wire.address)).unwrap();
    let store = RedisStore::new(link, Names::new("belfry".into(), 1), clocks, Arc::new(Unwatched), super::mark());
    (Harness::over(store.clone(), &clock), store, wire)
}

/// Else what was claimed would wait for its lapse, and then go out as what may have been sent already.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_answer_is_cut_is_heard_of_all_the_same() {
    let server = Server::plain();
    let (h, _, wire) = over(&server);
    for key in ["a", "b"] {
        h.create(intent(&h, key)).await;
    }
    wire.cut_next.store(true, Ordering::SeqCst);
    let claims = h.claims(ask(1, 10)).await.claims;
    assert!(!wire.cut_next.load(Ordering::SeqCst), "the answer was cut");
    assert_eq!(claims.len(), 2);
    assert!(claims.iter().all(|claim| claim.token.fence == 1), "{claims:?}");
    assert_eq!(h.store.held(10).await.unwrap().len(), 2);
}

/// Else a caller's only request would be answered as a repeat.
#[tokio::test(flavor = "multi_thread")]
async fn an_accept_whose_answer_is_cut_is_no_repeat_of_itself() {
    let server = Server::plain();
    let (h, _, wire) = over(&server);
    h.create(intent(&h, "before")).await;
    wire.cut_next.store(true, Ordering::SeqCst);
    let new = intent(&h, "new");
    let id = new.notification.id;
    assert!(matches!(h.store.accept(vec![new]).await.unwrap()[..], [Accepted::Created]));
    assert!(!wire.cut_next.load(Ordering::SeqCst), "the answer was cut");
    let repeats = async || h.store.read(&acme(), id).await.unwrap().unwrap().repeats;
    assert_eq!(repeats().await, 0);
    // What somebody else asked for a moment later is one, also where its own answer is cut.
    h.clock.step(1);
    let again = intent(&h, "new");
    wire.cut_next.store(true, Ordering::SeqCst);
    assert!(matches!(h.store.accept(vec![again]).await.unwrap()[..], [Accepted::Repeat(_)]));
    assert!(!wire.cut_next.load(Ordering::SeqCst), "the answer was cut");
}

/// Else a call would have two places, of which one is never given back.
#[tokio::test(flavor = "multi_thread")]
async fn a_take_whose_answer_is_cut_has_one_place() {
    let server = Server::plain();
    let (h, _, wire) = over(&server);
    let room = Room { ledger: child_key(KeyKind::Cap, &[b"cap"]), limit: 2, window: Duration::from_secs(60) };
    let ask = |call: &[u8]| {
        let reservation = child_key(KeyKind::Take, &[call]);
        vec![TakeAsk { rooms: vec![room], reservation, longest: Duration::ZERO }]
    };
    assert_eq!(h.store.take(ask(b"one")).await.unwrap(), [Taken::All]);
    wire.cut_next.store(true, Ordering::SeqCst);
    // The last that there is: its repeat finds the cap full, of itself.
    assert_eq!(h.store.take(ask(b"two")).await.unwrap(), [Taken::All]);
    assert!(!wire.cut_next.load(Ordering::SeqCst), "the answer was cut");
    assert_ne!(h.store.take(ask(b"three")).await.unwrap(), [Taken::All]);
    let end =
        TakeEnd { ledgers: vec![room.ledger], reservation: child_key(KeyKind::Take, &[b"two"]), fate: Fate::GivenBack };
    wire.cut_next.store(true, Ordering::SeqCst);
    assert_eq!(h.store.end(vec![end]).await.unwrap(), [Ended::Done]);
    assert!(!wire.cut_next.load(Ordering::SeqCst), "the answer was cut");
    assert_eq!(h.store.take(ask(b"three")).await.unwrap(), [Taken::All]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_in_the_outbox_whose_answer_is_cut_is_kept_once() {
    let server = Server::plain();
    let (_, store, wire) = over(&server);
    let first = store.add(message("acme", "one"), 100).await.unwrap();
    wire.cut_next.store(true, Ordering::SeqCst);
    let second = store.add(message("acme", "two"), 100).await.unwrap();
    assert!(!wire.cut_next.load(Ordering::SeqCst), "the answer was cut");
    // The same once more, as a provider that is called twice gets it.
    let third = store.add(message("acme", "two"), 100).await.unwrap();
    assert_eq!([second, third], [first + 1, first + 2]);
    let kept: Vec<u64> =
        OutboxMessages::list(&*store, &acme(), None, None, 10).await.unwrap().iter().map(|one| one.seq).collect();
    assert_eq!(kept, [third, second, first]);
}

/// Answers of a registration in which a token moves and another is left: the device as it is, the token that it
/// leaves, the device as it is to be, the token that it takes, the device that had it, that this is gone, and the wait
/// for all of it.
const STEPS: usize = 7;

/// Registers a token that another device has and an earlier one of its own gives way to, with one answer after the
/// other lost; where `cuts` is more than the link tries, the call fails half way, as by a crash.
async fn registered_through(cuts: usize) -> Vec<bool> {
    let server = Server::plain();
    let (h, _, wire) = over(&server);
    let mut failed = Vec::new();
    for answers in 0.. {
        let names = [format!("ann{answers}"), format!("bob{answers}")];
        let named = format!("a{answers}");
        h.register(&names[0], device("phone", &named)).await;
        h.register(&names[1], device("pad", &format!("b{answers}"))).await;
        wire.cut_after(answers, cuts);
        let new = device("pad", &named);
        let done = h.store.register(&acme(), &names[1], &new, h.now()).await;
        if !wire.mend(cuts) {
            assert!(done.is_ok());
            return failed;
        }
        failed.push(done.is_err());
        if done.is_err() {
            // The same once more finishes it.
            h.register(&names[1], new).await;
        }
        let find = async |name: &str| h.store.recipient(&acme(), name).await.unwrap();
        assert_eq!(find(&names[0]).await, None, "after {answers} answers");
        let kept = find(&names[1]).await.unwrap().devices.remove(0);
        let earlier: Vec<_> = kept.earlier.iter().map(|one| one.hash.clone()).collect();
        assert_eq!((kept.token, earlier), (token(&named), vec![format!("hash b{answers}")]));
        // And whoever comes next finds it where it is.
        h.register(&names[0], device("phone", &named)).await;
        assert_eq!(find(&names[1]).await, None);
    }
    failed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_whose_answers_are_cut_one_by_one_is_made_all_the_same() {
    let failed = registered_through(1).await;
    assert!(failed.len() >= STEPS, "every step of it was cut: {failed:?}");
    assert!(failed.iter().all(|failed| !failed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_that_ends_half_way_is_finished_by_the_same_once_more() {
    let failed = registered_through(usize::MAX).await;
    // What the link asks for itself now and then is cut as well, and is nothing of the registration's.
    assert!(failed.iter().filter(|failed| **failed).count() >= STEPS, "{failed:?}");
}
