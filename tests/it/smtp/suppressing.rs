//! What a bounce adds to the suppressions, and what is asked of them before a call, with a server behind it all.

use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::peers::smtp_stub::{Act, At, Script, SmtpStub};
use crate::peers::until::until;
use crate::push::live::Live;

struct Shop {
    live: Live,
    stub: SmtpStub,
}

/// Its last section is that of retries.
fn sections(stub: &SmtpStub, from: &str) -> String {
    format!(
        "[channels.email]\nproviders = [\"main\"]\n[providers.main]\nkind = \"smtp\"\nurl = \"{}\"\nfrom = \"{from}\"\n\
         [classes.receipt.retry]\nbase = \"50ms\"\ncap = \"100ms\"\n",
        stub.url()
    )
}

impl Shop {
    fn new(script: Script) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let stub = runtime.block_on(SmtpStub::start(script));
        let sections = sections(&stub, "Shop <no-reply@example.com>");
        Self { live: Live::start(runtime, &sections, &[]), stub }
    }

    fn sections(&self, from: &str) -> String {
        sections(&self.stub, from)
    }

    fn send(&self, key: &str, body: &Value) -> Value {
        self.live.ended(&self.live.send(key, body))
    }

    fn listed(&self) -> Vec<Value> {
        self.live.get("/v1/suppressions")["data"].as_array().unwrap().clone()
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let (status, told) = self.live.asked("POST", path, None, Some(body));
        assert!(status < 300, "{path}: {told}");
        told
    }
}

fn mail(to: &str) -> Value {
    json!({"class": "receipt", "to": {"email": to}, "content": {"subject": "Your order", "text": "It is on its way."}})
}

fn ends(notification: &Value) -> Vec<(&str, &str)> {
    let deliveries = notification["deliveries"].as_array().unwrap();
    deliveries.iter().map(|one| (one["address"].as_str().unwrap(), one["state"].as_str().unwrap())).collect()
}

#[test]
fn case_86_one_of_three_addresses_bounces_and_that_one_alone_is_suppressed() {
    let gone = Act::Reply("550 5.1.1 no such user".into());
    let shop = Shop::new(Script::default().holding(At::Rcpt, "bob@", gone));
    let mut body = mail("ann@example.com");
    body["content"]["cc"] = json!(["bob@example.com", "eve@example.com"]);
    let ended = shop.send("first", &body);
    let (ann, bob, eve) = ("a…@example.com", "b…@example.com", "e…@example.com");
    assert_eq!(ends(&ended), [(ann, "accepted"), (bob, "bounced"), (eve, "accepted")], "{ended}");
    // Right after the record of the call.
    let listed = until("it is suppressed", crate::peers::smtp_stub::PATIENCE, || {
        Some(shop.listed()).filter(|all| !all.is_empty())
    });
    let entry = &listed[0];
    assert_eq!((listed.len(), &entry["address"], &entry["kind"]), (1, &json!(bob), &json!("hard_bounce")));
    assert_eq!(entry["origin"], ended["deliveries"][1]["id"]);
    // The server's words may hold an address.
    assert_eq!(entry["note"], "550 5.1.1");
    let calls = shop.stub.messages().len();
    let told = shop.send("second", &body);
    assert_eq!(ends(&told), [(ann, "accepted"), (bob, "suppressed"), (eve, "accepted")]);
    let reason = told["deliveries"][1]["reason"].as_str().unwrap();
    assert!(reason.starts_with("Suppressed: an earlier message to the address bounced for good (since 20"), "{reason}");
    assert_eq!(shop.stub.messages().len(), calls + 2);
    // A person knows better.
    let path = format!("/v1/suppressions/{}", entry["id"].as_str().unwrap());
    assert_eq!(shop.live.asked("DELETE", &path, None, None).0, 204);
    shop.stub.follow(Script::default());
    assert_eq!(ends(&shop.send("third", &mail("bob@example.com"))), [(bob, "accepted")]);
    assert_eq!(shop.listed(), Vec::<Value>::new());
}

/// A relay that takes nobody says "no such user" of everybody: whoever it said so of would get no login code any more.
#[test]
fn case_86_a_server_that_knows_nobody_suppresses_nobody() {
    let shop = Shop::new(Script::default().always(At::Rcpt, Act::Reply("550 5.1.1 no such user".into())));
    for one in 0..8 {
        let ended = shop.send(&format!("k{one}"), &mail(&format!("{one}@example.com")));
        assert_eq!(ended["deliveries"][0]["state"], "bounced", "{ended}");
    }
    until("those of before it was clear are lifted", crate::peers::smtp_stub::PATIENCE, || {
        Some(()).filter(|()| shop.listed().is_empty())
    });
    shop.stub.follow(Script::default());
    assert_eq!(ends(&shop.send("again", &mail("0@example.com"))), [("0…@example.com", "accepted")]);
}

/// What was accepted before is asked again before each call.
#[test]
fn what_is_suppressed_while_it_waits_is_not_called_any_more() {
    let later = Act::Reply("450 4.2.0 try later".into());
    let shop = Shop::new(Script::default().always(At::Rcpt, later));
    let id = shop.live.send("k", &mail("ann@example.com"));
    shop.live.once(&id, "it was tried", |one| one["attempts"].as_u64() > Some(0));
    shop.post("/v1/suppressions", &json!({"channel": "email", "address": "ann@example.com", "note": "asked by phone"}));
    let ended = shop.live.ended(&id);
    assert_eq!(ends(&ended), [("a…@example.com", "suppressed")], "{ended}");
    let reason = ended["deliveries"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("Suppressed: the address was blocked by hand (since 20"), "{reason}");
    assert_eq!(shop.stub.messages().len(), 0);
}

/// Our own login, a full mailbox, a policy: none of it says that there is no such mailbox.
#[test]
fn case_29_other_refusals_suppress_nobody() {
    let script = Script::default().holding(At::Rcpt, "ann@", Act::Reply("552 5.2.2 mailbox full".into()));
    let script = script.holding(At::Rcpt, "bob@", Act::Reply("550 5.7.1 not wanted here".into()));
    let script = script.holding(At::Rcpt, "eve@", Act::Reply("550 relay not permitted".into()));
    let shop = Shop::new(script);
    let eve = shop.send("e", &mail("eve@example.com"));
    assert_eq!(ends(&eve), [("e…@example.com", "failed")]);
    let said = "Refused for good: the mail server refused the recipient without saying that there is no such mailbox.";
    assert_eq!(eve["deliveries"][0]["reason"], said);
    shop.live
        .once(&shop.live.send("a", &mail("ann@example.com")), "it was tried", |one| one["attempts"].as_u64() > Some(0));
    shop.live
        .once(&shop.live.send("b", &mail("bob@example.com")), "it was tried", |one| one["attempts"].as_u64() > Some(0));
    // Whoever is called next was claimed after those were written.
    let joe = shop.send("c", &mail("joe@example.com"));
    assert_eq!(ends(&joe), [("j…@example.com", "accepted")]);
    assert_eq!(shop.listed(), Vec::<Value>::new());
}

/// Whoever has the first copy would get a second under another Message-ID, from another sender.
#[test]
fn a_repeat_after_an_unknown_outcome_is_parked_where_the_sender_is_another_since() {
    let shop = Shop::new(Script::default().always(At::Dot, Act::Cut));
    let sections = |from: &str| {
        shop.sections(from)
            + "max_attempts = 1000\n[classes.receipt]\norder = \"send_then_record\"\nresend_limit = 1000\n"
    };
    shop.live.reload(&sections("no-reply@example.com"));
    let id = shop.live.send("k", &mail("ann@example.com"));
    shop.live.once(&id, "it was tried", |one| one["attempts"].as_u64() > Some(1));
    shop.live.reload(&sections("no-reply@other.example"));
    let ended = shop.live.ended(&id);
    assert_eq!(ends(&ended), [("a…@example.com", "parked")], "{ended}");
    let reason = ended["deliveries"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("A repeat would have carried another message than the first"), "{reason}");
    let senders: Vec<String> = shop.stub.messages().into_iter().map(|stored| stored.from).collect();
    assert!(senders.len() > 1 && senders.iter().all(|from| from == "no-reply@example.com"), "{senders:?}");
}
