//! One template, compiled: every file of every language checked before the first message.

use std::collections::BTreeMap;

use minijinja::Environment;

use super::files::{Files, META, SAMPLE, SHARED};
use super::json::Json;
use super::meta::Meta;
use super::problem::TemplateProblem;
use super::threads::RunningOn;
use super::{grammar, language};

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
    /// Folder of each language by its name in lower case.
    folders: BTreeMap<String, String>,
}

impl Template {
    /// # Errors
    /// Everything that is wrong with its files, with file and line.
    pub fn compile(files: Files) -> Result<Self, Vec<TemplateProblem>> {
        let problem = |file: &str, line: usize, message: String| TemplateProblem {
            template: files.name.clone(),
            file: file.to_owned(),
            line,
            message,
        };
        let mut problems = Vec::new();
        let meta = match files.files.get(META).map(|text| Meta::parse(&files.name, text)) {
            Some(Ok(meta)) => Some(meta),
            Some(Err(found)) => {
                problems.extend(found);
                None
            }
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
        let mut texts: Vec<Text<'_>> = files.files.iter().filter(|(path, _)| is_part(path)).map(Text::part).collect();
        texts.extend(meta.iter().flat_map(|meta| &meta.headers).map(Text::header));
        let mut compiled = language::environment();
        for (text, fault) in compile(&mut compiled, &texts) {
            match text.header {
                Some(name) => problems.push(problem(META, 0, format!("header `{name}`: {}", fault.message))),
                None => problems.push(problem(&text.path, fault.line, fault.message)),
            }
        }
        match meta {
            Some(meta) if problems.is_empty() => {
                let folders = files.files.keys().filter_map(|path| path.split_once('/')).map(|(folder, _)| folder);
                let folders = folders.filter(|folder| *folder != SHARED);
                let folders = folders.map(|folder| (folder.to_ascii_lowercase(), folder.to_owned())).collect();
                let version = files.version();
                let running_on = RunningOn::default();
                let variables = variables(&compiled);
                let parts = files.files.iter().filter(|(path, _)| is_part(path));
                let origins = parts.map(|(path, text)| (path.clone(), grammar::origins(text))).collect();
                let names = variables.values().flatten();
                let speaks_of_links = names.map(String::as_str).any(|name| LINKS.contains(&name));
                Ok(Self {
                    version,
                    meta,
                    language: compiled,
                    variables,
                    origins,
                    speaks_of_links,
                    running_on,
                    folders,
                    files,
                })
            }
            _ => Err(problems),
        }
    }

    /// The language that a message to somebody who reads `wanted` is in: the nearest there is,
    /// subtag by subtag (`de-AT`, then `de`), else the template's own.
    #[must_use]
    pub fn locale(&self, wanted: Option<&str>) -> &str {
        let wanted = wanted.unwrap_or_default().replace('_', "-").to_ascii_lowercase();
        let own = self.meta.locale.to_ascii_lowercase();
        let mut rest = wanted.as_str();
        while !rest.is_empty() {
            if rest == own {
                break;
            }
            if let Some(folder) = self.folders.get(rest) {
                return folder;
            }
            rest = rest.rsplit_once('-').map_or("", |(shorter, _)| shorter);
        }
        &self.meta.locale
    }

    /// Where to look for a file in `locale`, the nearest first: `de-AT/`, `de/`, the folder itself.
    fn places(&self, locale: &str) -> Vec<&str> {
        let mut places = Vec::new();
        let lower = locale.to_ascii_lowercase();
        let mut rest = lower.as_str();
        while !rest.is_empty() && rest != self.meta.locale.to_ascii_lowercase() {
            places.extend(self.folders.get(rest).map(String::as_str));
            rest = rest.rsplit_once('-').map_or("", |(shorter, _)| shorter);
        }
        places.push("");
        places
    }

    /// The path of `file` for `locale`.
    #[must_use]
    pub fn find(&self, locale: &str, file: &str) -> Option<String> {
        self.places(locale).into_iter().map(|place| join(place, file)).find(|path| self.files.files.contains_key(path))
    }

    /// The paths of two files that belong together: both from the nearest place that has either,
    /// so that a mail is not half in one language and half in another.
    #[must_use]
    pub fn find_pair(&self, locale: &str, files: (&str, &str)) -> (Option<String>, Option<String>) {
        let existing = |path: String| self.files.files.contains_key(&path).then_some(path);
        self.places(locale)
            .into_iter()
            .map(|place| (existing(join(place, files.0)), existing(join(place, files.1))))
            .find(|(first, second)| first.is_some() || second.is_some())
            .unwrap_or_default()
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

fn is_part(path: &str) -> bool {
    path != META && !path.ends_with(SAMPLE)
}

/// A text of the template language.
struct Text<'f> {
    /// Under which it is compiled.
    path: String,
    text: &'f str,
    header: Option<&'f str>,
}

impl<'f> Text<'f> {
    fn part((path, text): (&'f String, &'f String)) -> Self {
        Self { path: path.clone(), text, header: None }
    }

    fn header((name, text): (&'f String, &'f String)) -> Self {
        Self { path: header_file(name), text, header: Some(name) }
    }
}

/// Compiles all of them, or says what is wrong with each.
fn compile<'t, 'f>(into: &mut Environment<'static>, texts: &'t [Text<'f>]) -> Vec<(&'t Text<'f>, grammar::Fault)> {
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
            faults.extend(grammar::faults(text.text, &names).into_iter().map(|fault| (text, fault)));
        }
    }
    faults
}

/// The name under which a header's value is compiled.
#[must_use]
pub fn header_file(name: &str) -> String {
    format!("headers/{name}")
}

fn join(place: &str, file: &str) -> String {
    if place.is_empty() { file.to_owned() } else { format!("{place}/{file}") }
}
