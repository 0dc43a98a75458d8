//! Rules in elements, and the language's tags in their places.

use proptest::prelude::*;

use super::styles::{given, inlined};
use super::tags::tags;

fn page(css: &str, body: &str) -> String {
    format!("<html><head><style>{css}</style></head><body>{body}</body></html>\n")
}

fn done(text: &str) -> (String, Vec<String>) {
    let (made, notes) = inlined(text, &[], false);
    (made, notes.into_iter().map(|(_, what)| what).collect())
}

fn body(css: &str, body: &str) -> String {
    let made = done(&page(css, body)).0;
    made.split_once("<body>").unwrap().1.strip_suffix("</body></html>\n").unwrap().to_owned()
}

#[test]
fn rules_go_into_the_elements_and_media_queries_stay() {
    let css = "p { color: red } .a { margin: 0; color: blue }\n\
               @media (max-width: 9px) { p { color: green !important } }\n a:hover, a { color: black }";
    let (made, notes) =
        done(&page(css, "<p>x<p class=a style='top:0'>{{ y }}</p><a href=\"{{ u|default(\"<p>\") }}\">z</a>"));
    assert_eq!(
        made,
        "<html><head><style> \n@media (max-width: 9px) { p { color: green !important } }\n a:hover { color: black }\
         </style></head><body><p style=\"color: red\">x<p class=a style='color: blue;margin: 0; top:0'>{{ y }}</p>\
         <a style=\"color: black\" href=\"{{ u|default(\"<p>\") }}\">z</a></body></html>\n"
    );
    assert_eq!(notes, Vec::<String>::new());
    assert_eq!(done("<style>p{color:red}</style>\n<p>x").0, "\n<p style=\"color: red\">x");
}

#[test]
fn what_the_language_says_stays_where_it_is() {
    for (text, made) in [
        (
            "<table>{% for x in y %}<tr>{% if a < b %}<td>{{ x }}</td>{% endif %}</tr>{% endfor %}</table>",
            "<table>{% for x in y %}<tr>{% if a < b %}<td style=\"top: 0\">{{ x }}</td>{% endif %}</tr>{% endfor %}</table>",
        ),
        ("<td {% if a %}hidden{% endif %}>x", "<td {% if a %}hidden{% endif %}>x"),
        ("<select><td title='{{ \"'\" }}'></select>", "<select><td title='{{ \"'\" }}'></select>"),
    ] {
        assert_eq!(body("td { top: 0 }", text), made);
    }
}

#[test]
fn what_is_not_to_be_seen_here_stays_in_the_sheet() {
    for (css, text, says) in [
        ("p { color: {{ c }} }", "<p>x", "holds tags"),
        ("p { color: red", "<p>x", "cannot be read"),
        (".a { top: 0 }", "<p class=\"{{ a }}\">x", "chosen per message"),
        ("b p { top: 0 }", "{% if a %}<b>{% endif %}<p>x</p>{% if a %}</b>{% endif %}", "on one way alone"),
        ("p { top: 0 } @media print { p { top: 1px } }", "<p>x", "!important"),
    ] {
        let (made, notes) = done(&page(css, text));
        assert!(notes.iter().any(|note| note.contains(says)), "{css}: {notes:?}");
        if !says.starts_with('!') {
            assert_eq!(made, page(css, text));
        }
    }
    let conditional = "{% if a %}<style>p { top: 0 }</style>{% endif %}<p>x";
    assert_eq!(done(conditional).0, conditional);
    // A rule that would be overruled by one that stays, stays too.
    assert_eq!(
        body("p { color: red } p + p { color: blue } p { top: 0 }", "<p>x<p>y"),
        "<p style=\"top: 0\">x<p style=\"top: 0\">y"
    );
    let joined = page("p { top: 0 } b p { left: 0 }", "{% block a %}<b><p>x</p></b>{% endblock %}");
    let made = done(&joined).0;
    assert_eq!(made, joined.replace("<p>x", "<p style=\"top: 0\">x"));
}

#[test]
fn what_an_author_gave_an_element_stands_unless_a_rule_is_important() {
    assert_eq!(
        body("p { top: 0; left: 0 !important }", "<p style=\"top: 1px\">"),
        "<p style=\"top: 0;left: 0 !important; top: 1px\">"
    );
    assert_eq!(
        body("p { font-family: \"A B\", 'C' }", "<p style='{{ s }}'><p style=top:0>"),
        "<p style='font-family: &#39;A B&#39;, &#39;C&#39;; {{ s }}'><p style=\"font-family: 'A B', 'C'; top:0\">"
    );
}

#[test]
fn rules_of_the_extended_file_reach_the_parts() {
    let outer = given("<style>p { color: red } b p { top: 0 }</style>{% block a %}{% endblock %}");
    let part = "{% extends \"x.html\" %}{% block a %}<p>x</p>{% endblock %}";
    assert_eq!(inlined(part, &outer, false).0, part.replace("<p>", "<p style=\"color: red\">"));
}

fn markup() -> impl Strategy<Value = String> {
    "(<p>|<p class=\"a\">|</p>|<table>|<tr>|<td>|</table>|<b>|</b>|<br>|\\{\\{ a \\}\\}|\\{% if a < b %\\}|\\{% else %\\}|\\{% endif %\\}|\\{% for x in y %\\}|\\{% endfor %\\}|<a href=\"\\{\\{ u \\}\\}\">|<i \\{\\{ x \\}\\}>|<!-- \\{% if c %\\} -->|&amp;|é| |\n){0,40}"
}

proptest! {
    #[test]
    fn without_rules_nothing_changes(text in markup()) {
        prop_assert_eq!(inlined(&text, &[], false).0, text);
    }

    #[test]
    fn with_rules_nothing_but_styles_changes(text in markup()) {
        let all = format!("<style>p, .a, td {{ top: 0 }} @media print {{ p {{ left: 0 }} }}</style>{text}");
        let (made, _) = inlined(&all, &[], false);
        let (_, rest) = made.split_once("</style>").unwrap();
        prop_assert_eq!(rest.replace(" style=\"top: 0\"", ""), text);
        let told = |text: &str| tags(text).into_iter().map(|tag| text[tag.range].to_owned()).collect::<Vec<_>>();
        prop_assert_eq!(told(&made), told(&all));
    }
}
