//! Content: frozen inputs in, one rendered message per address out. Rendering is pure.
//!
//! Knows the domain and the message types of the ports; no store, no clock, no network. Old
//! versions of a template come in and go out as texts ([`Content::export`], [`Content::import`]);
//! who keeps them is not this room's business.

mod built_in;
pub mod files;
pub mod headers;
pub mod inputs;
pub mod json;
pub mod language;
pub mod lint;
mod meta;
pub mod plain;
pub mod preview;
pub mod problem;
mod render;
mod template;
pub mod text;
pub mod value;

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use belfry_domain::ChannelKind;
use belfry_domain::notification::TemplateRef;
use sha2::{Digest, Sha256};

use files::{Files, Found};
use inputs::{Inputs, Source};
pub use meta::Meta;
pub use problem::{RenderFault, RenderProblem, TemplateProblem};
pub use render::{LARGEST_BODY, LARGEST_PUSH, LARGEST_SMS, LARGEST_SUBJECT};
use template::Template;

use crate::ports::message::Rendered;

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

    /// Those under `dir` where there is such a folder, else the built-in ones.
    ///
    /// # Errors
    /// As [`Content::load`].
    pub fn load_or_built_in(dir: &Path) -> Result<Self, Vec<TemplateProblem>> {
        if dir.is_dir() { Self::load(dir) } else { Self::built_in() }
    }

    fn compile(found: Found) -> Result<Self, Vec<TemplateProblem>> {
        let mut by_name = BTreeMap::new();
        let mut problems = found.problems;
        for files in found.all {
            let name = files.name.clone();
            match Template::compile(files) {
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
        render::render(inputs, channel, slot, template.as_deref())
    }

    /// The files of a version in one text, to be kept while messages are frozen on it.
    #[must_use]
    pub fn export(&self, version: &str) -> Option<String> {
        self.version(version).map(|template| template.files.export())
    }

    /// Takes a kept version back into memory and returns its name. A bounded number of these is
    /// held; what falls out can be imported again.
    ///
    /// # Errors
    /// Where the text is no export, or does not compile (any more).
    pub fn import(&self, files: &str) -> Result<String, Vec<TemplateProblem>> {
        let template = Template::compile(Files::import(files).map_err(|problem| vec![problem])?)?;
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

/// Hex SHA-256 of a message's JSON: a repeat has to have the first call's.
#[must_use]
pub fn hash(message: &Rendered) -> String {
    // Strings, lists and numbers only: serializing them cannot fail.
    let json = serde_json::to_vec(message).unwrap_or_default();
    Sha256::digest(json).iter().map(|byte| format!("{byte:02x}")).collect()
}
