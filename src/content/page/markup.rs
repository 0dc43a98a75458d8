//! HTML's tags by their places in the text, which itself stays as it is. No parser that mends: what
//! is between the tags is nobody's business here.

use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Start(Start),
    End {
        range: Range<usize>,
        name: String,
    },
    /// What a `<style>` holds, and what is not markup in elements like it.
    Inside {
        range: Range<usize>,
        of: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    pub range: Range<usize>,
    /// In lower case.
    pub name: String,
    /// Right after the name.
    pub after_name: usize,
    pub attributes: Vec<Attribute>,
    /// Ends in `/>`.
    pub closed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// In lower case.
    pub name: String,
    pub range: Range<usize>,
    /// Within the quotes, if there are any.
    pub value: Option<Range<usize>>,
    pub quote: Option<char>,
}

impl Start {
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|one| one.name == name)
    }
}

/// Elements whose inside is no markup.
const TEXTS: [&str; 6] = ["style", "script", "title", "textarea", "mj-style", "mj-title"];
/// Elements that have no end.
pub const VOID: [&str; 13] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];

/// Every start and end tag of `text`, in order; comments and declarations are passed over.
#[must_use]
pub fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find('<') {
        at += found;
        let rest = &text[at..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            at = comment.find("-->").map_or(text.len(), |end| text.len() - comment.len() + end + 3);
            continue;
        }
        match rest.as_bytes().get(1) {
            Some(b'!' | b'?') => at = rest.find('>').map_or(text.len(), |end| at + end + 1),
            Some(b'/') => {
                let end = rest.find('>').map_or(text.len(), |end| at + end + 1);
                let name = rest[2..].split(|c: char| !is_name(c)).next().unwrap_or_default().to_ascii_lowercase();
                pieces.push(Piece::End { range: at..end, name });
                at = end;
            }
            Some(b'a'..=b'z' | b'A'..=b'Z') => {
                let start = start(text, at);
                at = start.range.end;
                let name = start.name.clone();
                let is_text = TEXTS.contains(&name.as_str()) && !start.closed;
                pieces.push(Piece::Start(start));
                if is_text {
                    let end = end_of(&text[at..], &name).map_or(text.len(), |end| at + end);
                    pieces.push(Piece::Inside { range: at..end, of: name });
                    at = end;
                }
            }
            _ => at += 1,
        }
    }
    pieces
}

const fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == ':' || c == '_'
}

/// Where the end tag of `name` begins.
fn end_of(text: &str, name: &str) -> Option<usize> {
    text.match_indices("</").map(|(at, _)| at).find(|at| {
        let from = at + 2;
        text.as_bytes().get(from..from + name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
    })
}

fn start(text: &str, begins: usize) -> Start {
    let bytes = text.as_bytes();
    let after_name = text[begins + 1..].find(|c: char| c.is_ascii_whitespace() || c == '>' || c == '/');
    let after_name = after_name.map_or(text.len(), |length| begins + 1 + length);
    let mut attributes = Vec::new();
    let mut at = after_name;
    let mut closed = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'>' => {
                at += 1;
                break;
            }
            b'/' => {
                closed = bytes.get(at + 1) == Some(&b'>');
                at += 1;
            }
            byte if byte.is_ascii_whitespace() => at += 1,
            _ => {
                let one = attribute(text, at);
                at = one.range.end;
                attributes.push(one);
            }
        }
    }
    Start { range: begins..at, name: text[begins + 1..after_name].to_ascii_lowercase(), after_name, attributes, closed }
}

fn attribute(text: &str, begins: usize) -> Attribute {
    let stops = |c: char| c.is_ascii_whitespace() || matches!(c, '=' | '>' | '/');
    // A stray `=` begins a name, as browsers have it.
    let first = text[begins..].chars().next().map_or(1, char::len_utf8);
    let name_end = text[begins + first..].find(stops).map_or(text.len(), |length| begins + first + length);
    let name = text[begins..name_end].to_ascii_lowercase();
    let blank =
        |from: usize| text[from..].find(|c: char| !c.is_ascii_whitespace()).map_or(text.len(), |gap| from + gap);
    let equals = blank(name_end);
    if text.as_bytes().get(equals) != Some(&b'=') {
        return Attribute { name, range: begins..name_end, value: None, quote: None };
    }
    let value = blank(equals + 1);
    let quote = text[value..].chars().next().filter(|c| matches!(c, '"' | '\''));
    let (value, end) = match quote {
        Some(quote) => {
            let end = text[value + 1..].find(quote).map(|length| value + 1 + length);
            (value + 1..end.unwrap_or(text.len()), end.map_or(text.len(), |end| end + 1))
        }
        None => {
            let end = text[value..].find(|c: char| c.is_ascii_whitespace() || c == '>');
            let end = end.map_or(text.len(), |length| value + length);
            (value..end, end)
        }
    };
    Attribute { name, range: begins..end, value: Some(value), quote }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tags_and_attributes_stand_where_they_are_said_to() {
        let text = "<!-- <no> --><P CLASS='a b' style=\"x:'>'\" hidden data-x=1>t</P ><style>p > b{}</style><br/>";
        let told: Vec<String> = pieces(text)
            .into_iter()
            .map(|piece| match piece {
                Piece::Start(start) => {
                    let attributes: Vec<String> = start
                        .attributes
                        .iter()
                        .map(|one| format!("{}={}", one.name, one.value.clone().map_or("-", |range| &text[range])))
                        .collect();
                    format!("{} [{}] {}", start.name, attributes.join(", "), start.closed)
                }
                Piece::End { range, name } => format!("/{name} {}", &text[range]),
                Piece::Inside { range, of } => format!("in {of}: {}", &text[range]),
            })
            .collect();
        assert_eq!(
            told,
            [
                "p [class=a b, style=x:'>', hidden=-, data-x=1] false",
                "/p </P >",
                "style [] false",
                "in style: p > b{}",
                "/style </style>",
                "br [] true",
            ]
        );
    }

    proptest! {
        #[test]
        fn anything_is_read_in_order(text in "(<|</|>|\"|'|=| |/|p|style|class|<!--|-->|<style>|</style>|é|[a-z]{1,3}){0,60}") {
            let mut last = 0;
            for piece in pieces(&text) {
                let range = match piece {
                    Piece::Start(start) => start.range,
                    Piece::End { range, .. } | Piece::Inside { range, .. } => range,
                };
                prop_assert!(last <= range.start && range.end <= text.len() && text.get(range.clone()).is_some());
                last = range.end;
            }
        }
    }
}
