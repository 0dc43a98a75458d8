use secrecy::ExposeSecret as _;

use super::*;

/// Less the files that the example names and no test has.
pub fn without_files(mut tree: toml::Table) -> toml::Table {
    let main = tree["providers"]["main"].as_table_mut().unwrap();
    for key in ["pace", "password_file", "ca_file", "dkim"] {
        assert!(main.remove(key).is_some(), "{key}");
    }
    let redis = tree["store"]["redis"].as_table_mut().unwrap();
    for key in ["user", "password_file", "ca_file"] {
        assert!(redis.remove(key).is_some(), "{key}");
    }
    assert!(tree["links"].as_table_mut().unwrap().remove("keys_file").is_some());
    tree
}

const KEY: &str = "0123456789-abcdef-0123456789-abcdef";

#[test]
fn keys_of_links_are_lines_of_a_file() {
    let dir = Dir::new();
    let load = |text: &str| {
        let file = dir.file("links", text);
        dir.load(&format!("[links]\nkeys_file = \"{}\"\n", file.display()))
    };
    let config = load(&format!("{KEY}\n{KEY}x\n")).unwrap();
    assert_eq!(config.links.keys.as_ref().unwrap().expose_secret(), format!("{KEY}\n{KEY}x"));
    assert_eq!(config.links.sealing_keys().len(), 2);
    assert!(!format!("{:?}", config.shown()).contains(KEY));
    let nine = format!("{KEY}\n").repeat(9);
    for wrong in ["short", &format!("{KEY}\n\n{KEY}"), &format!("{KEY} x"), &format!("{KEY}ä"), &nine] {
        let refused = load(wrong).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("links.keys_file: must hold 1 to 8 lines of 32 to 256"), "{refused}");
        assert!(!refused.contains(KEY), "{refused}");
    }
}

#[test]
fn what_nobody_can_unsubscribe_from_says_so() {
    let refused = |text: &str| Dir::new().load(text).map(|_| ()).unwrap_err().to_string();
    let required = refused("[classes.code]\nunsubscribe = true\n");
    assert!(required.contains("classes.code.unsubscribe: must be false for a class that is required"), "{required}");
    let off = refused("[classes.code]\ndefaults = { sms = false }\n");
    assert!(off.contains("classes.code.defaults: must not turn off what is required"), "{off}");
    let named = refused("[classes.digest]\ntitles = { \"d!\" = \"x\" }\n");
    assert!(named.contains("classes.digest.titles.d!: must be a language tag"), "{named}");
    let blank = refused("[classes.digest]\ntitles = { de = \"\" }\n");
    assert!(blank.contains("classes.digest.titles.de: must be a language tag"), "{blank}");
    let channel = refused("[classes.digest]\ndefaults = { letter = false }\n");
    assert!(channel.contains("classes.digest.defaults"), "{channel}");
}
