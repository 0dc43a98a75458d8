//! The stand-in's own idea of a message against Google's published one.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::peers::fcm_sim::{fields, types};

/// Google's discovery document of `fcm` v1, out of the PyPI package google-api-python-client. Where an
/// interpreter was named for the tests, it must have it.
fn discovered() -> Option<Value> {
    let named = std::env::var("BELFRY_TEST_PYTHON");
    let find = "import importlib.util as u; print(list(u.find_spec('googleapiclient').submodule_search_locations)[0])";
    let python = named.clone().unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(python).args(["-c", find]).output().unwrap();
    if !found.status.success() {
        assert!(named.is_err(), "BELFRY_TEST_PYTHON lacks google-api-python-client");
        return None;
    }
    let folder = String::from_utf8(found.stdout).unwrap();
    let text = std::fs::read(format!("{}/discovery_cache/documents/fcm.v1.json", folder.trim())).unwrap();
    Some(serde_json::from_slice(&text).unwrap())
}

fn kind(property: &Value) -> String {
    let text = |name: &str| property[name].as_str();
    if let Some(other) = text("$ref") {
        return format!("@{other}");
    }
    if let Some(names) = property["enum"].as_array() {
        return names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|");
    }
    match (text("type").unwrap(), text("format")) {
        ("object", _) => format!("{{{}}}", kind(&property["additionalProperties"])),
        ("array", _) => format!("[{}]", kind(&property["items"])),
        (plain, Some(format)) => format!("{plain}/{format}"),
        (plain, None) => plain.to_owned(),
    }
}

#[test]
fn the_stand_in_knows_what_google_publishes_and_no_more() {
    let Some(document) = discovered() else { return };
    let mut reached = BTreeSet::new();
    let mut open = vec!["SendMessageRequest".to_owned()];
    while let Some(name) = open.pop() {
        if !reached.insert(name.clone()) {
            continue;
        }
        let properties = document["schemas"][&name]["properties"].as_object().cloned().unwrap_or_default();
        let google: BTreeSet<(String, String)> =
            properties.iter().map(|(field, property)| (field.clone(), kind(property))).collect();
        let ours = fields(&name).unwrap_or_else(|| panic!("{name} is missing"));
        let ours: BTreeSet<(String, String)> =
            ours.into_iter().map(|(field, kind)| (field.to_owned(), kind.to_owned())).collect();
        assert_eq!(ours, google, "{name}");
        open.extend(google.into_iter().filter_map(|(_, kind)| kind.strip_prefix('@').map(str::to_owned)));
    }
    assert_eq!(types().map(str::to_owned).collect::<BTreeSet<_>>(), reached);
    let path = &document["resources"]["projects"]["resources"]["messages"]["methods"]["send"]["flatPath"];
    assert_eq!(path, "v1/projects/{projectsId}/messages:send");
}
