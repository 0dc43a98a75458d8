//! A template's files as they lie in its folder, and the version that names exactly these files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belfry_domain::{KeyKind, child_key};
use serde::{Deserialize, Serialize};

use super::kept::SHORT;
use super::page::source::Place;
use super::page::{Made, mjml};
use super::problem::TemplateProblem;
use crate::ports::admin::KeptTemplate;
use crate::ports::attachments::{Attached, AttachedId};
use crate::ports::locale::is_locale;
use crate::ports::mail::LONGEST_CID;
use crate::text_file;

/// The folder whose files every template may include as `_shared/<file>`.
pub const SHARED: &str = "_shared";
pub const META: &str = "meta.toml";
pub const SAMPLE: &str = "sample.json";
pub const SUBJECT: &str = "subject.txt";
pub const TEXT: &str = "text.txt";
pub const HTML: &str = "html.html";
/// In place of [`HTML`].
pub const MJML: &str = "html.mjml";
pub const SMS: &str = "sms.txt";
pub const PUSH: &str = "push.json";
/// The folder of what is attached and of images.
pub const ATTACHMENTS: &str = "attachments";
/// The files that are rendered.
pub const PARTS: [&str; 6] = [SUBJECT, TEXT, HTML, MJML, SMS, PUSH];

/// Of one file, in bytes.
const LARGEST: u64 = 256 * 1024;
/// Of one attachment, in bytes; each mail of the template may have it with it.
const LARGEST_ATTACHMENT: u64 = 512 * 1024;
/// Of a folder of attachments, in bytes of base64. Every version is kept with it.
const LARGEST_FOLDER: usize = 1024 * 1024 / 3 * 4;
/// Folders and files of one installation; a wrong path must not read a disk.
const MOST_TEMPLATES: usize = 1_000;
const MOST_FILES: usize = 500;

/// One template's files by path within its folder; shared ones under `_shared/`. What lies in a folder
/// of attachments is its base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    pub name: String,
    pub files: BTreeMap<String, String>,
    /// What some of them became when they were read, by their paths. A kept version has it in their
    /// stead: a Belfry whose MJML comes out otherwise still sends what was frozen.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub made: BTreeMap<String, Made>,
    /// Of a kept version: attachments whose content is kept apart from it, by their paths.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    apart: BTreeMap<String, AttachedId>,
    /// What the author should look at in them, by its place.
    #[serde(skip)]
    pub notes: Vec<(Place, String)>,
    /// Files that lie in the folder and were refused when it was read: they are not missing.
    #[serde(skip)]
    pub refused: BTreeSet<String>,
}

impl Files {
    #[must_use]
    pub fn new(name: String, files: BTreeMap<String, String>) -> Self {
        Self { name, files, made: BTreeMap::new(), apart: BTreeMap::new(), notes: Vec::new(), refused: BTreeSet::new() }
    }

    /// The same files give the same version on every machine, as long as the same comes out of them.
    /// The sample is left out: no message is made from it.
    #[must_use]
    pub fn version(&self) -> String {
        let mut parts: Vec<&[u8]> = vec![self.name.as_bytes()];
        for (path, text) in self.rendered_from() {
            parts.push(path.as_bytes());
            parts.push(text.as_bytes());
        }
        format!("tpl_{}", child_key(KeyKind::Template, &parts))
    }

    /// Every file that a message is made from, as it is rendered.
    fn rendered_from(&self) -> BTreeMap<&String, &String> {
        let made = self.made.iter().map(|(path, made)| (path, &made.text));
        let files = self.files.iter().filter(|(path, _)| !is_partial(path) && path.rsplit('/').next() != Some(SAMPLE));
        // What was made stands before what it was made from.
        files.chain(made).collect()
    }

    /// What is to be kept, from which [`Files::import`] makes the same version again.
    #[must_use]
    pub fn export(&self) -> KeptTemplate {
        let mut kept = Self { made: self.made.clone(), ..Self::new(self.name.clone(), BTreeMap::new()) };
        let mut attached: Vec<Attached> = Vec::new();
        for (path, text) in self.rendered_from().into_iter().filter(|(path, _)| !self.made.contains_key(*path)) {
            let Some(one) = apart(path, text) else {
                kept.files.insert(path.clone(), text.clone());
                continue;
            };
            kept.apart.insert(path.clone(), one.id);
            if attached.iter().all(|other| other.id != one.id) {
                attached.push(one);
            }
        }
        // Strings and numbers only: serializing them cannot fail.
        KeptTemplate { files: serde_json::to_string(&kept).unwrap_or_default(), attached }
    }

    /// Whether there is this file, as it was written or as what it became.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.made.contains_key(path)
    }

    /// Every path of a text of the language, with the text that is rendered.
    pub fn texts(&self) -> impl Iterator<Item = (&String, &String)> {
        self.rendered_from().into_iter().filter(|(path, _)| *path != META && !is_attachment(path))
    }

    /// # Errors
    /// Where it is no export, or something that it is made of is not there.
    pub fn import(kept: &KeptTemplate) -> Result<Self, TemplateProblem> {
        let mut files: Self = serde_json::from_str(&kept.files)
            .map_err(|failed| problem("", "", format!("not a kept template: {failed}")))?;
        for (path, id) in std::mem::take(&mut files.apart) {
            let Some(found) = kept.attached.iter().find(|one| one.id == id) else {
                return Err(problem(&files.name, &path, "is no longer kept"));
            };
            files.files.insert(path, STANDARD.encode(&found.content));
        }
        Ok(files)
    }
}

/// The content of an attachment that is kept apart: there is one base64 of it. What is short stays.
fn apart(path: &str, base64: &str) -> Option<Attached> {
    let decoded = (is_attachment(path) && base64.len() >= SHORT).then(|| STANDARD.decode(base64).ok())?;
    decoded.map(Attached::of_template)
}

fn problem(template: &str, file: &str, message: impl Into<String>) -> TemplateProblem {
    TemplateProblem { template: template.to_owned(), file: file.to_owned(), line: 0, message: message.into() }
}

/// Whether it is no text.
#[must_use]
pub fn is_attachment(path: &str) -> bool {
    let own = path.strip_prefix(SHARED).and_then(|path| path.strip_prefix('/')).unwrap_or(path);
    own.strip_prefix(ATTACHMENTS).is_some_and(|rest| rest.starts_with('/'))
}

/// A file of MJML that others include: nothing is left of it once they are compiled.
fn is_partial(path: &str) -> bool {
    path.starts_with(SHARED) && mjml::is_mjml(path)
}

/// What was found, and everything that is wrong with it: one bad file hides no other's faults.
pub struct Found {
    pub all: Vec<Files>,
    pub problems: Vec<TemplateProblem>,
}

/// Every template under `dir`, with the shared files in each.
#[must_use]
pub fn read(dir: &Path) -> Found {
    let mut found: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut problems = Vec::new();
    match entries(dir) {
        Ok(list) if list.len() > MOST_TEMPLATES => {
            problems.push(problem("", "", format!("{} holds more than {MOST_TEMPLATES} entries", dir.display())));
        }
        Ok(list) => {
            for (name, is_dir) in list {
                if !is_dir {
                    problems.push(problem("", &name, "a template is a folder; this is a file"));
                    continue;
                }
                let mut folder = Folder { template: &name, files: BTreeMap::new(), problems: &mut problems };
                folder.read(&dir.join(&name), "");
                let files = folder.files;
                found.insert(name, files);
            }
        }
        Err(failed) => problems.push(problem("", "", format!("{} cannot be read: {failed}", dir.display()))),
    }
    assemble(found, problems)
}

/// The same from texts at hand, by path from the templates' folder.
#[must_use]
pub fn from_texts(texts: &[(&str, &str)]) -> Found {
    let mut found: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (path, text) in texts {
        let (name, rest) = path.split_once('/').unwrap_or((path, ""));
        found.entry(name.to_owned()).or_default().insert(rest.to_owned(), unix_lines(text));
    }
    assemble(found, Vec::new())
}

fn assemble(mut found: BTreeMap<String, BTreeMap<String, String>>, mut problems: Vec<TemplateProblem>) -> Found {
    let shared = found.remove(SHARED).unwrap_or_default();
    let mut all = Vec::new();
    for (name, mut files) in found {
        if !name_fits(&name) {
            problems.push(problem(&name, "", "a template's name is lowercase letters, digits, `_` and `-`"));
        }
        // What has no place is named and left out, so that the rest is still looked at.
        files.retain(|path, _| match check_path(path) {
            Ok(()) => true,
            Err(message) => {
                problems.push(problem(&name, path, message));
                false
            }
        });
        files.extend(shared.iter().map(|(path, text)| (format!("{SHARED}/{path}"), text.clone())));
        for path in files
            .keys()
            .filter(|path| path.strip_suffix(MJML).is_some_and(|own| files.contains_key(&format!("{own}{HTML}"))))
        {
            problems.push(problem(&name, path, format!("stands beside {HTML}; a mail has one of the two")));
        }
        let own = problems.iter().filter(|problem| problem.template == name).map(|problem| problem.file.clone());
        let of_all = problems.iter().filter(|problem| problem.template == SHARED);
        let of_all = of_all.map(|problem| format!("{SHARED}/{}", problem.file));
        let refused = own.chain(of_all).collect();
        all.push(Files { refused, ..Files::new(name, files) });
    }
    Found { all, problems }
}

fn name_fits(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-')
}

/// Whether this file has a place in a template's folder.
fn check_path(path: &str) -> Result<(), String> {
    let (folder, file) = path.rsplit_once('/').map_or((None, path), |(folder, file)| (Some(folder), file));
    if folder == Some(ATTACHMENTS) {
        return check_attachment(file);
    }
    if let Some(folder) = folder.filter(|folder| !is_locale(folder)) {
        return Err(format!("`{folder}` is not a locale such as `de` or `de-AT`"));
    }
    let known = PARTS.contains(&file) || file == SAMPLE || (file == META && folder.is_none());
    if known {
        return Ok(());
    }
    Err(format!("not a template's file; expected {META}, {}, {SAMPLE} or a locale's folder", PARTS.join(", ")))
}

/// A name that HTML can say as `cid:<name>`.
fn check_attachment(file: &str) -> Result<(), String> {
    let fits = (1..=LONGEST_CID).contains(&file.len())
        && file.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
    if fits {
        Ok(())
    } else {
        Err(format!("an attachment's name is 1 to {LONGEST_CID} letters, digits, `.`, `-` and `_`"))
    }
}

struct Folder<'a> {
    template: &'a str,
    files: BTreeMap<String, String>,
    problems: &'a mut Vec<TemplateProblem>,
}

impl Folder<'_> {
    /// `inside` is the path from the template's folder, empty or ending in a slash.
    fn read(&mut self, dir: &Path, inside: &str) {
        let list = match entries(dir) {
            Ok(list) => list,
            Err(failed) => return self.problem(inside, format!("cannot be read: {failed}")),
        };
        for (name, is_dir) in list {
            let path = format!("{inside}{name}");
            if self.files.len() >= MOST_FILES {
                return self.problem(&path, format!("a template has at most {MOST_FILES} files"));
            }
            if !is_dir {
                self.file(&dir.join(&name), path);
            } else if inside.is_empty() && (self.template != SHARED || name == ATTACHMENTS) {
                self.read(&dir.join(&name), &format!("{name}/"));
            } else {
                self.problem(&path, "a folder has no place here");
            }
        }
    }

    fn file(&mut self, from: &Path, path: String) {
        // A wrong path must not read a disk for texts that have no place anyway.
        let is_attachment = is_attachment(&path);
        let checked = if self.template == SHARED && !is_attachment { Ok(()) } else { check_path(&path) };
        if let Err(message) = checked {
            return self.problem(&path, message);
        }
        if is_attachment {
            return self.attachment(from, path);
        }
        match text_file::read(from, LARGEST) {
            Ok(text) => {
                self.files.insert(path, unix_lines(&text));
            }
            Err(failed) => self.problem(&path, format!("cannot be read: {failed}")),
        }
    }

    fn attachment(&mut self, from: &Path, path: String) {
        let attached = |(path, base64): (&String, &String)| if is_attachment(path) { base64.len() } else { 0 };
        match text_file::read_bytes(from, LARGEST_ATTACHMENT) {
            Ok(bytes) if bytes.is_empty() => self.problem(&path, "is empty"),
            Ok(bytes) => {
                let base64 = STANDARD.encode(bytes);
                if self.files.iter().map(attached).sum::<usize>() + base64.len() > LARGEST_FOLDER {
                    return self.problem(&path, "the attachments of a template come to more than 1 MiB");
                }
                self.files.insert(path, base64);
            }
            Err(failed) => self.problem(&path, format!("cannot be read: {failed}")),
        }
    }

    fn problem(&mut self, file: &str, message: impl Into<String>) {
        self.problems.push(problem(self.template, file, message));
    }
}

/// A checkout with other line ends, or an editor's byte order mark, is no other version.
fn unix_lines(text: &str) -> String {
    text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n")
}

/// Names and whether each is a folder, sorted; names that begin with a dot are left out.
fn entries(dir: &Path) -> std::io::Result<Vec<(String, bool)>> {
    let mut list = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        // Far more than either limit, which then says so.
        if list.len() > 10 * MOST_TEMPLATES {
            break;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            // Through links: a mounted configuration is made of them.
            list.push((name, fs::metadata(entry.path())?.is_dir()));
        }
    }
    list.sort();
    Ok(list)
}
