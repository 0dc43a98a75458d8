//! No template and no data, however they are written, cost the process its stack, its memory or
//! its time.

use belfry::content::{Content, RenderFault, TemplateProblem};
use belfry_domain::ChannelKind;
use proptest::prelude::*;

use super::{META, filled, folder, one, render, words};

/// What is said of a template with this text, where it is not taken.
fn refused(text: &str) -> Option<TemplateProblem> {
    let loaded = Content::load(folder(&[("t/meta.toml", META), ("t/sms.txt", text)]).path());
    loaded.err().map(|problems| problems.into_iter().next().unwrap())
}

fn rendered(text: &str, json: &str) -> Result<String, (RenderFault, String)> {
    let content = one(&[("sms.txt", text)]);
    let made = render(&content, &filled(&content, "t", None, json), ChannelKind::Sms);
    made.map(|made| words(&made).to_owned()).map_err(|problem| (problem.fault, problem.to_string()))
}

#[test]
fn nothing_is_built_that_grows_by_itself() {
    for text in [
        "{% set ns = namespace(a=[]) %}x",
        "{% set a = dict(x=1) %}x",
        "{% set a = [a] %}x",
        "{% set a = [a, a] %}x",
        "{% set a = (a, a) %}x",
        "{% set a = {'x': a, 'y': a} %}x",
        "{% set a = a + a %}x",
        "{% set a = a * 2 %}x",
        "{% set a = 2 * a %}x",
        "{% set a = (a if b else [a, a]) %}x",
        "{% set a = b or [a, a] %}x",
        "{% set a = [a, a]|list %}x",
        "{% set a = [a, a]|sort %}x",
        "{% set a = [a, a]|default(1) %}x",
        "{% set a = b|default([a, a]) %}x",
        "{% set a = a|chain(a) %}x",
        "{% set a = a|zip(a) %}x",
        "{% set a = a|batch(2, a) %}x",
        "{% set a = a|groupby('x') %}x",
        "{% set a = rows|map(attribute='x', default=a)|list %}x",
        "{% set a = rows|map('default', a, true)|list %}x",
        "{% set a = rows|sum(start=a) %}x",
        "{% set a = a[0:] %}x",
        "{% set a = a|reverse %}x",
        "{% with a = [b, b] %}x{% endwith %}",
        "{% for x in [[a, a]] %}x{% endfor %}",
        "{% for x in [a + a] %}x{% endfor %}",
        "{% macro f(a=[b]) %}{% endmacro %}x",
        "{% macro f(a) %}{% endmacro %}{{ f([b, b]) }}",
        "{% macro f(a) %}{% endmacro %}{{ f(b + b) }}",
        "{% macro f(a) %}{% endmacro %}{% call f([b]) %}{% endcall %}",
        "{{ a * 100000000 ~ '' }}",
        "{{ (a * 100000000)|string }}",
        "{{ (a * 100000000)|join }}",
        "{{ a * 2 == b * 2 }}",
        "{{ [a, a] ~ '' }}",
        "{{ [a, a]|upper }}",
        "{% for a in x %}{% set b = [a] %}{% endfor %}",
        "{% block b %}{% filter replace('x', [a]) %}{% endfilter %}{% endblock %}",
    ] {
        let problem = refused(text).unwrap_or_else(|| panic!("taken: {text}"));
        assert_eq!((problem.file.as_str(), problem.line), ("sms.txt", 1), "{text}: {problem}");
    }
}

#[test]
fn what_templates_need_is_there() {
    let json = r#"{"n": 2, "price": 9.50, "name": "Ada Lovelace", "list": ["b", "a", "c"], "of": {"b": 1, "a": 2}}"#;
    for (text, expected) in [
        ("{{ n + 1 }} {{ n * 2 }} {{ n - 1 }}", "3 4 1"),
        ("{% set twice = n|number * 2 %}{{ twice + 1 }}", "5"),
        ("{% set sum = (n + n)|number %}{{ sum }}", "4"),
        ("{% set line = '-' * 3 %}{{ line }}", "---"),
        ("{% set next = n + 1 %}{{ next }}", "3"),
        ("{{ '%.2f'|format(price|number * 3) }}", "28.50"),
        ("{% if n * 2 > 3 %}yes{% endif %}", "yes"),
        ("{{ [name, n]|join(', ') }}", "Ada Lovelace, 2"),
        ("{% if n in [1, 2] and name in [name, 'x'] %}yes{% endif %}", "yes"),
        ("{% for x in [n, name] %}{{ x }};{% endfor %}", "2;Ada Lovelace;"),
        ("{{ {'a': n, 'b': name}['b'] }}", "Ada Lovelace"),
        ("{% set words = {'a': 'A', 'b': ['B', 'BB']} %}{{ words.b[1] }}", "BB"),
        ("{% set a, b = name, n %}{{ b }}{{ a }}", "2Ada Lovelace"),
        ("{% for x in list[:2] %}{{ x }}{% endfor %}{{ list|sort|first }}{{ name[:3] }}", "baaAda"),
        ("{% set short = name[:3]|string %}{{ short }}{{ list|reverse|join }}", "Adacab"),
        ("{% for k, v in of|items %}{{ k }}{{ v }}{% endfor %}", "a2b1"),
        ("{% for x in list %}{{ loop.index + 1 }}{{ x if not loop.last else '.' }}{% endfor %}", "2b3a4."),
        ("{{ list|map('upper')|join }}{{ [of]|map(attribute='a')|join }}", "BAC2"),
        ("{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f(name[:3]) }}{{ f(n + 1) }}", "<Ada><3>"),
        ("{% if list|length * 2 == 6 %}six{% endif %}", "six"),
    ] {
        assert_eq!(rendered(text, json).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn texts_too_deep_for_the_parser_are_refused_before_it() {
    let many = |what: &str, times: usize| what.repeat(times);
    for (text, says) in [
        (format!("{{{{ {}1 }}}}", many("not ", 24_000)), "words and marks"),
        (format!("{{{{ 1{} }}}}", many("~1", 30_000)), "words and marks"),
        (format!("{{{{ 1{} }}}}", many("|string", 30_000)), "words and marks"),
        (format!("{{{{ {}1 }}}}", many("-", 24_000)), "words and marks"),
        (format!("{{{{ '}}}}' {} }}}}", many("~1", 30_000)), "words and marks"),
        (format!("{{% if 1 %}}{}{{% endif %}}", many("{% elif 1 %}", 9_000)), "`elif`"),
        (many("{% if 1 %}", 9_000), "recursion"),
        (many("{{ 1 }}", 30_000), "words and marks"),
        (format!("{{{{ {}{} }}}}", many("[", 900), many("]", 900)), "recursion"),
    ] {
        let problem = refused(&text).unwrap_or_else(|| panic!("taken: {says}"));
        assert!(problem.message.contains(says), "{problem}");
        assert_eq!((problem.file.as_str(), problem.line), ("sms.txt", 1));
    }
}

/// The deepest that is let through, in frames larger than a release's.
#[test]
fn the_deepest_that_is_taken_fits_its_stack() {
    let many = |what: &str, times: usize| what.repeat(times);
    for text in [
        format!("{{{{ {}1 }}}}", many("not ", 1_900)),
        format!("{{{{ 1{} }}}}", many("~1", 990)),
        format!("{{{{ x{} }}}}", many("|string", 990)),
        format!("{{{{ {}1 }}}}", many("-", 1_900)),
        format!("{{{{ {}1 }}}}", many("1 if 1 else ", 600)),
        format!("{{{{ x{} }}}}", many("[0:]", 390)),
        format!("{{% if 0 %}}{}x{{% endif %}}", many("{% elif 0 %}", 499)),
        format!("{{{{ {}1{} }}}}", many("(", 70), many(")", 70)),
        format!("{}x{}", many("{% if 1 %}", 140), many("{% endif %}", 140)),
        format!("{}x{}", many("{% for a in [1] %}", 36), many("{% endfor %}", 36)),
        // Straight on, as often as a file may.
        format!("{}{{{{ a }}}}", many("{% set a = (a|default('x'))[0:]|string %}", 2_500)),
        "{% macro f(a) %}{{ f(a[0:][0:][0:]) }}{% endmacro %}{{ f(x) }}".to_owned(),
        "{% for a in [x] recursive %}{{ loop(a) }}{% endfor %}".to_owned(),
        "{% include 'sms.txt' %}".to_owned(),
    ] {
        if let Ok(content) = Content::load(folder(&[("t/meta.toml", META), ("t/sms.txt", &text)]).path()) {
            let inputs = filled(&content, "t", None, r#"{"x": ["y", ["z"]]}"#);
            // Made or refused: what counts is that both come back.
            let made = render(&content, &inputs, ChannelKind::Sms);
            assert!(made.is_ok_or_fault(), "{}", &text[..60.min(text.len())]);
        }
    }
}

trait Came {
    fn is_ok_or_fault(&self) -> bool;
}

impl<T> Came for Result<T, belfry::content::RenderProblem> {
    fn is_ok_or_fault(&self) -> bool {
        self.as_ref().err().is_none_or(|problem| problem.fault != RenderFault::Late)
    }
}

#[test]
fn calling_each_other_without_end_is_said_as_such() {
    for text in ["{% include 'sms.txt' %}", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"] {
        let (fault, said) = rendered(text, "{}").unwrap_err();
        assert_eq!(fault, RenderFault::TooLarge);
        assert!(said.contains("call each other"), "{said}");
    }
}

#[test]
fn much_data_in_many_items_is_bounded_work() {
    let items = |many: usize| format!("{{\"items\": [{}1]}}", "1,".repeat(many));
    for (text, many) in [
        ("{{ items|join(items|string) }}", 40_000),
        ("{{ items|map('string')|join(',')|replace('1', items|string) }}", 40_000),
        ("{{ range(90000)|map('string')|join(',') }}", 1),
        ("{{ ('a' * 9000)|split('a')|list|length * 99999999 }}", 1),
        (
            "{% set a = '0123456789' %}{% for x in items %}{% set a = a ~ a %}{% endfor %}{{ items|tojson|length }}",
            9_000,
        ),
        ("{{ '%9999999999d'|format(1) }}", 1),
    ] {
        // Whatever it says: it says it, in time.
        let made = rendered(text, &items(many));
        assert!(made.is_ok() || !matches!(made, Err((RenderFault::Late, _))), "{text}: {made:?}");
    }
}

/// Comparing two large values costs the engine's fuel next to nothing, and takes a while.
const SLOW: &str = "{% for x in range(9000) %}{% if a == b %}{% endif %}{% endfor %}x";

fn large() -> String {
    let rows = format!("[[{}1]]", "1,".repeat(400_000));
    format!("{{\"a\": {rows}, \"b\": {rows}}}")
}

#[test]
fn what_does_not_finish_is_given_up_and_named_and_others_go_on() {
    let content = one(&[("sms.txt", SLOW), ("push.json", "{\"title\": \"{{ n }}\"}")]);
    let other = one(&[("sms.txt", "{{ n }}")]);
    let inputs = filled(&content, "t", None, &large());
    let problem = render(&content, &inputs, ChannelKind::Sms).unwrap_err();
    assert_eq!(problem.fault, RenderFault::Late);
    assert_eq!(problem.to_string(), "t/sms.txt: did not finish within 2 s");
    // While it runs on, its template is refused at once, and others are made as ever.
    let again = render(&content, &inputs, ChannelKind::Apns).unwrap_err();
    assert_eq!((again.fault, again.file.as_str()), (RenderFault::Late, "t"));
    for at in 0..8 {
        let inputs = filled(&other, "t", None, &format!("{{\"n\": {at}}}"));
        assert_eq!(words(&render(&other, &inputs, ChannelKind::Sms).unwrap()), at.to_string());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever is put together from the language's words: it is refused, or made, in time.
    #[test]
    fn any_words_of_the_language_come_to_an_end(
        tags in proptest::collection::vec(
            prop_oneof![
                Just("{% set a = a|default(x) %}"), Just("{% set a = a|map('list')|list %}"),
                Just("{% set a = (a|default(x))|list %}"), Just("{% for x in x %}"), Just("{% endfor %}"),
                Just("{% for y in [x, a] %}"), Just("{% macro m(q) %}"), Just("{% endmacro %}"), Just("{{ m(x) }}"),
                Just("{{ a|string ~ x }}"), Just("{% if a == x %}"), Just("{% endif %}"), Just("{% set x = x ~ x %}"),
                Just("{{ x|tojson }}"), Just("{% include 'sms.txt' %}"), Just("{{ a|unique|sort|join }}"),
                Just("{% set a = x|dictsort|list %}"), Just("{{ loop(x) }}"), Just("{% set a = [1, [2, 3]] %}"),
            ],
            1..24,
        ),
    ) {
        let text = tags.concat();
        if let Ok(content) = Content::load(folder(&[("t/meta.toml", META), ("t/sms.txt", &text)]).path()) {
            let inputs = filled(&content, "t", None, r#"{"x": [["p", {"k": "v"}], "q", 1.50]}"#);
            let made = render(&content, &inputs, ChannelKind::Sms);
            prop_assert!(made.is_ok_or_fault(), "{text}");
        }
    }
}
