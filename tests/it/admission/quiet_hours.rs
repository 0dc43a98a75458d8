//! Quiet hours by the clocks of whom a message is for.

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::push::live::Live;

/// Quiet from an hour ago until an hour from now by the clocks of UTC, which are those of whoever says nothing.
struct Bed {
    live: Live,
    ends: Timestamp,
}

fn local(at: Timestamp) -> String {
    at.strftime("%H:%M").to_string()
}

impl Bed {
    fn new() -> Self {
        let now = Timestamp::now();
        let hour = jiff::SignedDuration::from_hours(1);
        let (from, to) = (local(now - hour), local(now + hour));
        let sections = format!(
            "[classes.transactional]\nquiet_hours = {{ from = \"{from}\", to = \"{to}\", zone = \"UTC\" }}\n\
             [classes.transactional.retry]\nbase = \"50ms\"\n"
        );
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let live = Live::start(runtime, &sections, &[]);
        let ends = (now + hour).as_second().div_euclid(60) * 60;
        Self { live, ends: Timestamp::from_second(ends).unwrap() }
    }

    fn send(&self, class: &str, to: &Value) -> String {
        let content = json!({"subject": "Shipped", "text": "Order 42"});
        self.live.send(&format!("{class}/{to}"), &json!({"class": class, "to": to, "content": content}))
    }

    fn goes_out(&self, class: &str, to: &Value) {
        assert_eq!(self.live.ended(&self.send(class, to))["state"], "accepted", "{to}");
    }

    fn waits(&self, to: &Value) {
        let id = self.send("transactional", to);
        let waits = self.live.once(&id, "it waits", |one| one["state"] == "deferred");
        let delivery = &waits["deliveries"][0];
        assert_eq!(delivery["reason"], "Waiting for the end of the recipient's quiet hours.");
        let due: Timestamp = delivery["due_at"].as_str().unwrap().parse().unwrap();
        assert_eq!(due, self.ends, "{to}");
        assert_eq!(delivery["attempts"], 0);
    }
}

#[test]
fn case_80_quiet_hours_are_those_of_the_recipients_own_zone() {
    let bed = Bed::new();
    let email = "ann@example.com";
    bed.waits(&json!({"email": email, "time_zone": "Africa/Abidjan"}));
    bed.waits(&json!({"email": email}));
    for zone in ["Asia/Kolkata", "America/Los_Angeles", "Pacific/Apia"] {
        bed.goes_out("transactional", &json!({"email": email, "time_zone": zone}));
    }
    // A code is for now, whatever the hour.
    bed.goes_out("code", &json!({"email": email, "time_zone": "Africa/Abidjan"}));
}

#[test]
fn case_80_a_stored_zone_counts_as_one_that_the_request_names() {
    let bed = Bed::new();
    for (who, zone) in [("ann", "Africa/Abidjan"), ("bob", "Asia/Kolkata")] {
        bed.live.put(&format!("/v1/recipients/{who}"), &json!({"email": "x@example.com", "time_zone": zone}));
    }
    bed.waits(&json!({"recipient": "ann"}));
    bed.goes_out("transactional", &json!({"recipient": "bob"}));
    // The request's own word is the later one.
    bed.goes_out("transactional", &json!({"recipient": "ann", "time_zone": "Asia/Kolkata"}));
}
