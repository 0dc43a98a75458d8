//! Several push services behind one provider: what one of them does costs the others' messages nothing.

use serde_json::json;
use tokio::runtime::Builder;

use crate::peers::until::until;
use crate::peers::web_push_sim::{Act, PushService, Speaks};
use crate::push::bed::{PATIENCE, now_ms, to};
use crate::push::live::Live;

struct Two {
    live: Live,
    silent: PushService,
    other: PushService,
    made_up: Vec<PushService>,
    key: String,
}

impl Two {
    /// Six calls at once, of which each service may have three, and one of those is kept for what is urgent.
    /// `answer`: how long a service may take.
    fn new(answer: &str) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let start = || runtime.block_on(PushService::start(Speaks::Http2, now_ms()));
        let (silent, other) = (start(), start());
        let made_up: Vec<PushService> = (0..8).map(|_| start()).collect();
        let vapid = belfry::channel::web_push::vapid::generate();
        let pem = secrecy::ExposeSecret::expose_secret(&vapid.pem).to_owned();
        let key = belfry::channel::web_push::vapid::public_of(&pem).unwrap();
        let authorities: String = [&silent, &other].into_iter().chain(&made_up).map(|one| one.ca.as_str()).collect();
        let files = [("vapid.pem", pem.as_str()), ("web.pem", &authorities)];
        // The first line is the engine's.
        let sections = format!(
            "shutdown_grace = \"10ms\"\n[channels.web_push]\nproviders = [\"web\"]\n\
             [classes.transactional.retry]\nbase = \"10ms\"\ncap = \"20ms\"\n\
             [providers.web]\nkind = \"web_push\"\nvapid_key_file = \"{{dir}}/vapid.pem\"\nsubject = \"mailto:a@b.example\"\n\
             ca_file = \"{{dir}}/web.pem\"\nallow_internal = true\nconnections = 1\nstreams = 3\n\
             timeouts = {{ answer = \"{answer}\" }}\n"
        );
        Self { live: Live::start(runtime, &sections, &files), silent, other, made_up, key }
    }

    fn push(&self, key: &str, service: &PushService) -> String {
        let subscription: serde_json::Value = serde_json::from_str(&service.subscribe(&self.key)).unwrap();
        let device = json!([{"kind": "web_push", "subscription": subscription}]);
        self.live.send(key, &to(&json!({ "devices": device })))
    }

    fn circuits(&self) -> Vec<String> {
        let ready = self.live.get("/readyz?verbose");
        assert_eq!(ready["ready"], true);
        let checks = ready["checks"].as_array().unwrap().clone();
        let open = checks.iter().filter(|check| check["name"] == "circuit" && check["ok"] == false);
        open.map(|check| check["detail"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn a_silent_service_holds_no_more_than_its_share_of_the_calls() {
    // No call ends by itself while the test looks.
    let two = Two::new("10m");
    // It has answered before: one that never has shares a quarter of the calls with all of its kind.
    let proof = two.push("proof", &two.other);
    assert_eq!(two.live.ended(&proof)["state"], "accepted");
    let stuck: Vec<String> = (0..30)
        .map(|number| {
            two.silent.next(Act::Stall);
            two.push(&format!("silent-{number}"), &two.silent)
        })
        .collect();
    until("the silent one has what it may have", PATIENCE, || (two.silent.requests() == 2).then_some(()));
    for number in 0..6 {
        let id = two.push(&format!("other-{number}"), &two.other);
        assert_eq!(two.live.ended(&id)["state"], "accepted");
    }
    assert_eq!(two.silent.requests(), 2);
    // What waits holds no claim, and says what it waits for.
    let waits = two.live.once(&stuck[29], "it waits", |one| one["state"] == "deferred");
    let reason = waits["deliveries"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("Waiting because the provider is out of order"), "{reason}");
    assert_eq!(waits["deliveries"][0]["attempts"], 0);
}

#[test]
fn a_service_that_never_answers_opens_its_own_circuit_and_no_other() {
    let two = Two::new("500ms");
    // Two calls at a time: the fifth in a row ends before any other is answered.
    let ids: Vec<String> = (0..6)
        .map(|number| {
            two.silent.next(Act::Stall);
            two.push(&format!("silent-{number}"), &two.silent)
        })
        .collect();
    until("its circuit is open", PATIENCE, || {
        let open = "belfry_service_circuits_open{provider=\"web\",service=\"another push service\"} 1";
        two.live.metrics().contains(open).then_some(())
    });
    let told = two.circuits();
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("web to another push service: messages wait since 20"), "{told:?}");
    assert!(told[0].ends_with(": calls are taken and never answered (timed_out_after)"), "{told:?}");
    assert!(!told[0].contains("127.0.0.1"));
    assert!(!two.live.metrics().contains("belfry_circuit_open{provider=\"web\"} 1"));
    let id = two.push("other", &two.other);
    assert_eq!(two.live.ended(&id)["state"], "accepted");
    // It answers again: everything goes out, and the circuit closes.
    for id in &ids {
        assert_eq!(two.live.ended(id)["state"], "accepted");
    }
    until("its circuit is closed", PATIENCE, || two.circuits().is_empty().then_some(()));
    let closed = "belfry_service_circuits_open{provider=\"web\",service=\"another push service\"} 0";
    assert!(two.live.metrics().contains(closed));
}

/// Whoever may subscribe can name a service of his own, and another one each time.
#[test]
fn services_that_nobody_knows_and_that_never_answer_share_a_quarter_of_the_calls() {
    let two = Two::new("10m");
    let proof = two.push("proof", &two.other);
    assert_eq!(two.live.ended(&proof)["state"], "accepted");
    for (number, service) in two.made_up.iter().enumerate() {
        service.next(Act::Stall);
        two.push(&format!("made-up-{number}"), service);
    }
    let asked = || two.made_up.iter().map(PushService::requests).sum::<usize>();
    until("they have what they may have", PATIENCE, || (asked() == 2).then_some(()));
    for number in 0..6 {
        let id = two.push(&format!("other-{number}"), &two.other);
        assert_eq!(two.live.ended(&id)["state"], "accepted");
    }
    assert_eq!(asked(), 2);
}
