//! Callers who never give up: each intent is asked for under its own key until it is accepted.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::Client;

const CALLERS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(50);

/// Where the server is at the moment, if it is anywhere.
pub(super) type Place = Arc<Mutex<Option<SocketAddr>>>;

/// What was accepted: id by intent.
#[derive(Clone, Default)]
pub(super) struct Ledger {
    accepted: Arc<Mutex<BTreeMap<String, String>>>,
    count: Arc<AtomicUsize>,
}

impl Ledger {
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    pub(super) fn accepted(&self) -> BTreeMap<String, String> {
        self.accepted.lock().unwrap().clone()
    }

    fn note(&self, intent: String, id: String) {
        let before = self.accepted.lock().unwrap().insert(intent.clone(), id.clone());
        assert!(before.is_none_or(|before| before == id), "{intent} got two ids");
        self.count.fetch_add(1, Ordering::SeqCst);
    }
}

/// Even intents go at least once, odd ones at most once.
pub(super) fn at_most_once(number: usize) -> bool {
    number % 2 == 1
}

pub(super) fn intent(number: usize) -> String {
    format!("intent-{number:05}")
}

pub(super) fn body(number: usize) -> Value {
    let class = if at_most_once(number) { "marketing" } else { "receipt" };
    json!({
        "class": class,
        "channels": ["email"],
        "to": { "email": format!("customer{number}@example.com") },
        "content": { "subject": intent(number), "text": format!("This is the text of {number}.") },
    })
}

/// Asks for every intent in `numbers` until each is accepted, wherever the server is by then.
pub(super) fn send(place: &Place, ledger: &Ledger, numbers: Range<usize>) {
    let next = AtomicUsize::new(numbers.start);
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                let mut client = None;
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= numbers.end {
                        return;
                    }
                    ledger.note(intent(number), ask(place, &mut client, number));
                }
            });
        }
    });
}

/// Asks until the answer is an accept; every other answer than 202 and 503 is a failure.
fn ask(place: &Place, client: &mut Option<(SocketAddr, Client)>, number: usize) -> String {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let Some(address) = *place.lock().unwrap() else {
            thread::yield_now();
            continue;
        };
        let (_, caller) = match client.take().filter(|(before, _)| *before == address) {
            Some(same) => client.insert(same),
            None => client.insert((address, Client::new(address))),
        };
        match caller.post("/v1/notifications", &intent(number), &body(number)) {
            Ok(answer) if answer.status == 202 => {
                return answer.json()["id"].as_str().expect("an id").to_owned();
            }
            Ok(answer) => assert_eq!(answer.status, 503, "{answer:?}"),
            // Killed meanwhile: whether it was taken is not known, so it is asked again.
            Err(_) => *client = None,
        }
    }
    panic!("{} was never accepted", intent(number));
}
