//! A start with a faulty template is refused, and the fault is named; so is one that only shows
//! with the data.

use belfry::content::{Content, RenderFault, TemplateProblem};
use belfry_domain::ChannelKind;

use super::{META, filled, folder, mail, one, render, to, words};

fn problems(files: &[(&str, &str)]) -> Vec<TemplateProblem> {
    Content::load(folder(files).path()).err().expect("a problem")
}

#[test]
fn every_fault_is_named_at_once_with_file_and_line() {
    let found = problems(&[
        ("a/meta.toml", META),
        ("a/text.txt", "one\ntwo {{ x y }}\nthree"),
        ("a/html.html", "<p>\n\n{% if x %}</p>"),
        ("a/sample.json", "{\"a\": 1,}"),
        ("b/meta.toml", "description = \"d\"\nchannels = [\"email\"]\nlocale = \"en\"\ncolour = 1\n"),
        ("c/text.txt", "no meta"),
        ("d/meta.toml", "description = \"d\"\nchannels = [\"pigeon\"]\nlocale = \"English\"\n[headers]\nTo = \"x\"\n"),
        ("e/meta.toml", "colour = 1\n"),
        ("f/meta.toml", "description = \"d\"\nchannels = [\"mail\"]\nlocale = \"en\"\nheders = {}\n"),
        ("e/subject.text", "no place for it"),
        ("e/text.txt", "{{ x y }}"),
    ]);
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    let starts = |start: &str| assert!(shown.iter().any(|one| one.starts_with(start)), "{start}: {shown:#?}");
    starts("a/text.txt:2: ");
    starts("a/html.html:3: ");
    starts("a/sample.json: not valid JSON");
    starts("b/meta.toml:4: ");
    starts("c/meta.toml: is missing");
    starts(
        "d/meta.toml:2: `pigeon` is no channel; there are push, email, apns, fcm, web_push, sms, webhook, chat, inbox",
    );
    starts("f/meta.toml:2: `mail` is no channel (did you mean `email`?); there are push, email,");
    starts("f/meta.toml:4: `heders` is no key; did you mean `headers`?");
    starts("d/meta.toml:3: `English` is no locale");
    starts("d/meta.toml:5: header `To` is set by Belfry: use `to`");
    starts("e/meta.toml:1: `colour` is no key");
    for key in ["description", "channels", "locale"] {
        starts(&format!("e/meta.toml: lacks the key `{key}`"));
    }
    starts("e/subject.text: not a template's file");
    starts("e/text.txt:1: ");
    assert_eq!(shown.len(), 16, "{shown:#?}");
}

#[test]
fn files_without_a_place_are_refused_by_name() {
    for (path, says) in [
        ("a/html.mjml", "one <mjml> element"),
        ("a/de/mail.mjml", "not a template's file"),
        ("a/html.htm", "not a template's file"),
        ("a/de/meta.toml", "not a template's file"),
        ("a/deutsch!/text.txt", "is not a locale"),
        ("a/de/at/text.txt", "a folder has no place here"),
        ("A/text.txt", "a template's name is"),
        ("readme.txt", "a template is a folder"),
    ] {
        let found = problems(&[("a/meta.toml", META), (path, "x")]);
        assert!(found.iter().any(|one| one.message.contains(says)), "{path}: {found:?}");
    }
    let missing = tempfile::tempdir().unwrap().path().join("none");
    assert!(Content::load(&missing).is_err());
    assert!(Content::load_or_built_in(&missing).is_err(), "a folder that was named has to be there");
}

#[test]
fn a_missing_variable_is_named_and_no_value_is_told() {
    let content = one(&[
        ("subject.txt", "s"),
        ("text.txt", "Hello {{ name }}\n\n{% for item in order.items %}\n{{ item.price }}\n{% endfor %}"),
        ("sms.txt", "{{ order.nmae }}"),
        ("push.json", "{\"title\": \"{{ secret + 1 }}\", \"body\": \"\"}"),
    ]);
    let json = r#"{"name": "n", "secret": "hunter2", "order": {"items": [{"name": "hunter2"}]}}"#;
    let inputs = filled(&content, "t", None, json);
    let told = |channel| render(&content, &inputs, channel).unwrap_err();
    let text = told(ChannelKind::Email);
    assert_eq!(text.to_string(), "t/text.txt:4: `item.price` is not in the data");
    assert_eq!((text.fault, text.pointer.as_deref()), (RenderFault::MissingVariable, Some("/order/items")));
    assert_eq!(told(ChannelKind::Sms).pointer.as_deref(), Some("/order/nmae"));
    let push = told(ChannelKind::Apns);
    assert!(push.to_string().starts_with("t/push.json:1: ") && !push.to_string().contains("hunter2"), "{push}");
}

#[test]
fn nothing_in_the_language_gives_two_answers_or_shows_everything() {
    for (gone, says) in [
        ("{{ now() }}", "there is no function or macro `now`"),
        ("{{ random() }}", "there is no function or macro `random`"),
        ("{{ debug() }}", "there is no function or macro `debug`"),
        ("{{ uuid() }}", "there is no function or macro `uuid`"),
        ("{{ env('HOME') }}", "there is no function or macro `env`"),
        ("{{ 1|pprint }}", "there is no filter `pprint`"),
        ("{{ 'a'|shout }}", "there is no filter `shout`"),
        ("{{ list|map('shout') }}", "there is no filter `shout`"),
        ("{{ list|select('loud') }}", "there is no test `loud`"),
        ("{{ 1 is loud }}", "there is no test `loud`"),
    ] {
        let text = format!("one\n{{% if true %}}\n{gone}{{% endif %}}");
        let found = problems(&[("t/meta.toml", META), ("t/sms.txt", &text)]);
        assert_eq!(found[0].to_string(), format!("t/sms.txt:3: {says}"));
        assert_eq!(found.len(), 1, "{found:?}");
    }
}

#[test]
fn a_literal_is_no_place_in_the_data() {
    for text in ["{{ 1|link }}", "{{ 'a'|number }}", "{{ -1|link }}"] {
        let content = one(&[("sms.txt", text)]);
        let problem = render(&content, &filled(&content, "t", None, "{}"), ChannelKind::Sms).unwrap_err();
        assert_eq!((problem.fault, problem.pointer), (RenderFault::Failed, None), "{text}");
    }
}

#[test]
fn work_and_size_are_bounded() {
    let endless =
        "{% for a in range(9999) %}{% for b in range(9999) %}{% set c = (a * b)|number %}{% endfor %}{% endfor %}";
    for (template, json) in [
        (endless, "{}"),
        ("{{ 'x' * 90000000 }}", "{}"),
        ("{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}", "{}"),
        (
            "{{ (x|string * 9000)|string }}",
            r#"{"x": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#,
        ),
        ("{{ x }}", &format!(r#"{{"x": "{}"}}"#, "y".repeat(1_601))),
    ] {
        let content = one(&[("sms.txt", template)]);
        let problem = render(&content, &filled(&content, "t", None, json), ChannelKind::Sms).unwrap_err();
        assert!(matches!(problem.fault, RenderFault::TooLarge | RenderFault::Failed), "{problem}");
    }
    let content =
        one(&[("push.json", "{\"title\": \"\", \"body\": \"{{ x }}\"}"), ("subject.txt", "{{ x }}"), ("text.txt", "")]);
    let inputs = filled(&content, "t", None, &format!(r#"{{"x": "{}"}}"#, "é".repeat(2_040)));
    assert_eq!(render(&content, &inputs, ChannelKind::Apns).unwrap_err().fault, RenderFault::TooLarge);
    assert_eq!(render(&content, &inputs, ChannelKind::Email).unwrap_err().fault, RenderFault::TooLarge);
    let inputs = filled(&content, "t", None, &format!(r#"{{"x": "{}"}}"#, "é".repeat(1_970)));
    assert_eq!(words(&render(&content, &inputs, ChannelKind::Apns).unwrap()).len(), 40 + 2 * 1_970);
}

#[test]
fn line_ends_at_the_end_are_the_parts_own() {
    let content = one(&[
        ("subject.txt", "\n Two\n lines\n\n"),
        ("text.txt", "text\n\n\n"),
        ("html.html", "<p>html</p>"),
        ("sms.txt", "\nsms\nline\n\n"),
    ]);
    let inputs = filled(&content, "t", None, "{}");
    let mail = mail(&content, &inputs);
    assert_eq!(
        (mail.subject.as_str(), mail.text.as_str(), mail.html.as_deref()),
        ("Two lines", "text\n", Some("<p>html</p>\n"))
    );
    assert_eq!(words(&render(&content, &inputs, ChannelKind::Sms).unwrap()), "sms\nline");
}

#[test]
fn the_nearest_language_is_found() {
    let content = one(&[
        ("subject.txt", "en"),
        ("text.txt", "en {{ belfry.locale }}"),
        ("de/subject.txt", "de"),
        ("de/text.txt", "de {{ belfry.locale }}"),
        ("de-AT/subject.txt", "de-AT"),
        ("pt-BR/html.html", "<p>pt-BR</p>"),
    ]);
    for (wanted, locale, subject, text) in [
        (None, "en", "en", "en en\n"),
        (Some("fr"), "en", "en", "en en\n"),
        (Some("en-GB"), "en", "en", "en en\n"),
        (Some("de"), "de", "de", "de de\n"),
        (Some("DE_ch"), "de", "de", "de de\n"),
        (Some("de-AT-1996"), "de-AT", "de-AT", "de de-AT\n"),
        // Its text is made from its HTML: a mail is not half in another language.
        (Some("pt-br"), "pt-BR", "en", "pt-BR\n"),
        (Some("pt"), "en", "en", "en en\n"),
        (Some("-"), "en", "en", "en en\n"),
    ] {
        let inputs = filled(&content, "t", wanted, "{}");
        assert_eq!(content.freeze("t", wanted).unwrap().locale, locale, "{wanted:?}");
        let mail = mail(&content, &inputs);
        assert_eq!((mail.subject.as_str(), mail.text.as_str()), (subject, text), "{wanted:?}");
    }
}

#[test]
fn what_is_not_there_is_said() {
    let content = one(&[("text.txt", "x"), ("subject.txt", "x")]);
    let inputs = filled(&content, "t", None, "{}");
    assert_eq!(content.freeze("u", None).unwrap_err().fault, RenderFault::UnknownTemplate);
    let sms = render(&content, &inputs, ChannelKind::Sms).unwrap_err();
    assert_eq!((sms.fault, sms.to_string().as_str()), (RenderFault::MissingPart, "t/sms.txt: there is no sms.txt"));
    for nowhere in ["cc/0", "device/0", ""] {
        assert_eq!(content.render(&inputs, ChannelKind::Email, nowhere).unwrap_err().fault, RenderFault::NoSuchSlot);
    }
    let empty = super::inline(belfry::content::inputs::Inline::default());
    for (channel, field) in [
        (ChannelKind::Email, "subject"),
        (ChannelKind::Sms, "sms"),
        (ChannelKind::Fcm, "push"),
        (ChannelKind::Webhook, "webhook"),
    ] {
        let problem = render(&content, &empty, channel).unwrap_err();
        assert_eq!((problem.fault, problem.message.contains(field)), (RenderFault::MissingPart, true));
    }
}

#[test]
fn a_header_with_nothing_to_say_is_left_out() {
    let meta = format!("{META}[headers]\nX-Promo = \"{{{{ promo|default('') }}}}\"\nContent-Language = \"de\"\n");
    let dir = folder(&[("t/meta.toml", &meta), ("t/subject.txt", "s"), ("t/text.txt", "x")]);
    let content = Content::load(dir.path()).unwrap();
    let language = ("Content-Language".to_owned(), "de".to_owned());
    assert_eq!(mail(&content, &filled(&content, "t", None, "{}")).headers, std::slice::from_ref(&language));
    let promo = ("X-Promo".to_owned(), "yes".to_owned());
    assert_eq!(mail(&content, &filled(&content, "t", None, r#"{"promo": "yes"}"#)).headers, [language, promo]);
    let twice = problems(&[("t/meta.toml", &format!("{META}[headers]\nX-A = \"1\"\nx-a = \"2\"\n"))]);
    assert!(twice[0].message.contains("stands twice"), "{twice:?}");
}

#[test]
fn copies_of_a_mail_show_the_same_addresses() {
    let content = one(&[("text.txt", "x"), ("subject.txt", "x")]);
    let mut inputs = filled(&content, "t", None, "{}");
    inputs.to.cc = vec![super::mailbox(None, "cc@example.test")];
    inputs.to.bcc = vec![super::mailbox(None, "bcc@example.test")];
    let copies: Vec<_> =
        ["to", "cc/0", "bcc/0"].iter().map(|slot| content.render(&inputs, ChannelKind::Email, slot).unwrap()).collect();
    assert!(copies[0] == copies[1] && copies[1] == copies[2]);
    let mail = mail(&content, &inputs);
    assert_eq!((mail.to, mail.cc.len()), (to().email.into_iter().collect(), 1));
}

#[test]
fn null_and_lists_are_no_text() {
    for (template, json) in
        [("{{ x }}", r#"{"x": null}"#), ("{{ x }}", r#"{"x": [1]}"#), ("{{ x }}", r#"{"x": {"a": 1}}"#)]
    {
        let content = one(&[("sms.txt", template)]);
        let problem = render(&content, &filled(&content, "t", None, json), ChannelKind::Sms).unwrap_err();
        assert_eq!((problem.fault, problem.pointer.as_deref()), (RenderFault::Failed, Some("/x")));
    }
    let content = one(&[("sms.txt", "{{ yes }} {{ x|default('-', true) }}")]);
    let inputs = filled(&content, "t", None, r#"{"yes": true, "x": null}"#);
    assert_eq!(words(&render(&content, &inputs, ChannelKind::Sms).unwrap()), "true -");
}
