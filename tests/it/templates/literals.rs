//! What is written out in a template is looked at when it is read, in branches that nobody takes as well; what is missing
//! in the data is told by its name, whatever asks for it.

use belfry::content::{Content, RenderFault};
use belfry_domain::ChannelKind;

use super::{META, filled, folder, one, render};

fn faults(text: &str) -> Vec<String> {
    let dir = folder(&[("t/meta.toml", META), ("t/sms.txt", text)]);
    let problems = Content::load(dir.path()).map(drop).err().unwrap_or_default();
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_wrong_style_or_zone_is_found_in_a_branch_that_is_not_rendered() {
    let of = |tag: &str| faults(&format!("{{% if false %}}\n{{{{ {tag} }}}}\n{{% endif %}}"));
    for (tag, told) in [
        ("at|date('lnog')", "\"lnog\" is no style; did you mean \"long\"?"),
        ("at|time('x')", "\"x\" is no style; a style is short, medium, long or full"),
        ("at|datetime(1)", "a style is short, medium, long or full"),
        ("at|date(style='long')", "`date` takes no `style=`; say `date(\"long\")`"),
        ("at|date('long', 'Asia/Tokyo')", "`date` takes one style; a zone is named: `zone=\"Europe/Stockholm\"`"),
        ("at|time(zon='Asia/Tokyo')", "`time` takes no `zon=`; did you mean `zone=`?"),
        ("at|time(zone='Asia/Tokio')", "there is no time zone \"Asia/Tokio\"; did you mean \"Asia/Tokyo\"?"),
        ("at|time(zone='Mars')", "there is no time zone \"Mars\"; a zone is named as Europe/Stockholm is"),
        ("total|decimal(21)", "a number has from 0 to 20 digits after its point"),
        ("total|percent(places=2)", "`percent` takes no `places=`; say `percent(2)`"),
        ("total|decimal(1, 2)", "`decimal` takes one number of digits"),
        ("total|decimal('2')", "a number has from 0 to 20 digits after its point"),
        ("url|link('https')", "`link` takes nothing"),
        ("total|number(2)", "`number` takes nothing"),
        ("items|map('date', 'lnog')|join", "\"lnog\" is no style; did you mean \"long\"?"),
        ("'01.12.2026'|date", "no time that can be read"),
        ("'1,5'|decimal", "no number"),
    ] {
        let found = of(tag);
        assert_eq!(found.len(), 1, "{tag}: {found:?}");
        assert!(found[0].starts_with(&format!("t/sms.txt:2: {told}")), "{tag}: {found:?}");
    }
    for fine in [
        "at|date",
        "at|date('short')",
        "at|date(how)",
        "at|time('full', zone='europe/stockholm')",
        "at|time(zone=belfry.time_zone or 'UTC')",
        "total|decimal(0)",
        "total|percent(places)",
        "items|map('date', 'long')|join",
        "'2026-12-01'|date",
        "1.5|decimal(2)",
    ] {
        assert_eq!(of(fine), Vec::<String>::new(), "{fine}");
    }
}

/// What was frozen is sent by a newer Belfry as well: its files are not looked at again.
#[test]
fn a_kept_version_with_a_wrong_word_is_still_taken() {
    let fine = one(&[("sms.txt", "{% if x %}{{ at|date('long') }}{% endif %}!")]);
    let version = fine.freeze("t", None).unwrap().version;
    let mut kept = fine.export(&version).unwrap();
    kept.files = kept.files.replace("'long'", "'lnog'");
    let frozen = one(&[("sms.txt", "x")]).import(&kept);
    assert!(frozen.is_ok(), "{frozen:?}");
}

/// Every filter but `default`, with what it takes.
const ASKING: [&str; 47] = [
    "abs",
    "attr('x')",
    "bool",
    "capitalize",
    "count",
    "date('long')",
    "datetime",
    "decimal(2)",
    "dictsort",
    "e",
    "escape",
    "first",
    "float",
    "format(1)",
    "indent(2)",
    "int",
    "items",
    "join(', ')",
    "last",
    "length",
    "lines",
    "link",
    "list",
    "lower",
    "map('upper')",
    "max",
    "min",
    "number",
    "percent",
    "reject('even')",
    "rejectattr('x')",
    "replace('a', 'b')",
    "reverse",
    "round",
    "safe",
    "select('even')",
    "selectattr('x')",
    "sort",
    "split(',')",
    "string",
    "sum",
    "time",
    "title",
    "tojson",
    "trim",
    "unique",
    "upper",
];

#[test]
fn a_variable_that_is_missing_is_named_whatever_filter_asks_for_it() {
    let mut wrong = Vec::new();
    for filter in ASKING.into_iter().chain(["default('x')", "d('x')"]) {
        for (name, pointer) in [("at", "/at"), ("order.at", "/order/at")] {
            let content = one(&[("sms.txt", &format!("Hi\n{{{{ {name}|{filter}|list }}}}"))]);
            let made = render(&content, &filled(&content, "t", None, r#"{"order": {}}"#), ChannelKind::Sms);
            let Err(problem) = made else { panic!("{filter} takes what is missing") };
            let told = (problem.fault, problem.line, problem.pointer.as_deref(), problem.message.as_str());
            let wanted = format!("`{name}` is not in the data");
            let is_told = told == (RenderFault::MissingVariable, 2, Some(pointer), wanted.as_str());
            if is_told != ASKING.contains(&filter) {
                wrong.push(format!("{filter}: {problem}, {:?}", problem.pointer));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn filters_that_are_asked_first_do_what_they_did() {
    let content = one(&[(
        "sms.txt",
        "{{ a|dictsort(reverse=true)|tojson }}|{{ t|indent(2, first=true) }}|{{ t|indent(width=1) }}|{{ '%s-%s'|format(1, 2) }}|\
         {{ t|lines|join(',') }}|{{ t|split('\n', 1)|length }}|{{ l|sort(reverse=true)|join }}|{{ l|max }}{{ l|min }}|{{ '<'|e }}",
    )]);
    let json = r#"{"a": {"x": 1, "y": 2}, "t": "p\nq", "l": [1, 3, 2]}"#;
    let made = render(&content, &filled(&content, "t", None, json), ChannelKind::Sms).unwrap();
    assert_eq!(super::words(&made), "[[\"y\",2],[\"x\",1]]|  p\n  q|p\n q|1-2|p,q|2|321|31|&lt;");
    // Their work is bounded as before.
    let content = one(&[("sms.txt", "{{ t|indent(999999999) }}")]);
    let problem = render(&content, &filled(&content, "t", None, json), ChannelKind::Sms).unwrap_err();
    assert_eq!(
        (problem.fault, problem.message.as_str()),
        (RenderFault::TooLarge, "the template does too much work for one message")
    );
}

#[test]
fn what_only_looks_like_a_name_of_the_template_is_repeated_by_no_error() {
    let content = one(&[("sms.txt", "{{ a - b }} {{ c|int }}")]);
    let json = r#"{"a": "secret` is undefined", "b": "`word` is undefined", "c": "`hidden` is undefined"}"#;
    let problem = render(&content, &filled(&content, "t", None, json), ChannelKind::Sms).unwrap_err().to_string();
    assert!(!["secret", "word", "hidden"].iter().any(|word| problem.contains(word)), "{problem}");
}
