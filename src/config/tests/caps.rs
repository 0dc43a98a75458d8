//! `[caps.<name>]`: what is read, and what is refused.

use std::time::Duration;

use belfry_domain::ChannelKind;
use belfry_domain::caps::{Cap, Per, Then};

use super::{Config, Dir, Sources};

const RECEIPTS: &str = "[caps.receipts_per_order]\nper = \"scope\"\nlimit = 3\nwindow = \"1h\"\nthen = \"suppress\"\n";

#[test]
fn a_class_has_the_caps_that_it_names_and_a_cap_counts_the_classes_that_name_it() {
    let text = format!(
        "{RECEIPTS}channels = [\"email\"]\ntemplates = [\"receipt\"]\n\
         [caps.texts]\nper = \"prefix\"\ndigits = 4\nlimit = 100\nwindow = \"1d\"\nthen = \"defer\"\n\
         [classes.receipt]\ncaps = [\"receipts_per_order\", \"texts\"]\n[classes.code]\ncaps = [\"texts\"]\n"
    );
    let config = Dir::new().load(&text).unwrap();
    let receipts = Cap {
        name: "receipts_per_order".into(),
        per: Per::Scope,
        limit: 3,
        window: Duration::from_secs(3_600),
        then: Then::Suppress,
        classes: vec!["receipt".into()],
        channels: vec![ChannelKind::Email],
        templates: vec!["receipt".into()],
    };
    let texts = Cap {
        name: "texts".into(),
        per: Per::Prefix { digits: 4 },
        limit: 100,
        window: Duration::from_secs(24 * 3_600),
        then: Then::Defer,
        classes: vec!["code".into(), "receipt".into()],
        channels: vec![],
        templates: vec![],
    };
    let expected = [("code".to_owned(), vec![texts.clone()]), ("receipt".to_owned(), vec![receipts, texts])];
    assert_eq!(config.policy_parts().caps, expected.into());
    let shown: Vec<String> = config
        .shown()
        .iter()
        .filter(|one| one.key.starts_with("caps.texts.") || one.key == "classes.code.caps")
        .map(|one| format!("{} = {}", one.key, one.value))
        .collect();
    assert_eq!(
        shown,
        [
            "caps.texts.channels = []",
            "caps.texts.digits = 4",
            "caps.texts.limit = 100",
            "caps.texts.per = \"prefix\"",
            "caps.texts.templates = []",
            "caps.texts.then = \"defer\"",
            "caps.texts.window = \"1d\"",
            "classes.code.caps = [\"texts\"]",
        ]
    );
}

#[test]
fn without_any_there_are_none() {
    assert!(Config::load(&Sources::default()).unwrap().policy_parts().caps.is_empty());
}

/// Lines after `[caps.x]`, which the class of receipts names, and the one problem.
const BAD: &[(&str, &str)] = &[
    ("per = \"scope\"\nlimit = 0", "caps.x.limit: must be from 1 to 10000"),
    ("per = \"scope\"\nlimit = 10001", "caps.x.limit: must be from 1 to 10000"),
    ("per = \"scope\"\nlimit = -1", "caps.x.limit: expected a whole number"),
    ("per = \"scope\"\nlimit = 1\nwindow = \"999ms\"", "caps.x.window: must be from 1s to 31d"),
    ("per = \"scope\"\nlimit = 1\nwindow = \"32d\"", "caps.x.window: must be from 1s to 31d"),
    ("per = \"scope\"\nlimit = 1\nwindow = 60", "caps.x.window: expected a duration"),
    ("per = \"order\"\nlimit = 1", "caps.x.per: expected one of \"recipient\", \"address\", \"scope\", \"prefix\""),
    ("per = \"prefix\"\nlimit = 1", "caps.x: lacks the key \"digits\""),
    ("per = \"prefix\"\nlimit = 1\ndigits = 7", "caps.x.digits: must be from 1 to 6"),
    ("per = \"prefix\"\nlimit = 1\ndigits = 0", "caps.x.digits: must be from 1 to 6"),
    ("per = \"scope\"\nlimit = 1\ndigits = 4", "caps.x.digits: has a meaning with per = \"prefix\" only"),
    ("per = \"prefix\"\nlimit = 1\ndigits = 4\nchannels = [\"email\"]", "caps.x.channels: leaves out sms"),
    ("per = \"scope\"\nlimit = 1\nchannels = [\"emial\"]", "did you mean \"email\"?"),
    ("per = \"scope\"", "caps.x: lacks the key \"limit\""),
    ("per = \"scope\"\nlimit = 1\nlimt = 2", "caps.x.limt: no such key; did you mean \"limit\"?"),
    ("per = \"scope\"\nlimit = 1\nthen = \"drop\"", "caps.x.then: expected one of \"defer\", \"suppress\""),
];

#[test]
fn a_cap_that_cannot_be_kept_is_one_problem() {
    for (lines, expected) in BAD {
        let rest = [("window", "window = \"1h\"\n"), ("then", "then = \"defer\"\n")];
        let rest: String = rest.iter().filter(|(key, _)| !lines.contains(key)).map(|(_, line)| *line).collect();
        let text = format!("[caps.x]\n{lines}\n{rest}[classes.receipt]\ncaps = [\"x\"]\n");
        let refused = Dir::new().load(&text).map(|_| ()).expect_err(lines);
        assert_eq!(refused.problems.len(), 1, "{refused}");
        assert!(refused.to_string().contains(expected), "{lines}\ngave\n{refused}");
    }
}

#[test]
fn what_names_no_cap_and_what_no_class_names_is_refused() {
    let many: Vec<String> = (0..17).map(|at| format!("\"c{at}\"")).collect();
    let all: String = (0..17).map(|at| RECEIPTS.replace("receipts_per_order", &format!("c{at}"))).collect();
    for (text, expected) in [
        (RECEIPTS.to_owned(), "caps.receipts_per_order: counts nothing: no class names it"),
        ("[classes.code]\ncaps = [\"x\"]\n".into(), "classes.code.caps: there is no cap \"x\"; define [caps.x]"),
        (
            format!("{RECEIPTS}[classes.receipt]\ncaps = [\"receipts_per_order\", \"receipt_per_order\"]\n"),
            "classes.receipt.caps: there is no cap \"receipt_per_order\"; did you mean \"receipts_per_order\"?",
        ),
        (
            format!("{RECEIPTS}[classes.receipt]\ncaps = [\"receipts_per_order\", \"receipts_per_order\"]\n"),
            "classes.receipt.caps: names \"receipts_per_order\" twice",
        ),
        (
            format!("{all}[classes.receipt]\ncaps = [{}]\n", many.join(", ")),
            "classes.receipt.caps: names 17 caps; one message comes under 16 at the most",
        ),
        (
            format!("{RECEIPTS}[caps.Odd]\nlimit = 1\n[classes.receipt]\ncaps = [\"receipts_per_order\"]\n"),
            "caps.Odd: is no name",
        ),
    ] {
        let refused = Dir::new().load(&text).map(|_| ()).expect_err(&text);
        assert_eq!(refused.problems.len(), 1, "{refused}");
        assert!(refused.to_string().contains(expected), "{text}\ngave\n{refused}");
    }
}
