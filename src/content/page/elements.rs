//! The elements of a file, as far as it shows which of them there will be: what the language's tags
//! decide is for each message to know.

use std::ops::Range;

use super::markup::{Piece, Start, VOID};
use super::tags::{Kind, Tag, tags};

/// Elements that may end without an end tag.
const MAY_STAY_OPEN: [&str; 14] =
    ["p", "li", "td", "th", "tr", "dt", "dd", "option", "tbody", "thead", "tfoot", "colgroup", "html", "body"];
/// Tags that make a page of several files, or of parts that are used elsewhere.
const JOINS: [&str; 7] = ["extends", "include", "import", "from", "block", "macro", "call"];
const OPENS: [&str; 7] = ["if", "for", "macro", "call", "filter", "with", "autoescape"];

/// The statement's first word.
pub fn word(tag: &Tag) -> &str {
    match &tag.kind {
        Kind::Statement(name) => name,
        Kind::Value | Kind::Silent => "",
    }
}

/// The file that a text says it extends, where it says so in plain words.
#[must_use]
pub fn extended(text: &str) -> Option<String> {
    let said = tags(text).into_iter().find(|tag| word(tag) == "extends")?;
    let said = text[said.range].trim_start_matches(['{', '%', '-', '+', ' ', '\n']).strip_prefix("extends")?;
    let said = said.trim_start_matches([' ', '\n']);
    let quote = said.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    said[1..].split_once(quote).map(|(path, _)| path.to_owned())
}

/// The files that a text says it is made with, where it says so in plain words.
#[must_use]
pub fn named(text: &str) -> Vec<String> {
    let joins = tags(text).into_iter().filter(|tag| ["extends", "include", "import", "from"].contains(&word(tag)));
    let mut named = Vec::new();
    for tag in joins {
        let mut rest = &text[tag.range];
        while let Some((_, quoted)) = rest.split_once(['"', '\'']) {
            let Some((name, after)) = quoted.split_once(['"', '\'']) else { break };
            named.push(name.to_owned());
            rest = after;
        }
    }
    named
}

/// Whether a page has more than this file in it.
#[must_use]
pub fn is_joined(tags: &[Tag]) -> bool {
    tags.iter().any(|tag| JOINS.contains(&word(tag)))
}

/// Whether what stands at `at` may be left out, or be there several times.
#[must_use]
pub fn is_conditional(tags: &[Tag], at: usize) -> bool {
    let before = tags.iter().take_while(|tag| tag.range.start < at).map(word);
    let deep = before.fold(0_usize, |deep, word| match word {
        word if OPENS.contains(&word) => deep + 1,
        word if word.strip_prefix("end").is_some_and(|opened| OPENS.contains(&opened)) => deep.saturating_sub(1),
        _ => deep,
    });
    deep > 0
}

/// The first tag that makes it open which element, or with which class or id, a start tag is of.
#[must_use]
pub fn decided_later<'t>(start: &Start, tags: &'t [Tag]) -> Option<&'t Tag> {
    let first = tags.partition_point(|tag| tag.range.end <= start.range.start);
    tags[first..].iter().take_while(|tag| tag.range.start < start.range.end).find(|tag| {
        let holds = |value: &Range<usize>| value.start <= tag.range.start && tag.range.end <= value.end;
        let within = start.attributes.iter().find(|one| one.value.as_ref().is_some_and(holds));
        tag.kind != Kind::Silent && within.is_none_or(|one| matches!(one.name.as_str(), "class" | "id"))
    })
}

/// The first tag that opens or closes an element on one of two ways alone: what lies in it is then
/// not to be seen here.
#[must_use]
pub fn unbalanced<'t>(pieces: &[Piece], tags: &'t [Tag]) -> Option<&'t Tag> {
    let mut pieces = pieces.iter().peekable();
    let mut deep = 0_i64;
    let mut open: Vec<i64> = Vec::new();
    for tag in tags {
        let starts = |piece: &&Piece| match piece {
            Piece::Start(start) => start.range.start < tag.range.start,
            Piece::End { range, .. } | Piece::Inside { range, .. } => range.start < tag.range.start,
        };
        while let Some(piece) = pieces.next_if(starts) {
            deep += match piece {
                Piece::Start(start) if !start.closed && counts(&start.name) => 1,
                Piece::End { name, .. } if counts(name) => -1,
                Piece::Start(_) | Piece::End { .. } | Piece::Inside { .. } => 0,
            };
        }
        match word(tag) {
            word if OPENS.contains(&word) => open.push(deep),
            "elif" | "else" if open.last().is_some_and(|begun| *begun != deep) => return Some(tag),
            word if word.strip_prefix("end").is_some_and(|opened| OPENS.contains(&opened)) => {
                let begun = open.pop().unwrap_or(deep);
                if begun != deep {
                    return Some(tag);
                }
            }
            _ => {}
        }
    }
    None
}

fn counts(name: &str) -> bool {
    !VOID.contains(&name) && !MAY_STAY_OPEN.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::super::markup::pieces;
    use super::super::tags::covered;
    use super::*;

    #[test]
    fn what_a_message_decides_is_seen() {
        for (text, later) in [
            ("<p class=\"a\" title=\"{{ t }}\" style=\"{{ s }}\">", false),
            ("<p class=\"a {{ b }}\">", true),
            ("<p id={{ b }}>", true),
            ("<p {% if a %}hidden{% endif %}>", true),
            ("<{{ tag }} class=\"a\">", true),
            ("{{ a }}<p {# b #}>{{ c }}", false),
        ] {
            let found = tags(text);
            let covered = covered(text, &found);
            let is_later = pieces(&covered).iter().any(|piece| match piece {
                Piece::Start(start) => decided_later(start, &found).is_some(),
                Piece::End { .. } | Piece::Inside { .. } => false,
            });
            assert_eq!(is_later, later, "{text}");
        }
    }

    #[test]
    fn elements_that_one_way_alone_opens_are_seen() {
        for (text, is_unbalanced) in [
            ("{% if a %}<div>x</div>{% else %}<p>y{% endif %}", false),
            ("{% if a %}<div>{% endif %}x{% if a %}</div>{% endif %}", true),
            ("{% for a in b %}<tr><td>{{ a }}{% endfor %}", false),
            ("<div>{% if a %}</div><div>{% endif %}</div>", false),
            ("{% if a %}<b>{% else %}<b><i>{% endif %}", true),
            ("{% block a %}<div>{% endblock %}", false),
        ] {
            let found = tags(text);
            let all = pieces(&covered(text, &found));
            assert_eq!(unbalanced(&all, &found).is_some(), is_unbalanced, "{text}");
        }
        let joins =
            "{%- extends 'a.html' if x else \"b.html\" %}{% include ['c', \"d\"] %}{{ 'e' }}{% import \"f\" as g %}";
        assert_eq!(named(joins), ["a.html", "b.html", "c", "d", "f"]);
        assert_eq!(extended("x {%- extends \"_shared/a.html\" -%}").as_deref(), Some("_shared/a.html"));
        assert_eq!(extended("{% extends base %}"), None);
        let found = tags("{% if a %}x{% endif %}y{% block b %}z");
        assert!(is_conditional(&found, 10) && !is_conditional(&found, 22) && !is_conditional(&found, 36));
        assert!(is_joined(&found));
    }
}
