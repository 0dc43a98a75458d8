//! The OpenAPI document says what the code does.

use std::collections::BTreeSet;
use std::path::Path;

use belfry::http::{document, observe};
use belfry::intake::{inline, recipient, submission};
use serde_json::Value;

use super::bed::*;

/// `BELFRY_WRITE_SNAPSHOTS=1` writes it anew; the difference is then read in the commit.
#[test]
fn the_document_is_the_snapshot() {
    let document = serde_json::to_string_pretty(&document()).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json");
    if std::env::var_os("BELFRY_WRITE_SNAPSHOTS").is_some() {
        std::fs::write(&path, &document).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == document, "docs/openapi.json is not what the code says; write it with BELFRY_WRITE_SNAPSHOTS=1");
}

#[tokio::test]
async fn what_is_served_is_the_document() {
    let bed = Bed::new().await;
    let told = bed.client.get(format!("http://{}/openapi.json", bed.addr)).send().await.unwrap();
    let served: Value = told.json().await.unwrap();
    assert_eq!(served, serde_json::to_value(document()).unwrap());
    assert!(served["openapi"].as_str().unwrap().starts_with("3.1"));
}

fn members(schemas: &Value, name: &str) -> BTreeSet<String> {
    schemas[name]["properties"].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn requests_are_described_with_the_members_that_are_read() {
    let document = serde_json::to_value(document()).unwrap();
    let schemas = &document["components"]["schemas"];
    for (name, read) in [
        ("NewNotification", submission::TOP),
        ("Recipient", recipient::TO),
        ("Device", recipient::DEVICE),
        ("Profile", recipient::PROFILE),
        ("Content", inline::CONTENT),
        ("Attachment", inline::ATTACHMENT),
        ("Push", inline::PUSH),
        ("Search", belfry::http::lists::SEARCH),
        ("NewSchedule", belfry::intake::schedules::MEMBERS),
        ("MissedRuns", belfry::intake::schedules::MISSED),
        ("LocalSendAt", belfry::intake::times::LOCAL),
        ("Filter", belfry::http::filters::FILTERS),
    ] {
        assert_eq!(members(schemas, name), read.iter().map(|&it| it.to_owned()).collect(), "{name}");
        assert_eq!(schemas[name]["additionalProperties"], false, "{name}");
    }
    let mut item = members(schemas, "BatchItem");
    assert!(item.remove("key"));
    assert_eq!(item, members(schemas, "NewNotification"));
}

/// Names of the schemas that `part` of the document leads to.
fn named(document: &Value, part: &Value, found: &mut BTreeSet<String>) {
    match part {
        Value::Object(members) => {
            let name = members.get("$ref").and_then(|name| name.as_str()?.rsplit('/').next().map(str::to_owned));
            if let Some(name) = name
                && found.insert(name.clone())
            {
                named(document, &document["components"]["schemas"][&name], found);
            }
            members.values().for_each(|one| named(document, one, found));
        }
        Value::Array(items) => items.iter().for_each(|one| named(document, one, found)),
        _ => {}
    }
}

#[test]
fn what_refuses_unknown_members_says_so() {
    let document = serde_json::to_value(document()).unwrap();
    let mut asked = BTreeSet::new();
    for operation in document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap().values())
    {
        named(&document, &operation["requestBody"], &mut asked);
    }
    // What a browser sends from a page may hold more.
    asked.retain(|name| !["LinkForm", "PreferencesForm"].contains(&name.as_str()));
    let schemas = &document["components"]["schemas"];
    let open: Vec<&String> = asked
        .iter()
        .filter(|name| schemas[name]["enum"].is_null() && schemas[name]["additionalProperties"] != false)
        .collect();
    assert!(open.is_empty() && asked.contains("Switches") && asked.contains("Seen"), "{open:?}");
    assert_eq!(schemas["Switches"]["properties"].as_object().unwrap().len(), 10);
}

#[test]
fn counted_answers_have_the_headers_of_limits() {
    let document = serde_json::to_value(document()).unwrap();
    let has = |path: &str, method: &str, status: &str| {
        let headers = &document["paths"][path][method]["responses"][status]["headers"];
        ["RateLimit", "RateLimit-Policy"].map(|name| headers[name]["$ref"] == format!("#/components/headers/{name}"))
    };
    for status in ["202", "400", "422", "429", "503"] {
        assert_eq!(has("/v1/notifications", "post", status), [true; 2], "{status}");
    }
    for status in ["401", "405", "406"] {
        assert_eq!(has("/v1/notifications", "post", status), [false; 2], "{status}");
    }
    assert_eq!(document["components"]["headers"].as_object().unwrap().len(), 2);
    assert_eq!(has("/v1/deliveries/{id}/seen", "post", "204"), [false; 2]);
    assert_eq!(has("/u/{token}", "post", "200"), [false; 2]);
    assert_eq!(has("/readyz", "get", "200"), [false; 2]);
}

#[test]
fn every_route_has_its_metric_label_and_every_reference_its_schema() {
    let document = serde_json::to_value(document()).unwrap();
    for path in document["paths"].as_object().unwrap().keys() {
        assert!(observe::ROUTES.contains(&path.as_str()), "{path}");
    }
    let text = document.to_string();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name}");
    }
}
