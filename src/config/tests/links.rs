use belfry_domain::preferences::Switches;
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
}

#[test]
fn defaults_name_every_channel() {
    let all = |word: &str| ChannelKind::ALL.iter().map(|channel| format!("{channel} = {word}, ")).collect::<String>();
    let text = format!("[classes.digest]\ndefaults = {{ {}all = true }}\n", all("false"));
    let config = Dir::new().load(&text).unwrap();
    let defaults = &config.policy_parts().rules["digest"].defaults;
    assert!(ChannelKind::ALL.iter().all(|channel| !defaults.on(*channel)) && defaults.all == Some(true));
    assert_eq!(config.policy_parts().rules["marketing"].defaults, Switches::default());
}

#[test]
fn links_that_lead_nowhere_are_noted_where_mail_really_goes_out() {
    let smtp = "[providers.main]\nkind = \"smtp\"\nurl = \"smtp://127.0.0.1:25\"\nfrom = \"a@b.example\"\n\
                [channels.email]\nproviders = [\"main\"]\n";
    let notes = |text: &str| {
        let notes = Dir::new().load(text).unwrap().notes();
        notes.into_iter().map(|note| (note.key, note.what, note.matters)).collect::<Vec<_>>()
    };
    let [(key, what, true)] = &notes(smtp)[..] else { panic!("{:?}", notes(smtp)) };
    assert_eq!(key, "http.public_url");
    assert!(
        what.starts_with(
            "is not set: mail of digest, marketing has a link to unsubscribe that leads to http://127.0.0.1:8090,"
        ),
        "{what}"
    );
    let plain = format!("[http]\npublic_url = \"http://notify.example.com\"\n{smtp}");
    assert!(notes(&plain)[0].1.starts_with("is not https: mail of digest, marketing has"), "{:?}", notes(&plain));
    let off = "[classes.digest]\nunsubscribe = false\n[classes.marketing]\nunsubscribe = false\n";
    let pretend = "[providers.main]\nkind = \"outbox\"\n[channels.email]\nproviders = [\"main\"]\n";
    for quiet in ["", pretend, &format!("[http]\npublic_url = \"https://b.example\"\n{smtp}"), &format!("{off}{smtp}")]
    {
        assert_eq!(notes(quiet), [], "{quiet}");
    }
}

#[test]
fn classes_of_one_title_are_noted_by_language() {
    let text = "[classes.news]\norder = \"record_then_send\"\ntitles = { en = \"News and offers\", de = \"Neues\" }\n";
    let [Note { key, what, matters: false }] = &Dir::new().load(text).unwrap().notes()[..] else { panic!() };
    assert_eq!(key, "classes.news.titles.en");
    assert_eq!(what, "is what marketing is called as well: recipients see the names marketing and news beside it");
}

#[test]
fn the_embedded_classes_are_called_something_in_each_language_of_the_pages() {
    let config = Config::load(&Sources::default()).unwrap();
    for (name, class) in &config.classes {
        let languages: Vec<&str> = class.titles.keys().map(String::as_str).collect();
        assert_eq!(languages, ["de", "en", "es", "fr", "nl", "sv"], "{name}");
    }
}
