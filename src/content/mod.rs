//! Content: frozen inputs in, one rendered message per address out. Rendering is pure.
//!
//! Knows the domain and the message types of the ports; no store, no clock, no network. Old
//! versions of a template come in and go out as texts ([`Content::export`], [`Content::import`]);
//! who keeps them is not this room's business.

mod attached;
mod built_in;
pub mod diff;
pub mod files;
mod given;
mod grammar;
pub mod inputs;
pub mod json;
pub mod kept;
pub mod language;
pub mod lint;
mod locales;
mod meta;
mod page;
pub mod plain;
pub mod preview;
pub mod problem;
pub mod push;
mod regional;
mod render;
mod template;
pub mod text;
mod threads;
pub mod value;

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io};

use belfry_domain::ChannelKind;
use belfry_domain::notification::TemplateRef;
use sha2::{Digest, Sha256};

use files::{Files, Found};
use inputs::{Inputs, Source};
pub use meta::Meta;
pub use problem::{RenderFault, RenderProblem, TemplateProblem};
use render::Place;
pub use render::{LARGEST_BODY, LARGEST_PUSH, LARGEST_SMS, LARGEST_SUBJECT};
use template::Template;
use threads::{FINISH_WITHIN, Unfinished};

use crate::ports::admin::KeptTemplate;
use crate::ports::message::Rendered;

/// `templates.path` where nothing is configured.
const DEFAULT_FOLDER: &str = "templates";
/// Versions that are no longer on disk, kept compiled for messages that were frozen on them.
const OLD_VERSIONS: usize = 64;
/// How many templates are named to somebody who asked for one that there is not.
const NAMED: usize = 20;

/// The templates of an installation, compiled.
pub struct Content {
    by_name: BTreeMap<String, Arc<Template>>,
    by_version: BTreeMap<String, Arc<Template>>,
    /// Newest last.
    old: Mutex<VecDeque<Arc<Template>>>,
}

impl Content {
    /// Compiles every template under `dir`.
    ///
    /// # Errors
    /// Everything that is wrong with them, at once.
    pub fn load(dir: &Path) -> Result<Self, Vec<TemplateProblem>> {
        Self::compile(files::read(dir))
    }

    /// The templates that are part of the program, for a start with nothing configured.
    ///
    /// # Errors
    /// As [`Content::load`]; a test shows that there are none.
    pub fn built_in() -> Result<Self, Vec<TemplateProblem>> {
        Self::compile(files::from_texts(built_in::TEXTS))
    }

    /// Those under `dir`, or the built-in ones where [nothing was given](Self::nothing_given).
    ///
    /// # Errors
    /// As [`Content::load`].
    pub fn load_or_built_in(dir: &Path) -> Result<Self, Vec<TemplateProblem>> {
        if Self::nothing_given(dir) { Self::built_in() } else { Self::load(dir) }
    }

    /// Whether `dir` is where templates are looked for by default, and nothing is there. A folder
    /// that somebody named and that is not there is a slip of the pen: what is sent instead would be
    /// somebody else's words.
    #[must_use]
    pub fn nothing_given(dir: &Path) -> bool {
        let absent = || fs::symlink_metadata(dir).is_err_and(|failed| failed.kind() == io::ErrorKind::NotFound);
        dir == Path::new(DEFAULT_FOLDER) && absent()
    }

    fn compile(found: Found) -> Result<Self, Vec<TemplateProblem>> {
        let mut by_name = BTreeMap::new();
        let mut problems = found.problems;
        for files in found.all {
            let name = files.name.clone();
            match apart(files, Template::read) {
                Ok(template) => {
                    by_name.insert(name, Arc::new(template));
                }
                Err(found) => problems.extend(found),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let by_version = by_name.values().map(|one: &Arc<Template>| (one.version.clone(), Arc::clone(one))).collect();
        Ok(Self { by_name, by_version, old: Mutex::default() })
    }

    /// Names of the templates, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// What a template is for; `None` for an unknown name.
    #[must_use]
    pub fn meta(&self, name: &str) -> Option<&Meta> {
        self.by_name.get(name).map(|template| &template.meta)
    }

    /// The sample data of a template, in the nearest language there is.
    #[must_use]
    pub fn sample(&self, name: &str, locale: Option<&str>) -> Option<&str> {
        let template = self.by_name.get(name)?;
        template.sample(template.locale(locale))
    }

    /// The template as it stands now, in the language nearest to `locale`.
    ///
    /// # Errors
    /// [`RenderFault::UnknownTemplate`].
    pub fn freeze(&self, name: &str, locale: Option<&str>) -> Result<TemplateRef, RenderProblem> {
        let Some(template) = self.by_name.get(name) else {
            return Err(RenderProblem::new(RenderFault::UnknownTemplate, self.no_such_template()));
        };
        Ok(TemplateRef {
            name: name.to_owned(),
            version: template.version.clone(),
            locale: template.locale(locale).to_owned(),
        })
    }

    fn no_such_template(&self) -> String {
        let named: Vec<&str> = self.names().take(NAMED).collect();
        let more = self.by_name.len().saturating_sub(named.len());
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        format!("there is no template of this name; there are {}{more}", named.join(", "))
    }

    /// Whether a version says where to unsubscribe or to choose; of one that is not in memory it is not known.
    #[must_use]
    pub fn speaks_of_links(&self, version: &str) -> bool {
        self.version(version).is_some_and(|template| template.speaks_of_links)
    }

    /// The message for one address slot.
    ///
    /// # Errors
    /// With the file, the line and what is missing, never with a value. On
    /// [`RenderFault::UnknownVersion`] the caller fetches the frozen files, imports them and asks
    /// again.
    pub fn render(&self, inputs: &Inputs, channel: ChannelKind, slot: &str) -> Result<Rendered, RenderProblem> {
        let template = match &inputs.source {
            Source::Template { template, .. } => self.version(&template.version),
            Source::Inline(_) => None,
        };
        let place = Place::default();
        // Content of the caller's own is no template: nothing of it is worked out.
        let Some(template) = template else { return render::render(inputs, channel, slot, None, &place) };
        let name = template.files.name.clone();
        let late = |file: &str, why: &str| {
            let place = if file.is_empty() { name.clone() } else { format!("{name}/{file}") };
            RenderProblem::new(RenderFault::Late, why).in_file(place)
        };
        if template.running_on.load(Ordering::Acquire) > 0 {
            return Err(late("", "another message of this template is being made and does not finish"));
        }
        let running_on = template.running_on.clone();
        let (inputs, slot, here) = (inputs.clone(), slot.to_owned(), Arc::clone(&place));
        let made = move || render::render(&inputs, channel, &slot, Some(&template), &here);
        threads::run(&running_on, made).unwrap_or_else(|unfinished| {
            Err(late(&place.lock().unwrap_or_else(PoisonError::into_inner), &why(unfinished)))
        })
    }

    /// The files of a version, to be kept while messages are frozen on it.
    #[must_use]
    pub fn export(&self, version: &str) -> Option<KeptTemplate> {
        self.version(version).map(|template| template.files.export())
    }

    /// Takes a kept version back into memory and returns its name. A bounded number of these is
    /// held; what falls out can be imported again.
    ///
    /// # Errors
    /// [`NotImported`].
    pub fn import(&self, kept: &KeptTemplate) -> Result<String, NotImported> {
        let files = Files::import(kept).map_err(|problem| NotImported::Broken(vec![problem]))?;
        let compiled = threads::run(&threads::RunningOn::default(), move || Template::compile(files));
        let template = compiled.map_err(|unfinished| NotImported::Late(why(unfinished)))?;
        let template = template.map_err(NotImported::Broken)?;
        let version = template.version.clone();
        if self.version(&version).is_none() {
            let mut old = self.old.lock().unwrap_or_else(PoisonError::into_inner);
            if old.len() >= OLD_VERSIONS {
                old.pop_front();
            }
            old.push_back(Arc::new(template));
        }
        Ok(version)
    }

    fn version(&self, version: &str) -> Option<Arc<Template>> {
        if let Some(template) = self.by_version.get(version) {
            return Some(Arc::clone(template));
        }
        let old = self.old.lock().unwrap_or_else(PoisonError::into_inner);
        old.iter().find(|template| template.version == version).map(Arc::clone)
    }
}

/// Why a kept version is not in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotImported {
    /// It did not come to an end just now; it may do so later.
    Late(String),
    /// It is no export, or does not compile (any more).
    Broken(Vec<TemplateProblem>),
}

/// How often what does not come to an end is compiled: a machine that was asleep for a while is no fault of a template.
const TRIES: usize = 3;

/// Compiles where a template may be as deep as it likes.
fn apart(
    files: Files,
    compile: fn(Files) -> Result<Template, Vec<TemplateProblem>>,
) -> Result<Template, Vec<TemplateProblem>> {
    let mut last = String::new();
    for _ in 0..TRIES {
        let files = files.clone();
        match threads::run(&threads::RunningOn::default(), move || compile(files)) {
            Ok(compiled) => return compiled,
            Err(unfinished) => last = why(unfinished),
        }
    }
    Err(vec![TemplateProblem { template: files.name, file: String::new(), line: 0, message: last }])
}

fn why(unfinished: Unfinished) -> String {
    match unfinished {
        Unfinished::NoTurn => "no thread came free in time for templates".into(),
        Unfinished::RunsOn => format!("did not finish within {} s", FINISH_WITHIN.as_secs()),
        Unfinished::Panicked => "broke off; this is a fault of Belfry's".into(),
    }
}

/// Hex SHA-256 of a message's JSON: a repeat has to have the first call's.
#[must_use]
pub fn hash(message: &Rendered) -> String {
    // Strings, lists and numbers only: serializing them cannot fail.
    digest(&serde_json::to_vec(message).unwrap_or_default())
}

/// A message's hash with what its channel's own settings add to the message.
#[must_use]
pub fn stamped(hash: &str, stamp: Option<String>) -> String {
    stamp.map_or_else(|| hash.to_owned(), |stamp| digest(format!("{hash} {stamp}").as_bytes()))
}

fn digest(bytes: &[u8]) -> String {
    belfry_domain::hex(&Sha256::digest(bytes))
}
