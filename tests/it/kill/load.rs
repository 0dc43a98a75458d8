//! Callers who never give up: each intent is asked for under its own key until it is accepted.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::Client;
use crate::peers::until::pass;

const CALLERS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(50);
/// How long to wait for an answer: where there is nobody else to ask, and where there is.
const ONLY_ONE: Duration = Duration::from_secs(30);
const NEXT_ONE: Duration = Duration::from_secs(3);
const AFTER_REFUSAL: Duration = Duration::from_millis(20);

/// Where the server is at the moment, if it is anywhere.
pub(crate) type Place = Arc<Mutex<Option<SocketAddr>>>;

/// What was accepted: id by intent.
#[derive(Clone, Default)]
pub(crate) struct Ledger {
    accepted: Arc<Mutex<BTreeMap<String, String>>>,
    count: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
    cut: Arc<AtomicUsize>,
}

impl Ledger {
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Answers of 503.
    pub(crate) fn refused(&self) -> usize {
        self.refused.load(Ordering::SeqCst)
    }

    /// Requests that got no answer.
    pub(crate) fn cut(&self) -> usize {
        self.cut.load(Ordering::SeqCst)
    }

    pub(crate) fn accepted(&self) -> BTreeMap<String, String> {
        self.accepted.lock().unwrap().clone()
    }

    fn note(&self, intent: String, id: String) {
        let before = self.accepted.lock().unwrap().insert(intent.clone(), id.clone());
        assert!(before.is_none_or(|before| before == id), "{intent} got two ids");
        self.count.fetch_add(1, Ordering::SeqCst);
    }
}

/// Even intents go at least once, odd ones at most once.
pub(crate) fn at_most_once(number: usize) -> bool {
    number % 2 == 1
}

pub(crate) fn intent(number: usize) -> String {
    format!("intent-{number:05}")
}

pub(crate) fn body(number: usize) -> Value {
    let class = if at_most_once(number) { "marketing" } else { "receipt" };
    json!({
        "class": class,
        "channels": ["email"],
        "reference": intent(number),
        "to": { "email": format!("customer{number}@example.com") },
        "content": { "subject": intent(number), "text": format!("This is the text of {number}.") },
    })
}

/// Asks for every intent in `numbers` until each is accepted, wherever the server is by then.
pub(crate) fn send(place: &Place, ledger: &Ledger, numbers: Range<usize>) {
    send_through(std::slice::from_ref(place), ledger, numbers);
}

/// The same through several nodes in turn, as a balancer does it: the next try goes to the next one.
pub(crate) fn send_through(places: &[Place], ledger: &Ledger, numbers: Range<usize>) {
    let next = AtomicUsize::new(numbers.start);
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (next, end) = (&next, numbers.end);
            scope.spawn(move || {
                let mut caller = Caller::new(places, caller);
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= end {
                        return;
                    }
                    ledger.note(intent(number), caller.ask(ledger, number));
                }
            });
        }
    });
}

/// One caller and its open connections.
struct Caller<'a> {
    places: &'a [Place],
    turn: usize,
    open: HashMap<SocketAddr, Client>,
}

impl<'a> Caller<'a> {
    fn new(places: &'a [Place], turn: usize) -> Self {
        Self { places, turn, open: HashMap::new() }
    }

    /// Asks until the answer is an accept; every other answer than 202 and 503 is a failure.
    fn ask(&mut self, ledger: &Ledger, number: usize) -> String {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(id) = self.ask_once(ledger, number) {
                return id;
            }
        }
        panic!("{} was never accepted", intent(number));
    }

    /// Asks the next node that is up.
    fn ask_once(&mut self, ledger: &Ledger, number: usize) -> Option<String> {
        self.turn += 1;
        let Some(address) = *self.places[self.turn % self.places.len()].lock().unwrap() else {
            thread::yield_now();
            return None;
        };
        // Where there is another node, nobody waits long for one that says nothing.
        let patience = if self.places.len() > 1 { NEXT_ONE } else { ONLY_ONE };
        let mut client = self.open.remove(&address).unwrap_or_else(|| Client::patient(address, patience));
        match client.post("/v1/notifications", &intent(number), &body(number)) {
            Ok(answer) => {
                self.open.insert(address, client);
                if answer.status == 202 {
                    return Some(answer.json()["id"].as_str().expect("an id").to_owned());
                }
                assert_eq!(answer.status, 503, "{answer:?}");
                ledger.refused.fetch_add(1, Ordering::SeqCst);
                pass(AFTER_REFUSAL);
            }
            // Killed meanwhile: whether it was taken is not known, so it is asked again.
            Err(_) => drop(ledger.cut.fetch_add(1, Ordering::SeqCst)),
        }
        None
    }
}

/// Asks for each of `numbers` once and takes no for an answer; whether it was taken may stay unknown.
pub(crate) fn send_once(places: &[Place], ledger: &Ledger, numbers: Range<usize>) {
    let mut caller = Caller::new(places, 0);
    for number in numbers {
        if let Some(id) = caller.ask_once(ledger, number) {
            ledger.note(intent(number), id);
        }
    }
}
