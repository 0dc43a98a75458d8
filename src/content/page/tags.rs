//! Where the language's tags stand in a text, and what takes their places while something else
//! reads it: `{% if a < b %}` is no start tag of HTML.

use std::collections::BTreeMap;
use std::ops::Range;

use minijinja::machinery::{Token, tokenize};

use super::source::{Place, Source};
use crate::content::language::syntax;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `{{ … }}`: prints.
    Value,
    /// `{% … %}`, by its first word.
    Statement(String),
    /// `{# … #}` and `{% raw %} … {% endraw %}`.
    Silent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    pub range: Range<usize>,
    pub kind: Kind,
}

/// Every tag of `text`, in order. What the engine cannot read is left out: it says why itself.
#[must_use]
pub fn tags(text: &str) -> Vec<Tag> {
    let mut tags: Vec<Tag> = Vec::new();
    let mut begun: Option<(usize, Kind)> = None;
    for (token, span) in tokenize(text, false, syntax()).map_while(Result::ok) {
        let (start, end) = (span.start_offset as usize, span.end_offset as usize);
        match (token, &mut begun) {
            (Token::VariableStart, _) => begun = Some((start, Kind::Value)),
            (Token::BlockStart, _) => begun = Some((start, Kind::Statement(String::new()))),
            (Token::VariableEnd | Token::BlockEnd, Some((from, kind))) => {
                tags.push(Tag { range: *from..end, kind: kind.clone() });
                begun = None;
            }
            (Token::Ident(word), Some((_, Kind::Statement(name)))) if name.is_empty() => word.clone_into(name),
            _ => {}
        }
    }
    silent(text, &mut tags);
    tags
}

/// Adds what the engine's tokens leave out.
fn silent(text: &str, tags: &mut Vec<Tag>) {
    let mut found = Vec::new();
    let mut from = 0;
    let last = text.len()..text.len();
    for next in tags.iter().map(|tag| tag.range.clone()).chain(std::iter::once(last)) {
        while let Some(between) = text.get(from..next.start) {
            let comment = between.find("{#").map(|at| (at, "#}"));
            let raw = between.find("{%").map(|at| (at, "endraw"));
            let Some((at, ends)) = [comment, raw].into_iter().flatten().min() else { break };
            let Some(end) = between[at..].find(ends).map(|length| at + length + ends.len()) else { break };
            let close =
                if ends == "endraw" { between[end..].find("%}").map_or(end, |length| end + length + 2) } else { end };
            found.push(Tag { range: from + at..from + close, kind: Kind::Silent });
            from += close;
        }
        from = next.end;
    }
    tags.extend(found);
    tags.sort_by_key(|tag| tag.range.start);
}

/// The text with letters in the place of every tag: of the same length, so that a place in one is
/// the same place in the other.
#[must_use]
pub fn covered(text: &str, tags: &[Tag]) -> String {
    let mut covered = String::with_capacity(text.len());
    for tag in tags {
        covered.push_str(&text[covered.len()..tag.range.start]);
        covered.extend(std::iter::repeat_n('q', tag.range.len()));
    }
    covered.push_str(&text[covered.len()..]);
    covered
}

/// A text in which words stand for the tags, to be found again wherever they come out.
#[derive(Debug)]
pub struct Masked {
    pub text: String,
    /// What every word begins with; nothing else in the text holds it.
    prefix: String,
    tags: Vec<Tag>,
    /// Where each word begins in `text`.
    starts: Vec<usize>,
}

/// A word that came out, by the tag that it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub tag: usize,
    pub range: Range<usize>,
}

impl Masked {
    #[must_use]
    pub fn new(text: &str, tags: Vec<Tag>) -> Self {
        let mut prefix = "belfrytag".to_owned();
        while text.contains(&prefix) {
            prefix.push('q');
        }
        let mut masked = String::with_capacity(text.len());
        let (mut from, mut starts) = (0, Vec::new());
        for (at, tag) in tags.iter().enumerate() {
            masked.push_str(&text[from..tag.range.start]);
            starts.push(masked.len());
            // A comment says nothing to a reader of the result.
            if tag.kind != Kind::Silent || text[tag.range.clone()].starts_with("{%") {
                masked.push_str(&format!("{prefix}{at}z"));
            }
            from = tag.range.end;
        }
        masked.push_str(&text[from..]);
        Self { text: masked, prefix, tags, starts }
    }

    #[must_use]
    pub fn tags(&self) -> &[Tag] {
        &self.tags
    }

    /// Where the word of a tag begins in `text`.
    #[must_use]
    pub fn starts(&self, tag: usize) -> usize {
        self.starts.get(tag).copied().unwrap_or_default()
    }

    /// The place in the source of what stands at `at` in the masked text.
    #[must_use]
    pub fn in_source(&self, at: usize) -> usize {
        match self.starts.partition_point(|start| *start <= at).checked_sub(1) {
            None => at,
            Some(last) => {
                let (start, source) = (self.starts[last], &self.tags[last].range);
                let word = self.word_at(start).map_or(0, |word| word.range.len());
                if at < start + word { source.start } else { source.end + (at - start - word) }
            }
        }
    }

    fn word_at(&self, start: usize) -> Option<Word> {
        words(self.text.get(start..)?, &self.prefix).next().filter(|word| word.range.start == 0)
    }

    /// Every word in `made`, in order.
    #[must_use]
    pub fn words(&self, made: &str) -> Vec<Word> {
        words(made, &self.prefix).filter(|word| word.tag < self.tags.len()).collect()
    }

    /// `made` with the tags of `source` in the place of their words, and where its lines are from.
    /// No line holds tags of two lines of the source: a line end inside a tag prints nothing, and an
    /// error, which knows its line alone, can be told of the file that was written.
    #[must_use]
    pub fn restored(&self, made: &str, source: &Source) -> (String, BTreeMap<usize, Place>) {
        let mut text = String::with_capacity(made.len() + source.text.len());
        let mut lines: BTreeMap<usize, Place> = BTreeMap::new();
        let (mut from, mut line) = (0, 1);
        for word in self.words(made) {
            let between = &made[from..word.range.start];
            text.push_str(between);
            line += between.matches('\n').count();
            from = word.range.end;
            let range = &self.tags[word.tag].range;
            let (tag, place) = (&source.text[range.clone()], source.place(range.start));
            let opener = 2 + usize::from(matches!(tag.as_bytes().get(2), Some(b'-' | b'+')));
            text.push_str(&tag[..opener]);
            if lines.get(&line).is_some_and(|taken| *taken != place) && self.tags[word.tag].kind != Kind::Silent {
                text.push('\n');
                line += 1;
            }
            text.push_str(&tag[opener..]);
            lines.insert(line, place);
            for (more, _) in tag[opener..].match_indices('\n') {
                line += 1;
                lines.insert(line, source.place(range.start + opener + more + 1));
            }
        }
        text.push_str(&made[from..]);
        (text, lines)
    }
}

fn words<'t>(text: &'t str, prefix: &'t str) -> impl Iterator<Item = Word> {
    text.match_indices(prefix).filter_map(move |(at, _)| {
        let digits = &text[at + prefix.len()..];
        let length = digits.find('z')?;
        let tag = digits[..length].parse().ok()?;
        Some(Word { tag, range: at..at + prefix.len() + length + 1 })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kinds(text: &str) -> Vec<(String, Kind)> {
        tags(text).into_iter().map(|tag| (text[tag.range].to_owned(), tag.kind)).collect()
    }

    #[test]
    fn tags_are_found_as_the_engine_reads_them() {
        let statement = |name: &str| Kind::Statement(name.to_owned());
        assert_eq!(
            kinds(
                "a {{ x|default(\"}}\") }} {%- if a < b -%}{# <p> #}{% raw %}{{ no }}{% endraw %}{{ {'a': {'b': 1}} }}"
            ),
            [
                ("{{ x|default(\"}}\") }}".to_owned(), Kind::Value),
                ("{%- if a < b -%}".to_owned(), statement("if")),
                ("{# <p> #}".to_owned(), Kind::Silent),
                ("{% raw %}{{ no }}{% endraw %}".to_owned(), Kind::Silent),
                ("{{ {'a': {'b': 1}} }}".to_owned(), Kind::Value),
            ]
        );
    }

    #[test]
    fn a_line_never_holds_tags_of_two() {
        let mut source = Source::default();
        source.push("{{ a }}\n{% if\n b %}\n{{- c }}", "f", 1);
        let masked = Masked::new(&source.text, tags(&source.text));
        let flat = masked.text.replace('\n', "");
        let (text, lines) = masked.restored(&flat, &source);
        assert_eq!(text, "{{ a }}{%\n if\n b %}{{-\n c }}");
        let lines: Vec<(usize, usize)> = lines.into_iter().map(|(line, place)| (line, place.line)).collect();
        assert_eq!(lines, [(1, 1), (2, 2), (3, 3), (4, 4)]);
    }

    proptest! {
        #[test]
        fn masks_come_off(text in "(\\{\\{ a \\}\\}|\\{% if b %\\}|\\{# c #\\}|\\{% raw %\\}|\\{% endraw %\\}|<p>|belfrytag0z|é|\n| ){0,40}") {
            let found = tags(&text);
            prop_assert_eq!(covered(&text, &found).len(), text.len());
            let mut source = Source::default();
            source.push(&text, "f", 1);
            let without: Vec<Tag> = found.into_iter().filter(|tag| !text[tag.range.clone()].starts_with("{#")).collect();
            let masked = Masked::new(&text, without);
            let (restored, _) = masked.restored(&masked.text, &source);
            prop_assert_eq!(&restored, &text);
            for (at, _) in masked.text.char_indices() {
                prop_assert!(masked.in_source(at) <= text.len());
            }
        }
    }
}
