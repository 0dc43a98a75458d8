//! Values of HTML where escaping does not hold them: a space ends an attribute without quotes, and scripts and styles
//! know nothing of HTML's escapes.

use super::super::page::markup::{Piece, Start, pieces};
use super::super::page::tags::{Kind, Tag, covered, tags};

/// Lines, from 1, with what is wrong there.
pub(super) fn bare_values(html: &str) -> Vec<(usize, String)> {
    let tags = tags(html);
    let values = || tags.iter().filter(|tag| tag.kind == Kind::Value);
    let line = |tag: &Tag| html[..tag.range.start].matches('\n').count() + 1;
    let mut found = Vec::new();
    for piece in pieces(&covered(html, &tags)) {
        match piece {
            Piece::Start(start) => {
                let inside = values().filter(|tag| start.range.contains(&tag.range.start));
                found.extend(inside.filter_map(|tag| Some((line(tag), in_a_tag(&start, tag)?))));
            }
            Piece::Inside { range, of } if of == "script" || of == "style" => {
                let inside = values().filter(|tag| range.contains(&tag.range.start));
                found.extend(inside.map(|tag| (line(tag), format!("a value in <{of}> is not escaped for it"))));
            }
            Piece::Inside { .. } | Piece::End { .. } => {}
        }
    }
    found
}

fn in_a_tag(start: &Start, tag: &Tag) -> Option<String> {
    let holds = |range: &std::ops::Range<usize>| range.contains(&tag.range.start);
    let Some(attribute) = start.attributes.iter().find(|one| holds(&one.range)) else {
        return Some(format!("a value in the tag <{}> itself can become any attribute", start.name));
    };
    match (&attribute.value, attribute.quote) {
        (Some(value), Some(_)) if holds(value) => None,
        (Some(value), None) if holds(value) => {
            Some(format!("`{}` needs quotes: a space in the value would end it", attribute.name))
        }
        _ => Some(format!("a value in the tag <{}> itself can become any attribute", start.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_22_values_stand_where_escaping_holds_them() {
        let held = "<a href=\"{{ url }}\" title='{{ a }} b'>{{ text }}</a><title>{{ t }}</title>\
                    {# <a href={{ x }}> #}<p>x={{ x }} {% if a < b %}{{ y }}{% endif %}</p>";
        assert_eq!(bare_values(held), []);
        let bare = "<p>\n<a href={{ url }}>x</a>\n<b {{ attributes }}>x</b>\n<script>let a = {{ a }};</script>\n\
                    <style>p { color: {{ c }} }</style><td width= {{ w }} ></td></p>";
        let lines: Vec<usize> = bare_values(bare).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [2, 3, 4, 5, 5]);
        assert_eq!(bare_values(bare)[0].1, "`href` needs quotes: a space in the value would end it");
    }
}
