//! A template's HTML before its first message: MJML compiled, rules written into the elements.
//! Done once, when the files are read; what comes out is a text of the template language.

pub mod elements;
pub mod markup;
pub mod mjml;
mod rules;
mod shape;
pub mod source;
mod styles;
#[cfg(test)]
mod styles_tests;
pub mod tags;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use minijinja::machinery::parse;

pub use mjml::Fault;
use source::{Place, Source};

use super::files::{Files, MJML};
use super::meta::Meta;
use super::{grammar, language};

/// What a file became.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Made {
    pub text: String,
    /// Where its lines are from, by number: those that hold a tag. A line that is not named is the
    /// file's own of the same number.
    #[serde(default)]
    pub lines: BTreeMap<usize, Place>,
}

/// Files that extend each other.
const DEEPEST_EXTENDS: usize = 10;

/// Makes of the files what has to be made, and says what is wrong with the rest. What is only to be
/// looked at is noted with the files.
pub fn make(files: &mut Files, meta: Option<&Meta>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let own_language = meta.map_or("und", |meta| &meta.locale);
    let own: Vec<String> = files.files.keys().filter(|path| path.rsplit('/').next() == Some(MJML)).cloned().collect();
    for path in own {
        let language = path.split_once('/').map_or(own_language, |(folder, _)| folder);
        let source = mjml::expanded(&path, &files.files).map_err(|fault| vec![fault]);
        match source.and_then(|source| compiled(&source, language)) {
            Ok(made) => {
                files.made.insert(path, made);
            }
            Err(found) => faults.extend(found),
        }
    }
    let pages: Vec<String> = files.files.keys().filter(|path| path.ends_with(".html")).cloned().collect();
    let pages: Vec<String> = pages.into_iter().chain(files.made.keys().cloned()).collect();
    for path in pages {
        write_styles(files, &path, meta.is_none_or(|meta| meta.inline_css));
    }
    faults
}

/// A file that cannot be read is left as it is: compiling it says why.
fn write_styles(files: &mut Files, path: &str, wanted: bool) {
    let compiled = files.made.get(path);
    let Some(text) = compiled.map(|made| &made.text).or_else(|| files.files.get(path)) else { return };
    let is_mjml = compiled.is_some();
    if !wanted {
        let text = styles::unmarked(text);
        if let Some(made) = files.made.get_mut(path) {
            made.text = text;
        }
        return;
    }
    if readable(text).is_err() {
        return;
    }
    let (made, notes) = styles::inlined(text, &outer(files, text), is_mjml);
    let notes: Vec<(Place, String)> = notes
        .into_iter()
        .map(|(at, what)| {
            let line = text[..at].matches('\n').count() + 1;
            let own = Place { file: path.to_owned(), line: if is_mjml { 0 } else { line } };
            (compiled.and_then(|made| made.lines.get(&line)).cloned().unwrap_or(own), what)
        })
        .collect();
    files.notes.extend(notes);
    if made != *text {
        files.made.entry(path.to_owned()).or_default().text = made;
    }
}

/// The rules of the files that `text` extends, the outermost first.
fn outer(files: &Files, text: &str) -> Vec<rules::Rule> {
    let mut chain = Vec::new();
    let mut next = elements::extended(text).and_then(|path| files.files.get(&path));
    while let Some(text) = next.filter(|_| chain.len() < DEEPEST_EXTENDS) {
        chain.push(text);
        next = elements::extended(text).and_then(|path| files.files.get(&path));
    }
    let readable = chain.into_iter().rev().filter(|text| readable(text).is_ok());
    readable.flat_map(|text| styles::given(text)).collect()
}

/// The line and what is wrong, where the language cannot read a text.
fn readable(text: &str) -> Result<(), (usize, String)> {
    grammar::fits(text).map_err(|fault| (fault.line, fault.message))?;
    let failed = parse(text, "", language::syntax()).err();
    failed.map_or(Ok(()), |failed| {
        Err((failed.line().unwrap_or(0), failed.detail().unwrap_or("cannot be compiled").to_owned()))
    })
}

fn compiled(source: &Source, language: &str) -> Result<Made, Vec<Fault>> {
    // A tag that the language cannot read is no tag, and MJML would be blamed for it.
    readable(&source.text).map_err(|(line, what)| vec![(source.place_of_line(line), what)])?;
    mjml::made(source, language)
}
