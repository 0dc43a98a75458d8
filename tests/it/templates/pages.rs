//! MJML and style sheets over the public face of content.

use belfry::content::lint::{Classes, lint};
use belfry::content::{Content, RenderFault, hash};
use belfry_domain::ChannelKind;

use super::{META, filled, folder, mail, one, render, write};

const MAIL: &str = "<mjml>\n<mj-head>\n<mj-style>.total { color: red }</mj-style>\n</mj-head>\n<mj-body>\n\
    <mj-include path=\"_shared/head.mjml\" />\n<mj-section>\n<mj-column>\n\
    {% for item in items %}\n<mj-text css-class=\"total\">{{ item.name }}: {{ item.price }}</mj-text>\n{% endfor %}\n\
    <mj-button href=\"{{ link|link }}\">{{ word }}</mj-button>\n</mj-column>\n</mj-section>\n</mj-body>\n</mjml>\n";
const HEAD: &str = "<mj-section>\n<mj-column>\n<mj-text>{{ brand }}</mj-text>\n</mj-column>\n</mj-section>\n";
const JSON: &str = r#"{"brand": "A & B", "word": "Go <on>", "link": "https://x.example/?a=1&b=2",
    "items": [{"name": "One", "price": 19.90}, {"name": "Two", "price": 5}]}"#;

fn mjml() -> Content {
    let files = [("t/meta.toml", META), ("t/subject.txt", "s"), ("t/html.mjml", MAIL), ("_shared/head.mjml", HEAD)];
    Content::load(folder(&files).path()).unwrap_or_else(|problems| panic!("{problems:?}"))
}

#[test]
fn case_22_mjml_is_escaped_as_html_is() {
    let content = mjml();
    let mail = mail(&content, &filled(&content, "t", None, JSON));
    let html = mail.html.unwrap();
    for part in ["A &amp; B", ">Go &lt;on&gt;<", "href=\"https://x.example/?a=1&amp;b=2\"", "One: 19.90<", "Two: 5<"] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert_eq!(html.matches("class=\"total\" style=\"color: red;").count(), 2, "{html}");
    assert!(!html.contains("belfry") && !html.contains("mj-text") && !html.contains(".total"), "{html}");
}

#[test]
fn case_59_a_text_is_made_of_mjml() {
    let content = mjml();
    let mail = mail(&content, &filled(&content, "t", None, JSON));
    assert_eq!(mail.text, "A & B\nOne: 19.90\nTwo: 5\nGo <on> <https://x.example/?a=1&b=2>\n");
}

#[test]
fn errors_name_the_file_of_mjml_and_its_line() {
    let content = mjml();
    let told = |json: &str| render(&content, &filled(&content, "t", None, json), ChannelKind::Email).unwrap_err();
    let problem = told(r#"{"brand": "b", "word": "w", "link": "https://x.example", "items": [{"name": "n"}]}"#);
    assert_eq!(problem.to_string(), "t/html.mjml:10: `item.price` is not in the data");
    assert_eq!(problem.pointer.as_deref(), Some("/items"));
    let problem = told(r#"{"brand": "b", "word": "w", "link": "script:x", "items": []}"#);
    assert!(problem.to_string().starts_with("t/html.mjml:12: not a link"), "{problem}");
    let problem = told(r#"{"word": "w", "link": "https://x.example", "items": []}"#);
    assert_eq!(problem.to_string(), "_shared/head.mjml:3: `brand` is not in the data");
    assert_eq!(problem.fault, RenderFault::MissingVariable);
}

#[test]
fn faults_in_mjml_refuse_the_start_with_file_and_line() {
    for (text, told) in [
        ("<mjml>\n<mj-body>\n{{ a b }}</mj-body></mjml>", "t/html.mjml:3: "),
        ("<mjml>\n<mj-body>\n<mj-raw>{{ a|nothing }}</mj-raw></mj-body></mjml>", "t/html.mjml:3: "),
        ("<mjml>\n<mj-body>\n\n{% if a %}</mj-body></mjml>", "t/html.mjml:4: "),
        ("<mjml>\n<mj-body><mj-raw>{% set kept = [a] %}</mj-raw></mj-body></mjml>", "t/html.mjml:2: "),
        ("<mjml><mj-body>\n<mj-section></mj-body></mjml>", "t/html.mjml:2: <mj-section> is not closed"),
        ("<p>x</p>", "t/html.mjml:1: a file of MJML is one <mjml> element"),
    ] {
        let files = [("t/meta.toml", META), ("t/html.mjml", text)];
        let found = Content::load(folder(&files).path()).err().expect("a problem");
        let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(shown.len() == 1 && shown[0].starts_with(told), "{told}: {shown:?}");
    }
    let both = folder(&[("t/meta.toml", META), ("t/de/html.html", "x"), ("t/de/html.mjml", "<mjml></mjml>")]);
    let found = Content::load(both.path()).err().expect("a problem");
    assert_eq!(found[0].to_string(), "t/de/html.mjml: stands beside html.html; a mail has one of the two");
}

#[test]
fn a_version_is_kept_as_what_it_became() {
    let content = mjml();
    let inputs = filled(&content, "t", None, JSON);
    let version = content.freeze("t", None).unwrap().version;
    let first = hash(&render(&content, &inputs, ChannelKind::Email).unwrap());
    let kept = content.export(&version).unwrap();
    assert!(!kept.files.contains("<mj-"), "{kept:?}");
    let other = one(&[("text.txt", "x")]);
    assert_eq!(other.import(&kept).unwrap(), version);
    assert_eq!(hash(&render(&other, &inputs, ChannelKind::Email).unwrap()), first);
    let problem = render(&other, &filled_with(&inputs, "{}"), ChannelKind::Email).unwrap_err();
    assert_eq!(problem.to_string(), "_shared/head.mjml:3: `brand` is not in the data");
    let plain = one(&[("html.html", "<style>p { top: 0 }</style><p>x")]);
    let off = folder(&[
        ("t/meta.toml", &format!("{META}inline_css = false\n")),
        ("t/html.html", "<style>p { top: 0 }</style><p>x"),
    ]);
    let off = Content::load(off.path()).unwrap();
    assert_ne!(plain.freeze("t", None).unwrap().version, off.freeze("t", None).unwrap().version);
}

fn filled_with(inputs: &belfry::content::inputs::Inputs, json: &str) -> belfry::content::inputs::Inputs {
    use belfry::content::inputs::Source;
    let Source::Template { template, .. } = &inputs.source else { panic!() };
    let source = Source::template(template.clone(), super::raw(json));
    belfry::content::inputs::Inputs { source, ..inputs.clone() }
}

#[test]
fn rules_go_into_the_elements_of_a_page_of_several_files() {
    let layout = "<html><head><style>p { color: red }\n@media print { p { color: blue !important } }</style></head>\n\
        <body>{% block body %}{% endblock %}</body></html>\n";
    let page = "{% extends \"_shared/layout.html\" %}\n{% block body %}<p>{{ a }}</p>{% endblock %}";
    let dir = folder(&[
        ("t/meta.toml", META),
        ("t/subject.txt", "s"),
        ("t/html.html", page),
        ("t/sample.json", r#"{"a": 1}"#),
        ("_shared/layout.html", layout),
    ]);
    let content = Content::load(dir.path()).unwrap();
    let html = mail(&content, &filled(&content, "t", None, r#"{"a": "<"}"#)).html.unwrap();
    assert!(html.contains("<p style=\"color: red\">&lt;</p>") && html.contains("@media print"), "{html}");
    write(dir.path(), &[("t/meta.toml", &format!("{META}inline_css = false\n"))]);
    let content = Content::load(dir.path()).unwrap();
    let html = mail(&content, &filled(&content, "t", None, r#"{"a": "<"}"#)).html.unwrap();
    assert!(html.contains("<p>&lt;</p>"), "{html}");
    write(dir.path(), &[("t/meta.toml", META), ("t/html.html", "\n<style>p { color: {{ a }} }</style><p>x</p>")]);
    let noted = lint(dir.path(), &Classes::new()).into_iter().find(|one| one.rule == "styles").unwrap();
    assert_eq!((noted.file.as_str(), noted.line), ("html.html", 2));
}
