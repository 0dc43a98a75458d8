//! The rules of `<style>` written into the elements that they are for: many mail programs read no
//! `<style>`.
//!
//! The file itself is never taken apart and put together again: a parser of HTML moves a
//! `{% for %}` out of the table that it stands in. A copy with letters in the place of the
//! language's tags is given to the inliner, with a number on each element; what it says of each
//! number is written into the file, and nothing else in it changes. Rules for which the file does
//! not show what they will match stay where they are.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use css_inline::CSSInliner;

use super::elements::{decided_later, is_conditional, is_joined, unbalanced};
use super::markup::{Piece, Start, pieces};
use super::mjml::AUTHORS;
use super::rules::{Item, Rule, items};
use super::tags::{Tag, covered, tags};

/// The attribute that numbers the elements of the copy.
const NUMBER: &str = "data-belfry-number";
/// Elements within elements. A parser of HTML takes time by the square of it.
const DEEPEST: usize = 200;

/// What is to be seen to, with its place in the text.
pub type Note = (usize, String);

/// A file that is read for its rules.
struct File<'t> {
    text: &'t str,
    tags: Vec<Tag>,
    covered: String,
    pieces: Vec<Piece>,
}

/// A `<style>` whose rules are looked at.
#[derive(Clone, Debug)]
struct Sheet {
    /// With its tags.
    whole: Range<usize>,
    inside: Range<usize>,
    items: Vec<Item>,
}

impl<'t> File<'t> {
    fn new(text: &'t str) -> Self {
        let tags = tags(text);
        let covered = covered(text, &tags);
        let pieces = pieces(&covered);
        Self { text, tags, covered, pieces }
    }

    /// The sheets, or why their rules have to stay. Those for some media alone stay as they are.
    fn sheets(&self, authors_only: bool) -> Result<Vec<Sheet>, Note> {
        let mut sheets = Vec::new();
        for three in self.pieces.windows(3) {
            let [Piece::Start(start), Piece::Inside { range, of }, Piece::End { range: end, .. }] = three else {
                continue;
            };
            let is_plain = start.attributes.iter().all(|one| one.name == "type");
            let is_authors = self.covered[range.clone()].trim_start().starts_with(AUTHORS);
            if of != "style" || !is_plain || (authors_only && !is_authors) {
                continue;
            }
            let at = start.range.start;
            let stays = |why: &str| Err((at, format!("the rules stay in <style>, as {why}")));
            if self.tags.iter().any(|tag| tag.range.start < range.end && range.start < tag.range.end) {
                return stays("it holds tags of the template language");
            }
            if is_conditional(&self.tags, at) {
                return stays("it is not always there");
            }
            let Some(items) = items(&self.covered[range.clone()]) else { return stays("they cannot be read") };
            sheets.push(Sheet { whole: at..end.end, inside: range.clone(), items });
        }
        Ok(sheets)
    }

    fn starts(&self) -> impl Iterator<Item = &Start> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Start(start) => Some(start),
            Piece::End { .. } | Piece::Inside { .. } => None,
        })
    }

    fn is_too_deep(&self) -> bool {
        let mut deep = 0_usize;
        self.pieces.iter().any(|piece| {
            match piece {
                Piece::Start(start) if !start.closed && !super::markup::VOID.contains(&start.name.as_str()) => {
                    deep += 1
                }
                Piece::End { .. } => deep = deep.saturating_sub(1),
                Piece::Start(_) | Piece::Inside { .. } => {}
            }
            deep > DEEPEST
        })
    }
}

/// The rules that a file gives to those that extend it.
#[must_use]
pub fn given(text: &str) -> Vec<Rule> {
    if !text.contains('<') {
        return Vec::new();
    }
    let sheets = File::new(text).sheets(false).unwrap_or_default();
    sheets.into_iter().flat_map(|sheet| sheet.items).filter_map(rule).collect()
}

fn rule(item: Item) -> Option<Rule> {
    match item {
        Item::Rule(rule) => Some(rule),
        Item::At(_) => None,
    }
}

/// The text with rules in its elements, and what could not be done. `outer` are the rules of the
/// files that it extends; with `authors_only`, those of MJML itself are left alone.
#[must_use]
pub fn inlined(text: &str, outer: &[Rule], authors_only: bool) -> (String, Vec<Note>) {
    let has_style = text.to_ascii_lowercase().contains("<style");
    // What has no rules is not even read.
    if !has_style && outer.is_empty() {
        return (text.to_owned(), Vec::new());
    }
    let file = File::new(text);
    let sheets = match file.sheets(authors_only) {
        Ok(sheets) => sheets,
        Err(note) => return (unmarked(text), vec![note]),
    };
    let own = sheets.iter().flat_map(|sheet| sheet.items.iter().cloned()).filter_map(rule);
    let rules: Vec<Rule> = outer.iter().cloned().chain(own).collect();
    if rules.is_empty() {
        return (unmarked(text), Vec::new());
    }
    if file.is_too_deep() {
        return (
            unmarked(text),
            vec![(0, format!("the rules stay in <style>, as elements lie more than {DEEPEST} deep"))],
        );
    }
    let mut notes = Vec::new();
    let later: Vec<&Tag> = file.starts().filter_map(|start| decided_later(start, &file.tags)).collect();
    notes.extend(later.first().map(|tag| {
        (
            tag.range.start,
            "a class, an id or an attribute is chosen per message: rules for it stay in <style>".to_owned(),
        )
    }));
    let uneven = unbalanced(&file.pieces, &file.tags);
    notes.extend(uneven.map(|tag| {
        (
            tag.range.start,
            "an element is opened or closed on one way alone: rules that ask what lies in what stay in <style>"
                .to_owned(),
        )
    }));
    let joined = is_joined(&file.tags);
    let held = held(&rules, joined || !later.is_empty() || uneven.is_some());
    let styles = styles(&file, &rules, &held);
    let all_seen = styles.len() == file.starts().count() - later.len();
    let may_go = !joined && later.is_empty() && all_seen;
    let written = rules.iter().zip(&held).filter(|(_, held)| !**held).flat_map(|(rule, _)| rule.families()).collect();
    notes.extend(overruled(&file, &sheets, &written));
    let mut edits = element_edits(&file, &styles);
    let own_from =
        rules.len() - sheets.iter().flat_map(|sheet| &sheet.items).filter(|item| matches!(item, Item::Rule(_))).count();
    if may_go {
        edits.extend(sheet_edits(&file, &sheets, &held[own_from..]));
    }
    (unmarked(&edited(text, edits)), notes)
}

/// The text without what tells MJML's authors from MJML.
#[must_use]
pub fn unmarked(text: &str) -> String {
    text.replace(AUTHORS, "")
}

/// Which rules may not be written into elements: those for which it does not show what they match,
/// and those that would then win over one of these against the sheet's order.
fn held(rules: &[Rule], unsure: bool) -> Vec<bool> {
    let mut held: Vec<bool> = rules.iter().map(|rule| !rule.other.is_empty() || (unsure && rule.is_nested())).collect();
    loop {
        let families: BTreeSet<String> =
            rules.iter().zip(&held).filter(|(_, held)| **held).flat_map(|(rule, _)| rule.families()).collect();
        let more: Vec<bool> =
            rules.iter().zip(&held).map(|(rule, held)| *held || !rule.families().is_disjoint(&families)).collect();
        if more == held {
            return held;
        }
        held = more;
    }
}

/// What the inliner says of each element that the message does not decide, by its number.
fn styles(file: &File<'_>, rules: &[Rule], held: &[bool]) -> BTreeMap<usize, String> {
    let mut copy = String::with_capacity(file.text.len() * 2);
    let mut from = 0;
    for (number, start) in file.starts().enumerate() {
        if decided_later(start, &file.tags).is_some() {
            continue;
        }
        copy.push_str(&file.covered[from..start.after_name]);
        copy.push_str(&format!(" {NUMBER}=\"{number}\""));
        from = start.after_name;
        if let Some(style) = start.attribute("style") {
            copy.push_str(&file.covered[from..style.range.start]);
            from = style.range.end;
        }
    }
    copy.push_str(&file.covered[from..]);
    let mut css = String::new();
    for (rule, _) in rules.iter().zip(held).filter(|(rule, held)| !**held && !rule.plain.is_empty()) {
        css.push_str(&format!("{}{{{}}}\n", rule.plain.join(","), rule.declarations));
    }
    let inliner = CSSInliner::options()
        .inline_style_tags(false)
        .keep_style_tags(true)
        .keep_link_tags(true)
        .load_remote_stylesheets(false)
        .extra_css(Some(Cow::Borrowed(&css)))
        .build();
    let is_page = file.starts().any(|start| matches!(start.name.as_str(), "html" | "body" | "head"));
    let made = if is_page { inliner.inline(&copy) } else { inliner.inline_fragment(&copy, &css) };
    let made = made.unwrap_or_default();
    let mut styles = BTreeMap::new();
    for piece in pieces(&made) {
        let Piece::Start(start) = piece else { continue };
        let value = |name: &str| start.attribute(name).and_then(|one| one.value.clone()).map(|range| &made[range]);
        if let Some(number) = value(NUMBER).and_then(|number| number.parse().ok()) {
            let style = value("style").unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
            styles.entry(number).or_insert(style);
        }
    }
    styles
}

type Edit = (Range<usize>, String);

/// Each style in front of what the element has: what its author wrote there stands.
fn element_edits(file: &File<'_>, styles: &BTreeMap<usize, String>) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (number, start) in file.starts().enumerate() {
        let style = styles.get(&number).map(|style| style.trim_end_matches(';')).unwrap_or_default();
        // What the language would take for a tag of its own.
        if style.is_empty() || ["{{", "{%", "{#"].iter().any(|tag| style.contains(tag)) {
            continue;
        }
        let has = start.attribute("style").and_then(|one| Some((one, one.value.clone()?)));
        edits.push(match has {
            Some((one, value)) if one.quote.is_none() => {
                (one.range.clone(), format!("style=\"{style}; {}\"", &file.text[value]))
            }
            Some((one, value)) => {
                let style = if one.quote == Some('\'') { style.replace('\'', "&#39;") } else { style.to_owned() };
                (value.start..value.start, format!("{style}; "))
            }
            None => (start.after_name..start.after_name, format!(" style=\"{style}\"")),
        });
    }
    edits
}

/// The sheets without what is in the elements now. Every line end stays, so that a line of the
/// file is the same line afterwards.
fn sheet_edits(file: &File<'_>, sheets: &[Sheet], mut held: &[bool]) -> Vec<Edit> {
    let mut edits = Vec::new();
    for sheet in sheets {
        let mut changed = Vec::new();
        let mut left = false;
        for item in &sheet.items {
            let Item::Rule(rule) = item else {
                left = true;
                continue;
            };
            let (is_held, rest) = held.split_first().map_or((true, held), |(first, rest)| (*first, rest));
            held = rest;
            left |= is_held || !rule.passing.is_empty();
            if !is_held {
                let range = sheet.inside.start + rule.range.start..sheet.inside.start + rule.range.end;
                let ends = "\n".repeat(file.text[range.clone()].matches('\n').count());
                let stays = rule.passing.join(", ");
                let text = if stays.is_empty() {
                    ends
                } else {
                    format!("{stays} {{ {} }}{ends}", one_line(&rule.declarations))
                };
                changed.push((range, text));
            }
        }
        if left {
            edits.extend(changed);
        } else {
            let ends = file.text[sheet.whole.clone()].matches('\n').count();
            edits.push((sheet.whole.clone(), "\n".repeat(ends)));
        }
    }
    edits
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first rule of `@media` that loses to what is written into the elements.
fn overruled(file: &File<'_>, sheets: &[Sheet], written: &BTreeSet<String>) -> Option<Note> {
    sheets.iter().find_map(|sheet| {
        sheet.items.iter().find_map(|item| {
            let Item::At(range) = item else { return None };
            let at = sheet.inside.start + range.start;
            let media = &file.covered[at..sheet.inside.start + range.end];
            let (head, body) = media.split_once('{')?;
            let rules = items(body.strip_suffix('}')?).filter(|_| head.starts_with("@media"))?;
            let loses = rules.into_iter().filter_map(rule).any(|rule| rule.loses_to(written));
            let what = "a rule of @media without `!important` loses to the rules that are written into the elements";
            loses.then(|| (at, what.to_owned()))
        })
    })
}

fn edited(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len() * 2);
    let mut from = 0;
    for (range, with) in edits {
        out.push_str(&text[from..range.start]);
        out.push_str(&with);
        from = range.end;
    }
    out.push_str(&text[from..]);
    out
}
