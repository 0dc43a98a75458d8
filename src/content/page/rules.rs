//! A style sheet taken apart into its rules, each with its text. Only as far as is needed to say
//! which of them can be written into an element's `style` once and for all.

use std::collections::BTreeSet;
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub range: Range<usize>,
    /// The selectors that depend on nothing but the element and what it lies in.
    pub plain: Vec<String>,
    /// Those for a moment (`:hover`) or for what no element has (`::before`).
    pub passing: Vec<String>,
    /// Those that depend on what else is there, or that are not understood here.
    pub other: Vec<String>,
    /// Within the braces.
    pub declarations: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Rule(Rule),
    /// `@media` and its like, as they are.
    At(Range<usize>),
}

/// The rules of a style sheet in order; nothing where its brackets or quotes do not match.
#[must_use]
pub fn items(css: &str) -> Option<Vec<Item>> {
    let css = &without_comments(css)?;
    let mut items = Vec::new();
    let mut from = 0;
    loop {
        let rest = css[from..].trim_start();
        from = css.len() - rest.len();
        if rest.is_empty() {
            return Some(items);
        }
        let head = end_of(&css[from..], &['{', ';'])?;
        let opens = css.as_bytes()[from + head] == b'{';
        if !opens && !rest.starts_with('@') {
            return None;
        }
        let end = if opens { from + head + 1 + end_of(&css[from + head + 1..], &['}'])? } else { from + head };
        let range = from..end + 1;
        if rest.starts_with('@') {
            items.push(Item::At(range));
        } else {
            items.push(Item::Rule(rule(&css[from..from + head], &css[from + head + 1..end], range)));
        }
        from = end + 1;
    }
}

/// The same with spaces for comments; nothing where one has no end.
fn without_comments(css: &str) -> Option<String> {
    let mut out = String::with_capacity(css.len());
    let mut rest = css;
    let mut quote = None;
    while let Some(c) = rest.chars().next() {
        if quote.is_none() && rest.starts_with("/*") {
            let end = rest.find("*/")? + 2;
            // As many bytes as before, so that every place stays what it was.
            out.extend(rest.bytes().take(end).map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
            rest = &rest[end..];
            continue;
        }
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '"' | '\'') => quote = Some(c),
            Some(_) if c == '\\' => {
                out.push(c);
                rest = &rest[1..];
                let Some(next) = rest.chars().next() else { break };
                out.push(next);
                rest = &rest[next.len_utf8()..];
                continue;
            }
            _ => {}
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    quote.is_none().then_some(out)
}

/// Where one of `ends` stands outside of brackets and quotes.
fn end_of(css: &str, ends: &[char]) -> Option<usize> {
    let (mut deep, mut quote, mut escaped) = (0_usize, None, false);
    for (at, c) in css.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match (quote, c) {
            (_, '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, c) if deep == 0 && ends.contains(&c) => return Some(at),
            (None, '(' | '[' | '{') => deep += 1,
            (None, ')' | ']' | '}') => deep = deep.checked_sub(1)?,
            (None, _) => {}
        }
    }
    None
}

fn rule(head: &str, declarations: &str, range: Range<usize>) -> Rule {
    let declarations = declarations.trim().to_owned();
    let mut rule = Rule { range, plain: Vec::new(), passing: Vec::new(), other: Vec::new(), declarations };
    let mut rest = head;
    while !rest.is_empty() {
        let end = end_of(rest, &[',']).unwrap_or(rest.len());
        let selector = rest[..end].split_whitespace().collect::<Vec<_>>().join(" ");
        rest = rest.get(end + 1..).unwrap_or_default();
        match kind(&selector, &rule.declarations) {
            Reach::Plain => rule.plain.push(selector),
            Reach::Passing => rule.passing.push(selector),
            Reach::Other => rule.other.push(selector),
        }
    }
    rule
}

enum Reach {
    Plain,
    Passing,
    Other,
}

/// For a moment, or for something beside the elements.
const PASSING: [&str; 12] = [
    "active",
    "after",
    "before",
    "first-letter",
    "first-line",
    "focus",
    "hover",
    "link",
    "marker",
    "placeholder",
    "selection",
    "visited",
];

fn kind(selector: &str, declarations: &str) -> Reach {
    let named = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '#' | '*' | ' ' | '>');
    if selector.chars().all(named) && !selector.is_empty() && !declarations.contains("var(") {
        return Reach::Plain;
    }
    let mut states = selector.split(':').skip(1).filter(|one| !one.is_empty());
    let passing = |one: &str| {
        PASSING.contains(&one.split(|c: char| !(c.is_ascii_alphabetic() || c == '-')).next().unwrap_or_default())
    };
    if selector.contains(':') && states.any(passing) { Reach::Passing } else { Reach::Other }
}

impl Rule {
    /// Each declaration, as it is written.
    fn each(&self) -> impl Iterator<Item = &str> {
        let mut rest = self.declarations.as_str();
        std::iter::from_fn(move || {
            let end = end_of(rest, &[';']).unwrap_or(rest.len());
            let one = &rest[..end];
            let is_last = rest.is_empty();
            rest = rest.get(end + 1..).unwrap_or_default();
            (!is_last).then_some(one)
        })
    }

    /// What its declarations are about, by the first word: `font-size` may be overruled by `font`.
    #[must_use]
    pub fn families(&self) -> BTreeSet<String> {
        self.each().filter_map(family).collect()
    }

    /// Whether one of `families` in an element's own style wins over a declaration of this rule.
    #[must_use]
    pub fn loses_to(&self, families: &BTreeSet<String>) -> bool {
        self.each()
            .filter(|one| !one.to_ascii_lowercase().contains("!important"))
            .filter_map(family)
            .any(|one| families.contains(&one))
    }

    /// Whether a selector asks where its element lies.
    #[must_use]
    pub fn is_nested(&self) -> bool {
        self.plain.iter().any(|selector| selector.contains([' ', '>']))
    }
}

fn family(declaration: &str) -> Option<String> {
    let name = declaration.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
    name.trim_start_matches('-').split('-').next().filter(|family| !family.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rules_are_told_apart() {
        let css = "/* {é} */ p, a:hover , td + td { font-size: 12px; background: url('a;}b') }\n\
                   @media (max-width: 1px) { p { color: red } } @import url(x);\n.a>b #c{}";
        let items = items(css).unwrap();
        let [Item::Rule(first), Item::At(media), Item::At(import), Item::Rule(last)] = items.as_slice() else {
            panic!("{items:?}");
        };
        assert_eq!(
            (first.plain.as_slice(), first.passing.as_slice()),
            (&["p".to_owned()][..], &["a:hover".to_owned()][..])
        );
        assert_eq!(first.other, ["td + td"]);
        assert_eq!(first.families().into_iter().collect::<Vec<_>>(), ["background", "font"]);
        assert_eq!(&css[media.clone()], "@media (max-width: 1px) { p { color: red } }");
        assert_eq!(&css[import.clone()], "@import url(x);");
        assert!(last.is_nested() && last.declarations.is_empty());
        for broken in ["p {", "p } a {}", "p", "a { content: \"x }", "/* a"] {
            assert_eq!(super::items(broken), None, "{broken}");
        }
    }

    proptest! {
        #[test]
        fn any_sheet_is_read(css in "(a|\\.b|:hover|\\{|\\}|;|@media|\\(|\\)|\"|'|/\\*|\\*/|é|\\\\| |color:red){0,40}") {
            for item in items(&css).unwrap_or_default() {
                let range = match item { Item::Rule(rule) => rule.range, Item::At(range) => range };
                prop_assert!(css.get(range).is_some());
            }
        }
    }
}
