//! The lint finds what it is for, with file and line, and is silent on the built-in templates.

use belfry::content::Content;
use belfry::content::lint::{Classes, Finding, Level, lint, lint_content};

use super::{META, folder};

/// As embedded, in short.
fn classes() -> Classes {
    [("code", false), ("receipt", false), ("transactional", false), ("digest", true), ("marketing", true)]
        .map(|(name, unsubscribe)| (name.to_owned(), unsubscribe))
        .into()
}

fn found(files: &[(&str, &str)]) -> Vec<Finding> {
    lint(folder(files).path(), &classes())
}

fn brief(findings: &[Finding]) -> Vec<(&str, usize, &str, Level)> {
    findings.iter().map(|one| (one.file.as_str(), one.line, one.rule, one.level)).collect()
}

#[test]
fn the_built_in_templates_are_clean() {
    let findings = lint_content(&Content::built_in().unwrap(), &classes());
    assert!(findings.iter().all(|one| one.level == Level::Info), "{findings:#?}");
}

#[test]
fn wording_and_keys_that_do_not_survive_a_repeat() {
    let findings = found(&[
        ("t/meta.toml", "description = \"d\"\nchannels = [\"email\"]\nlocale = \"en\"\n"),
        ("t/subject.txt", "You have {{ new_count }} new messages\n"),
        ("t/text.txt", "Hello,\n\nsomebody wrote just now: {{ text }}\n"),
        ("t/html.html", "<p>\nWe wrote <b>again</b></p>\n{{ text|safe }}\n"),
        ("t/sample.json", "{\n  \"new_count\": 1,\n  \"stats\": {\n    \"delta\": 2\n  },\n  \"text\": \"hi\"\n}\n"),
    ]);
    let expected = [
        ("html.html", 2, "repeat_wording", Level::Warning),
        ("html.html", 3, "unescaped", Level::Warning),
        ("sample.json", 2, "delta_key", Level::Warning),
        ("sample.json", 4, "delta_key", Level::Warning),
        ("subject.txt", 1, "delta_key", Level::Warning),
        ("subject.txt", 1, "repeat_wording", Level::Warning),
        ("text.txt", 3, "repeat_wording", Level::Warning),
    ];
    assert_eq!(brief(&findings), expected);
    assert!(findings[6].message.starts_with("\"just now\""), "{}", findings[6].message);
}

#[test]
fn parts_samples_and_translations_that_are_missing() {
    let findings = found(&[
        ("t/meta.toml", "description = \"d\"\nchannels = [\"email\", \"sms\"]\nlocale = \"en\"\n"),
        ("t/subject.txt", "Hi {{ name }}"),
        ("t/html.html", "<p>{{ name }} {{ order.items }}</p>"),
        ("t/push.json", "{\"title\": \"x\"}"),
        ("t/sample.json", "{\"name\": \"n\", \"order\": {}}"),
        ("t/de/subject.txt", "Hallo {{ name }}"),
        ("u/meta.toml", "description = \"d\"\nchannels = [\"sms\"]\nlocale = \"en\"\n"),
        ("u/sms.txt", "Hi"),
    ]);
    let expected = [
        ("de/html.html", 0, "missing_translation", Level::Warning),
        ("de/push.json", 0, "missing_translation", Level::Warning),
        ("html.html", 1, "sample_fails", Level::Error),
        ("html.html", 1, "sample_lacks", Level::Warning),
        ("push.json", 0, "unread_part", Level::Info),
        ("sms.txt", 0, "missing_part", Level::Error),
        ("sms.txt", 0, "missing_part", Level::Error),
        ("text.txt", 0, "missing_text", Level::Warning),
        ("sample.json", 0, "missing_sample", Level::Error),
    ];
    assert_eq!(brief(&findings), expected);
    assert_eq!(findings.last().unwrap().template, "u");
}

#[test]
fn sizes() {
    let findings = found(&[
        ("t/meta.toml", "description = \"d\"\nchannels = [\"sms\", \"push\"]\nlocale = \"en\"\n"),
        ("t/sms.txt", "{{ text }}"),
        ("t/push.json", "{\"title\": \"{{ text * 30 }}\"}"),
        ("t/sample.json", &format!("{{\"text\": \"{}\"}}", "å".repeat(161))),
    ]);
    // For each platform: they differ in what they take.
    let large = ("push.json", 0, "too_large", Level::Error);
    assert_eq!(brief(&findings), [large, large, large, ("sms.txt", 0, "sms_parts", Level::Info)]);
}

#[test]
fn templates_that_do_not_compile_are_findings_too() {
    let findings = found(&[("t/meta.toml", META), ("t/text.txt", "{% if %}")]);
    assert_eq!(brief(&findings), [("text.txt", 1, "compile", Level::Error)]);
}

#[test]
fn mail_that_somebody_may_be_tired_of_says_how_to_end_it() {
    let meta =
        |class: &str| format!("description = \"d\"\nchannels = [\"email\"]\nlocale = \"en\"\nclass = \"{class}\"\n");
    let of = |class: &str, text: &str| {
        let all = found(&[
            ("t/meta.toml", &meta(class)),
            ("t/subject.txt", "Offers\n"),
            ("t/text.txt", text),
            ("t/de/text.txt", "Billig.\n"),
            ("t/html.html", "<p>Cheap. <a href=\"{{ belfry.unsubscribe_url }}\">Unsubscribe</a></p>\n"),
            ("t/sample.json", "{}"),
        ]);
        all.into_iter().filter(|one| ["missing_unsubscribe", "unknown_class"].contains(&one.rule)).collect::<Vec<_>>()
    };
    let silent = of("marketing", "Cheap.\n");
    assert_eq!(
        brief(&silent),
        [
            ("de/text.txt", 0, "missing_unsubscribe", Level::Warning),
            ("text.txt", 0, "missing_unsubscribe", Level::Warning)
        ]
    );
    assert!(silent[0].message.contains("say where to unsubscribe: {{ belfry.unsubscribe_url }}"), "{silent:?}");
    let says = of("marketing", "Cheap.\n{{ belfry.preferences_url }}\n");
    assert_eq!(brief(&says), [("de/text.txt", 0, "missing_unsubscribe", Level::Warning)]);
    assert_eq!(brief(&of("code", "Cheap.\n")), []);
    let unknown = of("news", "Cheap.\n");
    assert_eq!(brief(&unknown), [("meta.toml", 0, "unknown_class", Level::Warning)]);
    assert!(
        unknown[0].message.ends_with("configured are code, digest, marketing, receipt, transactional"),
        "{unknown:?}"
    );
}

/// What is said of the languages, by file.
fn languages(files: &[(&str, &str)]) -> Vec<(String, String)> {
    let meta = ("t/meta.toml", "description = \"d\"\nchannels = [\"email\"]\nlocale = \"en\"\n");
    let own = [meta, ("t/subject.txt", "s"), ("t/sample.json", "{}"), ("t/de/subject.txt", "s")];
    let all = found(&[&own[..], files].concat());
    all.into_iter().map(|one| (format!("{} {}", one.rule, one.file), one.message)).collect()
}

#[test]
fn a_language_with_half_a_mail_is_told_as_it_is_sent() {
    let both = [("t/text.txt", "Hi"), ("t/html.html", "<p>Hi</p>")];
    let of = |files: &[(&str, &str)]| languages(&[&both[..], files].concat());
    let no_html =
        "mail to readers of `de` has no HTML: text and HTML are taken from one folder, and `de/` has the text alone";
    assert_eq!(of(&[("t/de/text.txt", "Hallo")]), [("missing_html de/html.html".to_owned(), no_html.to_owned())]);
    let made = "mail to readers of `de` has a text made from de/html.html; one that was written reads better";
    let html = ("t/de/html.html", "<p>Hallo</p>");
    assert_eq!(of(&[html]), [("missing_text de/text.txt".to_owned(), made.to_owned())]);
    let mjml = ("t/de/html.mjml", "<mjml><mj-body></mj-body></mjml>");
    assert_eq!(of(&[mjml])[0].1, made.replace("html.html", "html.mjml"));
    assert_eq!(of(&[html, ("t/de/text.txt", "Hallo")]), []);
    let english = "not translated: readers of `de` get this part in `en`";
    let untranslated =
        ["de/html.html", "de/text.txt"].map(|file| (format!("missing_translation {file}"), english.to_owned()));
    assert_eq!(of(&[]), untranslated);
    // What a language leaves to another is told of that one.
    let austrian = of(&[("t/de/text.txt", "Hallo"), ("t/de-AT/subject.txt", "s")]);
    assert_eq!(austrian.len(), 1, "{austrian:?}");
    let austrian = of(&[html, ("t/de/text.txt", "Hallo"), ("t/de-AT/text.txt", "Servus")]);
    assert_eq!(austrian[0].0, "missing_html de-AT/html.html");
    // A template without HTML loses none.
    assert_eq!(languages(&[("t/text.txt", "Hi"), ("t/de/text.txt", "Hallo")]), []);
    // A chat message has no HTML to be made from.
    let chat = found(&[
        ("t/meta.toml", "description = \"d\"\nchannels = [\"email\", \"chat\"]\nlocale = \"en\"\n"),
        ("t/subject.txt", "s"),
        ("t/sample.json", "{}"),
        ("t/de/subject.txt", "s"),
        ("t/text.txt", "Hi"),
        ("t/html.html", "<p>Hi</p>"),
        html,
    ]);
    let rules: Vec<&str> = chat.iter().map(|one| one.rule).collect();
    assert_eq!(rules, ["missing_text", "missing_translation"]);
    assert_eq!(chat[1].message, "not translated: readers of `de` get this part in chat in `en`");
}

/// What the lint says of mail is what is sent.
#[test]
fn half_a_mail_is_sent_as_the_lint_says() {
    let sent = |file: &str, text: &str| {
        let dir = folder(&[
            ("t/meta.toml", META),
            ("t/subject.txt", "s"),
            ("t/text.txt", "Hi"),
            ("t/html.html", "<p>Hi</p>"),
            (&format!("t/de/{file}"), text),
        ]);
        let content = Content::load(dir.path()).unwrap();
        let mail = super::mail(&content, &super::filled(&content, "t", Some("de"), "{}"));
        (mail.text, mail.html)
    };
    assert_eq!(sent("text.txt", "Hallo"), ("Hallo\n".to_owned(), None));
    assert_eq!(sent("html.html", "<p>Hallo</p>"), ("Hallo\n".to_owned(), Some("<p>Hallo</p>\n".to_owned())));
}

#[test]
fn a_folder_that_is_not_there_is_named_once() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = dir.path().join("nowhere");
    let findings = lint(&nowhere, &classes());
    let told: Vec<_> = findings.iter().map(|one| (one.template.as_str(), one.file.as_str(), one.rule)).collect();
    assert_eq!(told, [("", "", "compile")]);
    assert!(findings[0].message.starts_with(&format!("{} cannot be read: ", nowhere.display())), "{findings:?}");
}
