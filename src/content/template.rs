//! One template, compiled: every file of every language checked before the first message.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::Environment;

use super::files::{Files, HTML, META, MJML, SAMPLE, TEXT};
use super::grammar::Age;
use super::json::Json;
use super::locales::chain;
use super::meta::{Attached, Meta};
use super::problem::TemplateProblem;
use super::threads::RunningOn;
use super::{attached, grammar, language, page};
use crate::ports::locale::is_locale;

/// What a template says where the recipient's own pages are.
pub const LINKS: [&str; 3] = ["belfry.unsubscribe_url", "belfry.preferences_url", "belfry"];

pub struct Template {
    pub files: Files,
    pub version: String,
    pub meta: Meta,
    pub language: Environment<'static>,
    /// What each file uses of the data, by path: `order.items`.
    pub variables: BTreeMap<String, Vec<String>>,
    /// What the names that each file gives stand for, by path.
    pub origins: BTreeMap<String, grammar::Origins>,
    /// It says somewhere where to unsubscribe or to choose.
    pub speaks_of_links: bool,
    /// Renderings that were written off and still run.
    pub running_on: RunningOn,
    /// The inline images of each HTML file, by its path.
    pub images: BTreeMap<String, Vec<String>>,
    /// Folder of each language by its name in lower case.
    folders: BTreeMap<String, String>,
}

impl Template {
    /// What has to be made of the files is made here.
    ///
    /// # Errors
    /// Everything that is wrong with its files, with file and line.
    pub fn read(mut files: Files) -> Result<Self, Vec<TemplateProblem>> {
        let meta = files.files.get(META).and_then(|text| Meta::parse(&files.name, text).ok());
        let faults = page::make(&mut files, meta.as_ref());
        attached::prune(&mut files, meta.as_ref());
        let found = |(place, message): page::Fault| TemplateProblem {
            template: files.name.clone(),
            file: place.file,
            line: place.line,
            message,
        };
        let mut problems: Vec<TemplateProblem> = faults.into_iter().map(found).collect();
        match Self::compiled(files, Age::New) {
            Ok(template) if problems.is_empty() => Ok(template),
            Ok(_) => Err(problems),
            Err(more) => {
                problems.extend(more);
                Err(problems)
            }
        }
    }

    /// Files that were kept.
    ///
    /// # Errors
    /// Everything for which no message can be made of them.
    pub fn compile(files: Files) -> Result<Self, Vec<TemplateProblem>> {
        Self::compiled(files, Age::Kept)
    }

    /// What was not made of a file of MJML is left out.
    fn compiled(files: Files, age: Age) -> Result<Self, Vec<TemplateProblem>> {
        let problem = |file: &str, line: usize, message: String| TemplateProblem {
            template: files.name.clone(),
            file: file.to_owned(),
            line,
            message,
        };
        let told = |file: &'static str, all: Vec<String>| all.into_iter().map(move |what| problem(file, 0, what));
        let mut problems = Vec::new();
        let meta = match files.files.get(META).map(|text| Meta::parse(&files.name, text)) {
            Some(Ok(meta)) => Some(meta),
            Some(Err(found)) => {
                problems.extend(found);
                None
            }
            None if files.refused.contains(META) => None,
            None => {
                problems.push(problem(META, 0, "is missing".to_owned()));
                None
            }
        };
        for (path, text) in files.files.iter().filter(|(path, _)| path.ends_with(SAMPLE)) {
            if let Err(fault) = Json::parse(text) {
                problems.push(problem(path, 0, fault.to_string()));
            }
        }
        let is_unmade = |path: &str| page::mjml::is_mjml(path) && !files.made.contains_key(path);
        let mut texts: Vec<Text<'_>> = files.texts().filter(|(path, _)| !is_unmade(path)).map(Text::part).collect();
        texts.extend(meta.iter().flat_map(|meta| &meta.headers).map(Text::header));
        texts.extend(meta.iter().flat_map(|meta| &meta.attachments).enumerate().filter_map(Text::filename));
        if let Some(meta) = &meta {
            problems.extend(told(META, attached::wrong(meta, &files)));
            problems.extend(told(META, unknown_fallbacks(meta, &folders(&files))));
        }
        problems
            .extend(attached::missing(&files).into_iter().map(|(place, what)| problem(&place.file, place.line, what)));
        let mut compiled = language::environment();
        for (text, fault) in compile(&mut compiled, &texts, age) {
            match &text.of_meta {
                Some(name) => problems.push(problem(META, 0, format!("{name}: {}", fault.message))),
                None => {
                    let (file, line) = place(&files, &text.path, fault.line);
                    problems.push(problem(&file, line, fault.message));
                }
            }
        }
        match meta {
            Some(meta) if problems.is_empty() => Ok(Self::of(meta, compiled, files)),
            _ => Err(problems),
        }
    }

    fn of(meta: Meta, language: Environment<'static>, files: Files) -> Self {
        let variables = variables(&language);
        let speaks_of_links = variables.values().flatten().any(|name| LINKS.contains(&name.as_str()));
        Self {
            version: files.version(),
            meta,
            language,
            variables,
            origins: files.texts().map(|(path, text)| (path.clone(), grammar::origins(text))).collect(),
            speaks_of_links,
            running_on: RunningOn::default(),
            images: attached::images(&files),
            folders: folders(&files),
            files,
        }
    }

    /// The language that a message to somebody who reads `wanted` is in: the nearest there is, by
    /// what stands in for what, else the template's own.
    #[must_use]
    pub fn locale(&self, wanted: Option<&str>) -> &str {
        let near = chain(wanted.unwrap_or_default(), &self.meta.fallback).into_iter().find_map(|tag| self.named(&tag));
        near.unwrap_or(&self.meta.locale)
    }

    /// The language's own name, where there is this language.
    fn named(&self, tag: &str) -> Option<&str> {
        let own = tag.eq_ignore_ascii_case(&self.meta.locale).then_some(self.meta.locale.as_str());
        own.or_else(|| self.folders.get(tag).map(String::as_str))
    }

    /// Where to look for a file in `locale`, the nearest first: `de-AT/`, `de/`, the folder itself.
    fn places(&self, locale: &str) -> Vec<&str> {
        let chain = chain(locale, &self.meta.fallback);
        let foreign = chain.iter().take_while(|tag| !tag.eq_ignore_ascii_case(&self.meta.locale));
        let mut places: Vec<&str> = foreign.filter_map(|tag| self.folders.get(tag)).map(String::as_str).collect();
        places.push("");
        places
    }

    /// The path of `file` for `locale`.
    #[must_use]
    pub fn find(&self, locale: &str, file: &str) -> Option<String> {
        self.places(locale).into_iter().map(|place| join(place, file)).find(|path| self.files.has(path))
    }

    /// The paths of a mail's text and HTML: both from the nearest place that has either, so that a
    /// mail is not half in one language and half in another.
    #[must_use]
    pub fn find_body(&self, locale: &str) -> (Option<String>, Option<String>) {
        let existing = |path: String| self.files.has(&path).then_some(path);
        let html = |place: &str| existing(join(place, HTML)).or_else(|| existing(join(place, MJML)));
        self.places(locale)
            .into_iter()
            .map(|place| (existing(join(place, TEXT)), html(place)))
            .find(|(text, html)| text.is_some() || html.is_some())
            .unwrap_or_default()
    }

    /// Where the `line` of a file that is rendered was written.
    #[must_use]
    pub fn place(&self, path: &str, line: usize) -> (String, usize) {
        place(&self.files, path, line)
    }

    /// The language that a file is written in.
    #[must_use]
    pub fn language_of(&self, path: &str) -> &str {
        let folder = path.split_once('/').and_then(|(folder, _)| self.folders.get(&folder.to_ascii_lowercase()));
        folder.map_or(&self.meta.locale, String::as_str)
    }

    /// The languages there are, the template's own first.
    #[must_use]
    pub fn locales(&self) -> Vec<&str> {
        std::iter::once(self.meta.locale.as_str()).chain(self.folders.values().map(String::as_str)).collect()
    }

    /// The sample for `locale`, checked when it was compiled.
    #[must_use]
    pub fn sample(&self, locale: &str) -> Option<&str> {
        self.find(locale, SAMPLE).and_then(|path| self.files.files.get(&path)).map(String::as_str)
    }
}

fn variables(language: &Environment<'static>) -> BTreeMap<String, Vec<String>> {
    let own: Vec<&str> = language.globals().map(|(name, _)| name).collect();
    let used = |path: &str, text: &minijinja::Template<'_, '_>| {
        let mut used: Vec<String> = text.undeclared_variables(true).into_iter().collect();
        used.retain(|name| !own.contains(&name.split('.').next().unwrap_or_default()));
        used.sort();
        (path.to_owned(), used)
    };
    language.templates().map(|(path, text)| used(path, &text)).collect()
}

fn place(files: &Files, path: &str, line: usize) -> (String, usize) {
    let written = files.made.get(path).and_then(|made| made.lines.get(&line));
    written.map_or_else(|| (path.to_owned(), line), |place| (place.file.clone(), place.line))
}

/// A text of the template language.
struct Text<'f> {
    /// Under which it is compiled.
    path: String,
    text: &'f str,
    /// Where it stands in the meta file.
    of_meta: Option<String>,
}

impl<'f> Text<'f> {
    fn part((path, text): (&'f String, &'f String)) -> Self {
        Self { path: path.clone(), text, of_meta: None }
    }

    fn header((name, text): (&'f String, &'f String)) -> Self {
        Self { path: header_file(name), text, of_meta: Some(format!("header `{name}`")) }
    }

    fn filename((at, one): (usize, &'f Attached)) -> Option<Self> {
        let text = one.filename.as_deref()?;
        Some(Self { path: filename_file(at), text, of_meta: Some(format!("attachment `{}`", one.file)) })
    }
}

/// Compiles all of them, or says what is wrong with each.
fn compile<'t, 'f>(
    into: &mut Environment<'static>,
    texts: &'t [Text<'f>],
    age: Age,
) -> Vec<(&'t Text<'f>, grammar::Fault)> {
    let mut faults = Vec::new();
    let mut names = grammar::Names::default();
    let mut fit = Vec::new();
    for text in texts {
        match grammar::fits(text.text) {
            Ok(()) => {
                grammar::names(text.text, &mut names);
                fit.push(text);
            }
            Err(fault) => faults.push((text, fault)),
        }
    }
    for text in fit {
        if let Err(failed) = into.add_template_owned(text.path.clone(), text.text.to_owned()) {
            let message = failed.detail().unwrap_or("cannot be compiled").to_owned();
            faults.push((text, grammar::Fault { line: failed.line().unwrap_or(0), message }));
        } else {
            faults.extend(grammar::faults(text.text, &names, age).into_iter().map(|fault| (text, fault)));
        }
    }
    faults
}

/// The name under which a header's value is compiled.
#[must_use]
pub fn header_file(name: &str) -> String {
    format!("headers/{name}")
}

/// The name under which an attachment's file name is compiled.
#[must_use]
pub fn filename_file(at: usize) -> String {
    format!("filenames/{at}")
}

/// Folder of each language by its name in lower case.
fn folders(files: &Files) -> BTreeMap<String, String> {
    let folders = files.files.keys().chain(files.made.keys()).filter_map(|path| path.split_once('/'));
    let folders = folders.map(|(folder, _)| folder).filter(|folder| is_locale(folder));
    folders.map(|folder| (folder.to_ascii_lowercase(), folder.to_owned())).collect()
}

/// Languages that others are said to fall back to, and that lead nowhere.
fn unknown_fallbacks(meta: &Meta, folders: &BTreeMap<String, String>) -> Vec<String> {
    let known = |tag: &String| folders.contains_key(tag) || tag.eq_ignore_ascii_case(&meta.locale);
    let named: BTreeSet<&String> = meta.fallback.values().flatten().collect();
    let nowhere = named.into_iter().filter(|name| !chain(name, &meta.fallback).iter().any(known));
    nowhere.map(|name| format!("`fallback` names `{name}`, and there are no files in this language")).collect()
}

fn join(place: &str, file: &str) -> String {
    if place.is_empty() { file.to_owned() } else { format!("{place}/{file}") }
}
