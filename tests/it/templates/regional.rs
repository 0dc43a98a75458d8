//! Dates and numbers in the language of the part and the zone of the recipient.

use belfry::content::Content;
use belfry_domain::ChannelKind;

use super::{META, filled, folder, mail, one, render, words};

fn said(content: &Content, locale: Option<&str>, zone: Option<&str>, json: &str) -> String {
    let mut inputs = filled(content, "t", locale, json);
    inputs.time_zone = zone.map(str::to_owned);
    words(&render(content, &inputs, ChannelKind::Sms).unwrap_or_else(|problem| panic!("{problem}"))).to_owned()
}

#[test]
fn the_language_is_the_parts_and_the_zone_the_recipients() {
    let content = one(&[
        ("subject.txt", "{{ at|date('long') }}"),
        ("text.txt", "x"),
        ("sms.txt", "{{ at|datetime('long') }}, {{ at|time('short', zone='Asia/Tokyo') }}, {{ sum|decimal(2) }}"),
        ("de/sms.txt", "{{ at|datetime('long') }}, {{ sum|decimal(2) }}, {{ part|percent }}"),
    ]);
    let json = r#"{"at": "2026-07-01T21:30:00Z", "sum": 1234.5, "part": 0.125}"#;
    assert_eq!(
        said(&content, Some("fr"), Some("America/New_York"), json),
        "July 1, 2026 at 5:30 PM UTC-4, 6:30 AM, 1,234.50"
    );
    // SMS has no narrow space: one of them would make three messages of one.
    assert_eq!(
        said(&content, Some("de-AT"), Some("Europe/Vienna"), json),
        "1. Juli 2026 um 23:30 UTC+2, 1.234,50, 12,5 %"
    );
    assert!(said(&content, Some("de"), None, json).starts_with("1. Juli 2026 um 21:30 UTC, "));
    // The German has no subject of its own, so its date is English too.
    let mut inputs = filled(&content, "t", Some("de"), json);
    inputs.time_zone = Some("Europe/Berlin".to_owned());
    assert_eq!(mail(&content, &inputs).subject, "July 1, 2026");
}

#[test]
fn macros_and_shared_files_speak_the_language_of_the_part() {
    let dir = folder(&[
        ("t/meta.toml", META),
        ("t/subject.txt", "s"),
        ("t/text.txt", "x"),
        ("t/sms.txt", "{% import '_shared/kit.txt' as kit %}{{ kit.day(at) }}"),
        ("t/sv/sms.txt", "{% import '_shared/kit.txt' as kit %}{{ kit.day(at) }} {% include '_shared/foot.txt' %}"),
        ("_shared/kit.txt", "{% macro day(at) %}{{ at|date('full') }}{% endmacro %}"),
        ("_shared/foot.txt", "{{ at|date('short') }}"),
    ]);
    let content = Content::load(dir.path()).unwrap();
    let json = r#"{"at": "2026-12-01"}"#;
    assert_eq!(said(&content, None, None, json), "Tuesday, December 1, 2026");
    assert_eq!(said(&content, Some("sv-FI"), None, json), "tisdag 1 december 2026 2026-12-01");
}

#[test]
fn what_is_no_time_or_number_is_an_error_with_its_pointer() {
    for (template, json, told) in [
        ("{{ a.at|date }}", r#"{"a": {"at": "01.12.2026"}}"#, "no time that can be read"),
        ("{{ a.at|date }}", r#"{"a": {"at": 20261201}}"#, "no time that can be read"),
        ("{{ a.at|time }}", r#"{"a": {"at": "2026-12-01"}}"#, "a day has no time of day"),
        ("{{ a.at|date(a.how) }}", r#"{"a": {"at": "2026-12-01", "how": "huge"}}"#, "a style is short"),
        (
            "{{ a.at|datetime(zone=a.zone) }}",
            r#"{"a": {"at": "2026-12-01T00:00:00Z", "zone": "Mars/North"}}"#,
            "there is no such time zone",
        ),
        ("{{ a.at|decimal(2) }}", r#"{"a": {"at": "1,5"}}"#, "no number"),
        ("{{ a.at|decimal(a.places) }}", r#"{"a": {"at": 1, "places": 21}}"#, "from 0 to 20 digits"),
    ] {
        let content = one(&[("sms.txt", &format!("\n{template}"))]);
        let problem = render(&content, &filled(&content, "t", None, json), ChannelKind::Sms).unwrap_err();
        assert!(problem.message.contains(told), "{problem}");
        assert_eq!((problem.line, problem.pointer.as_deref()), (2, Some("/a/at")), "{problem}");
        assert!(!problem.to_string().contains("01.12.2026"));
    }
}

#[test]
fn many_dates_are_bounded_work() {
    let content = one(&[("text.txt", "{% for x in a %}{{ x|datetime('full') }}\n{% endfor %}"), ("subject.txt", "s")]);
    let json = |count: usize| format!("{{\"a\": [{}]}}", vec!["\"2026-12-01T00:00:00Z\""; count].join(","));
    assert_eq!(mail(&content, &filled(&content, "t", None, &json(1_000))).text.lines().count(), 1_000);
    let inputs = filled(&content, "t", None, &json(10_000));
    assert!(render(&content, &inputs, ChannelKind::Email).unwrap_err().message.contains("too much work"));
}

#[test]
fn languages_stand_in_for_others_as_the_meta_file_says() {
    let meta = format!("{META}fallback = {{ gsw = [\"de\"], \"pt-BR\" = [\"pt-PT\", \"de\"] }}\n");
    let dir = folder(&[
        ("t/meta.toml", &meta),
        ("t/subject.txt", "en"),
        ("t/text.txt", "en"),
        ("t/de/subject.txt", "de {{ '2026-12-01'|date('long') }}"),
        ("t/de/text.txt", "de"),
        ("t/pt-BR/subject.txt", "pt-BR"),
        ("t/pt-PT/text.txt", "pt-PT"),
        ("t/gsw-FR/text.txt", "gsw-FR"),
    ]);
    let content = Content::load(dir.path()).unwrap();
    for (wanted, locale, subject, text) in [
        ("gsw-CH", "de", "de 1. Dezember 2026", "de\n"),
        ("gsw-FR", "gsw-FR", "de 1. Dezember 2026", "gsw-FR\n"),
        ("pt-BR", "pt-BR", "pt-BR", "pt-PT\n"),
        ("pt", "en", "en", "en\n"),
    ] {
        let inputs = filled(&content, "t", Some(wanted), "{}");
        assert_eq!(content.freeze("t", Some(wanted)).unwrap().locale, locale, "{wanted}");
        let mail = mail(&content, &inputs);
        assert_eq!((mail.subject.as_str(), mail.text.as_str()), (subject, text), "{wanted}");
    }
    for (fallback, told) in [
        ("{ a1 = [\"de\"] }", "t/meta.toml:4: `a1` is no locale"),
        ("{ gsw = [\"als\"], als = [\"gsw\"] }", "t/meta.toml:4: `als` falls back to itself"),
        ("{ gsw = [\"fr\"] }", "t/meta.toml: `fallback` names `fr`, and there are no files in this language"),
        ("[\"de\"]", "t/meta.toml:4: `fallback` must be a table"),
    ] {
        let meta = format!("{META}fallback = {fallback}\n");
        let found =
            Content::load(folder(&[("t/meta.toml", &meta), ("t/text.txt", "x")]).path()).err().expect("a problem");
        assert!(found.iter().any(|one| one.to_string().starts_with(told)), "{told}: {found:?}");
    }
}
