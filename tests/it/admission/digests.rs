//! Digests, over the API of a whole server, on either store.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::push::live::Live;
use crate::redis::Server;
use crate::redis::server::Options;

/// A class that gathers for so long.
fn class(gather: &str) -> String {
    format!(
        "[classes.activity]\norder = \"send_then_record\"\ngather = \"{gather}\"\ngather_most = 3\n\
         [channels.email]\nproviders = [\"pretend\"]\n[providers.pretend]\nkind = \"outbox\"\n\
         [templates]\npath = \"{{dir}}/templates\"\n"
    )
}

const TEXT: &str =
    "{% for item in items %}- {{ item.data.who }} on {{ item.data.on }}\n{% endfor %}{{ count }} in all\n";

const META: &str = "description = \"What others did.\"\nchannels = [\"email\"]\nlocale = \"en\"\n";

fn write_template(live: &TempDir, text: &str) {
    let place = live.path().join("templates/activity");
    fs::create_dir_all(&place).unwrap();
    let sample = r#"{"items":[{"at":"2027-01-15T08:00:00Z","data":{"who":"Bob","on":"Budget"}}],"count":1}"#;
    let files = [("meta.toml", META), ("subject.txt", "What is new"), ("text.txt", text), ("sample.json", sample)];
    for (name, text) in files {
        fs::write(place.join(name), text).unwrap();
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn on_a_file(test: impl Fn(Live)) {
    test(Live::start_with(runtime(), None, &class("2s"), |dir| write_template(dir, TEXT)));
}

fn on_redis(test: impl Fn(Live)) {
    let server = Server::start(Options::default());
    let store = format!("store.kind = \"redis\"\nstore.redis.url = \"{}\"\n", server.url());
    test(Live::start_with(runtime(), Some(&store), &class("2s"), |dir| write_template(dir, TEXT)));
}

/// Each on a fresh one of either store.
macro_rules! on_either_store {
    ($($name:ident),+ $(,)?) => {
        mod in_a_file {
            $(#[test] fn $name() { super::on_a_file(super::$name); })+
        }

        mod in_redis {
            $(#[test] fn $name() { super::on_redis(super::$name); })+
        }
    };
}

on_either_store!(
    items_go_out_together_and_each_leads_to_the_other,
    a_full_digest_goes_at_once_and_what_comes_after_waits_for_the_next,
    addresses_keys_and_templates_gather_apart,
    what_is_cancelled_in_time_is_in_no_digest,
    an_item_that_is_sent_again_goes_by_itself,
    what_gathers_outlives_a_restart_and_a_reload_that_gathers_no_more,
    what_cannot_be_an_item_is_refused_at_its_own_place,
);

fn item(who: &str) -> Value {
    json!({"class": "activity", "to": {"email": "ann@example.com"}, "template": "activity",
        "data": {"who": who, "on": "Budget"}})
}

fn texts(live: &Live, to: &str) -> Vec<String> {
    let found = live.get(&format!("/v1/outbox?to={to}"));
    let mut texts: Vec<String> = found["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["message"]["text"].as_str().unwrap().to_owned())
        .collect();
    texts.sort();
    texts
}

fn whole(live: &Live, id: &str) -> Value {
    live.get(&format!("/v1/notifications/{id}"))
}

/// The digest that an item went into.
fn digest_of(live: &Live, item: &Value) -> String {
    item["deliveries"][0]["folded_into"].as_str().unwrap_or_else(|| panic!("{} {item}", live.metrics())).to_owned()
}

fn items_go_out_together_and_each_leads_to_the_other(live: Live) {
    let first = item("Bob");
    let (status, told) = live.asked("POST", "/v1/notifications", Some("1"), Some(&first));
    assert_eq!((status, &told["state"]), (202, &json!("deferred")));
    let reason = "Waiting for others of its kind, to go out with them as one digest.";
    assert_eq!(told["deliveries"][0]["reason"], reason);
    let id = told["id"].as_str().unwrap().to_owned();
    let second = live.send("2", &item("Eve"));
    // A repeat is one, while it gathers and afterwards.
    assert_eq!(live.asked("POST", "/v1/notifications", Some("1"), Some(&first)), (202, told.clone()));
    let folded = live.ended(&id);
    assert_eq!(live.asked("POST", "/v1/notifications", Some("1"), Some(&first)), (202, told));
    assert_eq!((&folded["state"], &folded["repeats"]), (&json!("cancelled"), &json!(1)));
    let digest = digest_of(&live, &folded);
    let reason = format!("It goes out as part of the digest {digest}, not by itself.");
    assert_eq!(folded["deliveries"][0]["reason"], reason);
    let timeline = folded["deliveries"][0]["timeline"].as_array().unwrap();
    assert!(timeline.iter().any(|it| it["what"] == "folded" && it["into"] == json!(digest)), "{timeline:?}");
    let told = live.ended(&digest);
    assert_eq!((&told["state"], &told["class"]), (&json!("accepted"), &json!("activity")));
    assert_eq!(told["gathered"], json!([id, second]));
    assert_eq!(texts(&live, "ann@example.com"), ["- Bob on Budget\n- Eve on Budget\n2 in all\n"]);
    let metrics = live.metrics();
    assert!(metrics.contains("belfry_items_gathered_total{class=\"activity\"} 2"), "{metrics}");
}

fn a_full_digest_goes_at_once_and_what_comes_after_waits_for_the_next(live: Live) {
    let ids: Vec<String> = ["a", "b", "c", "d"].map(|who| live.send(who, &item(who))).into();
    let digests: Vec<String> = ids.iter().map(|id| digest_of(&live, &live.ended(id))).collect();
    assert!(digests[..3].iter().all(|it| *it == digests[0]) && digests[3] != digests[0], "{digests:?}");
    digests.iter().for_each(|id| drop(live.ended(id)));
    let full = "- a on Budget\n- b on Budget\n- c on Budget\n3 in all\n";
    assert_eq!(texts(&live, "ann@example.com"), [full, "- d on Budget\n1 in all\n"]);
}

fn addresses_keys_and_templates_gather_apart(live: Live) {
    let with = |key: &str, change: Value| {
        let mut body = item(key);
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        live.send(key, &body)
    };
    let ids = [
        with("1", json!({})),
        with("2", json!({"to": {"email": "Ann <ANN@example.com>"}})),
        with("3", json!({"to": {"email": "eve@example.com"}})),
        with("4", json!({"digest": "comments"})),
        with("5", json!({"digest": "comments"})),
        with("6", json!({"digest": "likes"})),
    ];
    let digests: Vec<String> = ids.iter().map(|id| digest_of(&live, &live.ended(id))).collect();
    let same = |one: usize, two: usize| digests[one] == digests[two];
    // One address, however it is written.
    assert!(same(0, 1) && !same(0, 2) && !same(0, 3) && same(3, 4) && !same(4, 5), "{digests:?}");
    assert_eq!(whole(&live, &digests[3])["digest"], "comments");
}

fn what_is_cancelled_in_time_is_in_no_digest(live: Live) {
    let (stays, goes) = (live.send("stays", &item("Bob")), live.send("goes", &item("Eve")));
    let path = format!("/v1/notifications/{goes}/cancel");
    let (status, told) = live.asked("POST", &path, None, Some(&json!({"why": "she took it back"})));
    assert_eq!((status, &told["notification"]["state"]), (200, &json!("cancelled")), "{told}");
    let digest = digest_of(&live, &live.ended(&stays));
    live.ended(&digest);
    assert_eq!(whole(&live, &digest)["gathered"], json!([stays]));
    assert_eq!(whole(&live, &goes)["deliveries"][0]["reason"], "Cancelled: she took it back.");
    assert_eq!(texts(&live, "ann@example.com"), ["- Bob on Budget\n1 in all\n"]);
}

fn an_item_that_is_sent_again_goes_by_itself(live: Live) {
    let id = live.send("1", &item("Bob"));
    live.send("2", &item("Eve"));
    let folded = live.ended(&id);
    let delivery = folded["deliveries"][0]["id"].as_str().unwrap();
    let path = format!("/v1/deliveries/{delivery}/send-again");
    let (status, told) = live.asked("POST", &path, Some("again"), Some(&json!({"after_send": 1})));
    assert_eq!(status, 200, "{told}");
    assert_eq!(live.ended(&id)["state"], "accepted");
    live.ended(&digest_of_timeline(&folded));
    let expected = ["- Bob on Budget\n- Eve on Budget\n2 in all\n", "- Bob on Budget\n1 in all\n"];
    assert_eq!(texts(&live, "ann@example.com"), expected);
}

fn digest_of_timeline(item: &Value) -> String {
    let entries = item["deliveries"][0]["timeline"].as_array().unwrap();
    entries.iter().find_map(|it| it["into"].as_str()).unwrap().to_owned()
}

fn what_gathers_outlives_a_restart_and_a_reload_that_gathers_no_more(mut live: Live) {
    let ids = [live.send("1", &item("Bob")), live.send("2", &item("Eve"))];
    live.restart(&class("2s").replace("gather = \"2s\"\ngather_most = 3\n", ""));
    for id in &ids {
        live.ended(id);
    }
    let digests = ids.map(|id| digest_of(&live, &whole(&live, &id)));
    assert_eq!(digests[0], digests[1]);
    live.ended(&digests[0]);
    // What comes now goes by itself; it is no item, and its template gets what it is given.
    let alone = json!({"class": "activity", "to": {"email": "ann@example.com"}, "template": "activity",
        "data": {"items": [], "count": 0}});
    assert_eq!(live.ended(&live.send("3", &alone))["state"], "accepted");
    let expected = ["- Bob on Budget\n- Eve on Budget\n2 in all\n", "0 in all\n"];
    assert_eq!(texts(&live, "ann@example.com"), expected);
}

fn what_cannot_be_an_item_is_refused_at_its_own_place(live: Live) {
    let refused = |change: Value| {
        let mut body = item("Bob");
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let (status, told) = live.asked("POST", "/v1/notifications", Some("refused"), Some(&body));
        assert_eq!(status, 422, "{told}");
        let places = told["errors"].as_array().unwrap().iter().map(|it| it["pointer"].as_str().unwrap().to_owned());
        places.collect::<Vec<_>>()
    };
    assert_eq!(refused(json!({"data": {"who": "Bob"}})), ["/data"]);
    assert_eq!(refused(json!({"collapse": "x"})), ["/collapse"]);
    assert_eq!(refused(json!({"content": {"from": "a@example.com"}})), ["/content"]);
    assert_eq!(refused(json!({"data": {"who": "x".repeat(70_000), "on": "y"}})), ["/data"]);
    assert_eq!(refused(json!({"digest": ""})), ["/digest"]);
    let elsewhere = json!({"class": "receipt", "to": {"email": "ann@example.com"}, "digest": "x",
        "content": {"subject": "S", "text": "T"}});
    let (status, told) = live.asked("POST", "/v1/notifications", Some("elsewhere"), Some(&elsewhere));
    assert_eq!((status, &told["errors"][0]["pointer"]), (422, &json!("/digest")), "{told}");
    let detail = told["errors"][0]["detail"].as_str().unwrap();
    assert_eq!(detail, "stands only in a class that gathers; receipt does not");
}
