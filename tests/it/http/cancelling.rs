//! Stopping a mistake: what filters find, what is cut off half way, what is in flight meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use belfry::facts::Fact;
use belfry::intake::instant::rfc3339;
use belfry::ports::clock::Clock as _;
use belfry::ports::deliveries::{Claim, ClaimAsk, Deliveries as _, Settle, Written};
use belfry::ports::policy::OUTBOX;
use belfry_domain::outcome::RepeatGuard;
use belfry_domain::step::StepFact;
use belfry_domain::timeline::ClaimMark;
use belfry_domain::{Env, Event, Lane, Outcome, Priority, Why, WhyCode, step};
use reqwest::Method;
use serde_json::{Value, json};

use super::bed::*;
use super::policy::policy;

fn mail(group: &str) -> Value {
    json!({"class": "receipt", "to": {"email": "ann@example.com"}, "group": group,
        "content": {"subject": "S", "text": "T"}})
}

fn from_template(class: &str) -> Value {
    json!({"class": class, "to": {"email": "ann@example.com"}, "template": "login_code",
        "data": {"sender": "Northwind", "code": "482913", "valid_until": "14:35 UTC",
            "device": "Firefox on Linux", "domain": "northwind.example"}})
}

async fn cancel(bed: &Bed, body: Value) -> Told {
    bed.ask(Method::POST, "/v1/cancellations").json(&body).told().await
}

async fn search(bed: &Bed, body: Value) -> Told {
    bed.ask(Method::POST, "/v1/notifications/search").json(&body).told().await
}

fn id(told: &Told) -> String {
    told.json()["id"].as_str().unwrap_or_else(|| panic!("{}", told.text)).to_owned()
}

fn ids(page: &Value, member: &str) -> Vec<String> {
    let ids = page[member].as_array().unwrap().iter();
    ids.map(|one| one.as_str().or_else(|| one["id"].as_str()).unwrap().to_owned()).collect()
}

/// Five, of which each filter finds some: two of a template, a second apart, one with a business key.
async fn five(bed: &Bed) -> [String; 5] {
    let a = id(&bed.send("a", &from_template("receipt")).await);
    bed.clock.forward(Duration::from_secs(1));
    let b = id(&bed.send("b", &from_template("code")).await);
    let c = id(&bed.send("c", &mail("launch")).await);
    bed.clock.forward(Duration::from_secs(1));
    let mut unique = mail("launch");
    unique["unique"] = json!("order-42");
    let d = id(&bed.send("d", &unique).await);
    let e = id(&bed.send("e", &mail("other")).await);
    [a, b, c, d, e]
}

#[tokio::test]
async fn search_and_cancellation_find_the_same_by_every_filter() {
    let bed = Bed::planned(Plan { still: true, ..Plan::default() }).await;
    let [a, b, c, d, e] = five(&bed).await;
    let read = bed.get(&format!("/v1/notifications/{a}")).await.json();
    let version = &read["template"]["version"];
    let at = |it: &Value| it["created_at"].as_str().unwrap().to_owned();
    let first = at(&read);
    let second = at(&bed.get(&format!("/v1/notifications/{b}")).await.json());
    for (filter, expected) in [
        (json!({"template": "login_code"}), vec![&b, &a]),
        (json!({"template": "login_code", "class": "code"}), vec![&b]),
        (json!({"template": "receipt"}), vec![]),
        (json!({"template_version": version}), vec![&b, &a]),
        (json!({"template_version": "0123"}), vec![]),
        // From inclusive, until exclusive.
        (json!({"accepted_from": second}), vec![&e, &d, &c, &b]),
        (json!({"accepted_until": second}), vec![&a]),
        (json!({"accepted_from": first, "accepted_until": second}), vec![&a]),
        (json!({"accepted_from": second, "group": "launch"}), vec![&d, &c]),
        // In their order; what is unknown, and what stands twice, adds nothing.
        (json!({"keys": ["c", "nobody's", "a", "c"]}), vec![&c, &a]),
        (json!({"keys": ["c", "a"], "group": "launch"}), vec![&c]),
        // The business key is its key in place of the header's.
        (json!({"keys": ["d"]}), vec![]),
        (json!({"unique": ["order-42", "order-43"], "class": "receipt"}), vec![&d]),
        (json!({"unique": ["order-42"], "class": "code"}), vec![]),
    ] {
        let found = search(&bed, filter.clone()).await.json();
        assert_eq!(ids(&found, "data").iter().collect::<Vec<_>>(), expected, "{filter}");
        let told = cancel(&bed, json!({"filter": filter, "dry_run": true})).await.json();
        assert_eq!((ids(&told, "ids"), told["cancelled"].as_u64()), (ids(&found, "data"), Some(expected.len() as u64)));
        // By a list all that does not belong into its address.
        let filter = filter.as_object().unwrap();
        if !filter.contains_key("keys") && !filter.contains_key("unique") {
            let query: Vec<_> = filter.iter().map(|(name, it)| format!("{name}={}", it.as_str().unwrap())).collect();
            let listed = bed.get(&format!("/v1/notifications?{}", query.join("&"))).await.json();
            assert_eq!(ids(&listed, "data"), ids(&found, "data"), "{query:?}");
        }
    }
    // A page of keys goes on by its cursor.
    let first = search(&bed, json!({"keys": ["c", "x", "a", "e"], "limit": 2})).await.json();
    assert_eq!((ids(&first, "data"), &first["has_more"]), (vec![c], &json!(true)));
    let next = &first["next_cursor"];
    let rest = search(&bed, json!({"keys": ["c", "x", "a", "e"], "limit": 2, "cursor": next})).await.json();
    assert_eq!((ids(&rest, "data"), &rest["has_more"]), (vec![a.clone(), e], &json!(false)));
    // Keys are those of the caller's own namespace.
    let other = bed.make_key("acme", "live", "shop", ALL).await;
    let told = search(&Bed { key: other, ..bed }, json!({"keys": ["a"]})).await.json();
    assert_eq!(ids(&told, "data"), Vec::<String>::new());
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_by_its_place() {
    let bed = Bed::new().await;
    let now = rfc3339(bed.clock.now());
    let many: Vec<String> = (0..1_001).map(|n| format!("k{n}")).collect();
    for (filter, pointer) in [
        (json!({"template": ""}), "/template"),
        (json!({"template_version": 7}), "/template_version"),
        (json!({"accepted_from": "yesterday"}), "/accepted_from"),
        (json!({"accepted_from": now, "accepted_until": now}), "/accepted_until"),
        (json!({"keys": []}), "/keys"),
        (json!({"keys": "a"}), "/keys"),
        (json!({"keys": ["a", "a b"]}), "/keys/1"),
        (json!({"keys": ["a", 7]}), "/keys/1"),
        (json!({"keys": many}), "/keys"),
        (json!({"keys": ["a"], "unique": ["a"], "class": "receipt"}), "/unique"),
        (json!({"unique": ["a"]}), "/unique"),
        (json!({"key": "a"}), "/key"),
    ] {
        let told = search(&bed, filter.clone()).await;
        assert!(told.status == 422 && told.pointers().contains(&pointer.to_owned()), "{filter}: {told:?}");
        let told = cancel(&bed, json!({"filter": filter, "why": "wrong"})).await;
        let pointer = format!("/filter{pointer}");
        assert!(told.status == 422 && told.pointers().contains(&pointer), "{filter}: {told:?}");
    }
    for (query, pointer) in [
        ("accepted_from=yesterday", "/query/accepted_from"),
        (&*format!("accepted_from={now}&accepted_until={now}"), "/query/accepted_until"),
        ("template=", "/query/template"),
        ("keys=a", "/query/keys"),
    ] {
        let told = bed.get(&format!("/v1/notifications?{query}")).await;
        assert_eq!((told.problem(), told.pointers()), ((400, "bad_parameter".into()), vec![pointer.into()]), "{query}");
    }
    // A cursor of another search lies behind the end of a list of keys.
    bed.send("a", &mail("launch")).await;
    bed.send("b", &mail("launch")).await;
    let other = search(&bed, json!({"limit": 1})).await.json()["next_cursor"].clone();
    let body = json!({"filter": {"keys": ["a"]}, "why": "wrong", "cursor": other});
    assert_eq!(cancel(&bed, body).await.pointers(), ["/cursor"]);
    // Whoever may only read cancels nothing.
    let reader = bed.make_key("acme", "live", "main", &[belfry::ports::admin::Can::Read]).await;
    let told = cancel(&Bed { key: reader, ..bed }, json!({"filter": {"group": "launch"}, "dry_run": true})).await;
    assert_eq!(told.problem(), (403, "forbidden".into()));
}

/// Whoever asked dies with a call under way; another one goes on from the last answer that there was.
#[tokio::test]
async fn case_17_a_cancellation_that_is_cut_half_way_is_resumed_and_counts_each_once() {
    const MANY: usize = 3_000;
    let bed = Bed::new().await;
    for start in (0..MANY).step_by(1_000) {
        let item = |n: usize| {
            let mut item = mail("launch");
            item["key"] = format!("k{n}").into();
            item
        };
        let items: Vec<Value> = (start..start + 1_000).map(item).collect();
        let told = bed.ask(Method::POST, "/v1/notifications/batch").json(&json!({"items": items})).told().await;
        assert_eq!(told.status.as_u16(), 200);
    }
    let mut body = json!({"filter": {"group": "launch"}, "why": "Sent to the wrong list"});
    let (mut found, mut cancelled, mut calls) = (BTreeSet::new(), 0, 0);
    loop {
        if calls == 12 {
            // The next call is cut off: how much of it is done is not known.
            let cut = bed.ask(Method::POST, "/v1/cancellations").json(&body).request;
            let cut = tokio::spawn(cut.send());
            tokio::task::yield_now().await;
            cut.abort();
            assert!(cut.await.is_err_and(|error| error.is_cancelled()));
        }
        let page = cancel(&bed, body.clone()).await.json();
        cancelled += page["cancelled"].as_u64().unwrap();
        found.extend(ids(&page, "ids"));
        calls += 1;
        let Some(next) = page["next_cursor"].as_str() else { break };
        body["cursor"] = next.into();
    }
    assert_eq!((found.len(), cancelled, calls), (MANY, MANY as u64, MANY / 100));
    // Each once, by its own fact and by its timeline.
    let mut ends: BTreeMap<String, u32> = BTreeMap::new();
    for fact in bed.told_facts() {
        if let Fact::Stepped { notification, fact: StepFact::Ended { .. }, .. } = fact {
            *ends.entry(notification.to_string()).or_default() += 1;
        }
    }
    assert!(ends.len() == MANY && ends.values().all(|times| *times == 1), "{} ended", ends.len());
    let one = bed.get(&format!("/v1/notifications/{}", found.first().unwrap())).await.json();
    let timeline = one["deliveries"][0]["timeline"].as_array().unwrap().clone();
    assert_eq!(timeline.iter().filter(|entry| entry["what"] == "stop_asked").count(), 1, "{timeline:?}");
    assert_eq!(one["deliveries"][0]["reason"], "Cancelled: Sent to the wrong list.");
    // From the beginning once more: all as they were left.
    let again = cancel(&bed, json!({"filter": {"group": "launch"}, "why": "again"})).await.json();
    assert_eq!((&again["cancelled"], &again["cancelled_before"]), (&json!(100), &json!(100)));
    // And what the answer says of a corrected run is so.
    assert_eq!(again["corrected_run"]["code"], "needs_new_keys");
    let same = bed.send("k0", &mail("launch")).await;
    assert!(same.replayed(), "{same:?}");
    let fresh = bed.send("k0/corrected", &mail("launch")).await;
    assert_eq!((fresh.replayed(), fresh.json()["state"].clone()), (false, json!("queued")));
}

/// Ends a claim as `outcome` says. Returns the state that the delivery came to.
async fn end(bed: &Bed, claim: &Claim, outcome: Outcome) -> Value {
    let current = bed.store.load(vec![claim.delivery.id]).await.unwrap().remove(0);
    let class = &policy().classes[&current.class];
    let env = Env { now: bed.clock.now(), jitter: 0, receipts: false, guard: RepeatGuard::None };
    let mark = ClaimMark { worker: "w1".into(), fence: claim.token.fence };
    let called = Event::Called { claim: mark, outcome, took: Duration::from_millis(5) };
    let next = step(&current, class, called, env).unwrap().next;
    let settled = bed.store.settle(vec![Settle { next, token: claim.token }]).await.unwrap();
    assert_eq!(settled, [Written::Done]);
    let id = claim.notification.id;
    bed.get(&format!("/v1/notifications/{id}")).await.json()["deliveries"][0]["state"].clone()
}

async fn claims(bed: &Bed, most: u16) -> Vec<Claim> {
    let lanes = vec![(Lane::new(OUTBOX, Priority::Normal), most)];
    let nonce = getrandom::u64().unwrap();
    bed.store.claim(ClaimAsk { worker: "w1".into(), nonce, lanes, alone: false }).await.unwrap().claims
}

#[tokio::test]
async fn what_is_in_flight_is_told_so_and_gets_no_further_attempt() {
    let bed = Bed::new().await;
    for n in 0..6 {
        bed.send(&format!("k{n}"), &mail("launch")).await;
    }
    let flying = claims(&bed, 4).await;
    assert_eq!(flying.len(), 4);
    let counts = |page: &Value| {
        ["cancelled", "cancelled_before", "in_flight", "ended", "out"].map(|name| page[name].as_u64().unwrap())
    };
    let filter = json!({"group": "launch"});
    let dry = cancel(&bed, json!({"filter": filter, "dry_run": true})).await.json();
    assert_eq!(counts(&dry), [2, 0, 4, 0, 0]);
    let first = cancel(&bed, json!({"filter": filter, "why": "Wrong price"})).await.json();
    assert_eq!(counts(&first), counts(&dry));
    // A second time while they fly: nothing new is written, and the first word stays.
    let second = cancel(&bed, json!({"filter": filter, "why": "Really"})).await.json();
    assert_eq!(counts(&second), [2, 2, 4, 0, 0]);
    let not_accepted = Outcome::NotAccepted { retry_after: None, why: Why::new(WhyCode::Unreachable) };
    let unknown = Outcome::Unknown { retry_after: None, why: Why::new(WhyCode::TimedOutAfter) };
    let refused = Outcome::Refused { why: Why::said(WhyCode::PolicyRefused, "550 5.7.1 no") };
    let ends = [accepted(), not_accepted, unknown, refused];
    let mut states = Vec::new();
    for (claim, outcome) in flying.iter().zip(ends) {
        states.push(end(&bed, claim, outcome).await);
    }
    // What would have been tried again ends here, whether or not a copy may have arrived.
    assert_eq!(states, ["accepted", "cancelled", "cancelled", "failed"]);
    bed.clock.forward(DAY / 2);
    assert!(claims(&bed, 10).await.is_empty());
    let last = cancel(&bed, json!({"filter": filter, "why": "Once more"})).await.json();
    assert_eq!(counts(&last), [4, 4, 0, 2, 2]);
    // Who may have it is found by the same filter.
    let found = search(&bed, filter).await.json();
    let out = found["data"].as_array().unwrap().iter().filter(|one| one["deliveries"][0]["may_have_arrived"] == true);
    let out: BTreeSet<_> = out.map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(out, [0, 2].map(|at: usize| flying[at].notification.id.to_string()).into());
    for one in found["data"].as_array().unwrap().iter().filter(|one| one["state"] == "cancelled") {
        let reason = one["deliveries"][0]["reason"].as_str().unwrap();
        assert!(reason.contains("Wrong price"), "{reason}");
    }
    let told = bed.told_facts().iter().filter(|fact| matches!(fact, Fact::ManyCancelled { .. })).count();
    assert_eq!(told, 2, "of calls that did something, or may have");
}
