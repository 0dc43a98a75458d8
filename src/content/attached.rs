//! Files that a mail has with it: those that its template names, and the images that its HTML shows
//! as `cid:<file>`. Which ones these are is read from the files alone: nothing in a caller's data can
//! attach a file, or make a mail fail for want of one.

use std::collections::{BTreeMap, BTreeSet};

use super::files::{ATTACHMENTS, Files, HTML, META, MJML, SHARED};
use super::meta::{Attached, Meta};
use super::page::source::Place;
use super::page::tags::{covered, tags};
use super::page::{Fault, elements};
use crate::ports::mail::{MOST_ATTACHMENTS, wrong_attachment};
use crate::ports::message::Attachment;

/// Media types by the endings of files.
const TYPES: [(&str, &str); 14] = [
    ("csv", "text/csv; charset=utf-8"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("gif", "image/gif"),
    ("ics", "text/calendar; charset=utf-8"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain; charset=utf-8"),
    ("vcf", "text/vcard; charset=utf-8"),
    ("webp", "image/webp"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("zip", "application/zip"),
];

fn type_of(file: &str) -> Option<&'static str> {
    let ending = file.rsplit_once('.')?.1.to_ascii_lowercase();
    TYPES.iter().find(|(known, _)| *known == ending).map(|(_, kind)| *kind)
}

/// The template's own file of this name, else the one that all share.
fn content<'f>(files: &'f Files, name: &str) -> Option<&'f String> {
    let own = files.files.get(&format!("{ATTACHMENTS}/{name}"));
    own.or_else(|| files.files.get(&format!("{SHARED}/{ATTACHMENTS}/{name}")))
}

/// Whether it lies there and was refused when the folder was read, which has been told.
fn is_refused(files: &Files, name: &str) -> bool {
    let own = files.refused.contains(&format!("{ATTACHMENTS}/{name}"));
    own || files.refused.contains(&format!("{SHARED}/{ATTACHMENTS}/{name}"))
}

/// What is wrong with the attachments that the meta file names.
#[must_use]
pub fn wrong(meta: &Meta, files: &Files) -> Vec<String> {
    let mut wrong = Vec::new();
    if meta.attachments.len() > MOST_ATTACHMENTS {
        wrong.push(format!("a mail has at most {MOST_ATTACHMENTS} attachments"));
    }
    for one in &meta.attachments {
        let file = &one.file;
        match (content(files, file), kind(one)) {
            (None, _) if is_refused(files, file) => {}
            (None, _) => wrong.push(format!("attachment `{file}`: there is no {ATTACHMENTS}/{file}")),
            (Some(_), None) => {
                wrong.push(format!("attachment `{file}`: say its `content_type`; its ending is not known"))
            }
            (Some(_), Some(kind)) => {
                let tried =
                    Attachment { filename: "x".to_owned(), content_type: kind, base64: String::new(), cid: None };
                let found = wrong_attachment(&tried, &[]);
                wrong.extend(found.into_iter().map(|(field, why)| format!("attachment `{file}`: `{field}` {why}")));
            }
        }
    }
    wrong
}

fn kind(one: &Attached) -> Option<String> {
    one.content_type.clone().or_else(|| type_of(&one.file).map(str::to_owned))
}

/// The attachment, under the name that its reader sees. Its own file was there when it was read.
#[must_use]
pub fn named(one: &Attached, filename: String, files: &Files) -> Attachment {
    let base64 = content(files, &one.file).cloned().unwrap_or_default();
    Attachment { filename, content_type: kind(one).unwrap_or_default(), base64, cid: None }
}

/// An image that HTML shows by its name.
#[must_use]
pub fn image(name: &str, files: &Files) -> Attachment {
    Attachment {
        filename: name.to_owned(),
        content_type: type_of(name).unwrap_or_default().to_owned(),
        base64: content(files, name).cloned().unwrap_or_default(),
        cid: Some(name.to_owned()),
    }
}

/// `cid:…` in a file, with the name and where it stands; no name where the language works it out.
fn shown(text: &str) -> Vec<(usize, Option<&str>)> {
    let found = tags(text);
    let covered = covered(text, &found);
    let is_tag = |at: usize| found.iter().any(|tag| tag.range.contains(&at));
    let begins = |at: usize| covered[..at].ends_with(['"', '\'', '(', '=']);
    let all = covered.match_indices("cid:").map(|(at, _)| at).filter(|at| begins(*at) && !is_tag(*at));
    all.map(|at| {
        let from = at + "cid:".len();
        let stops = |c: char| matches!(c, '"' | '\'' | ')' | '>' | '<' | '&') || c.is_whitespace();
        let end = covered[from..].find(stops).map_or(text.len(), |length| from + length);
        let is_plain = !(from..end).any(is_tag) && from < end;
        (at, is_plain.then(|| &text[from..end]))
    })
    .collect()
}

/// Every HTML file of a template's own, with the files that it says it is made with.
fn pages(files: &Files) -> BTreeMap<&String, BTreeSet<&String>> {
    let texts: BTreeMap<&String, &String> = files.texts().collect();
    let is_page = |path: &str| matches!(path.rsplit('/').next(), Some(HTML | MJML)) && !path.starts_with(SHARED);
    let mut pages = BTreeMap::new();
    for path in texts.keys().filter(|path| is_page(path)) {
        let mut with = BTreeSet::new();
        let mut next = vec![*path];
        while let Some(one) = next.pop().filter(|_| with.len() < texts.len()) {
            if with.insert(one) {
                let named = texts.get(one).map(|text| elements::named(text)).unwrap_or_default();
                next.extend(named.iter().filter_map(|name| texts.get_key_value(name)).map(|(path, _)| *path));
            }
        }
        pages.insert(*path, with);
    }
    pages
}

/// The images of each HTML file, by its path.
#[must_use]
pub fn images(files: &Files) -> BTreeMap<String, Vec<String>> {
    let texts: BTreeMap<&String, &String> = files.texts().collect();
    let of = |with: &BTreeSet<&String>| {
        let names = with.iter().filter_map(|path| texts.get(path)).flat_map(|text| shown(text));
        let names: BTreeSet<String> = names.filter_map(|(_, name)| name.map(str::to_owned)).collect();
        names.into_iter().collect()
    };
    pages(files).into_iter().map(|(path, with)| (path.clone(), of(&with))).collect()
}

/// Images that are shown and not there, or that are no images.
#[must_use]
pub fn missing(files: &Files) -> Vec<Fault> {
    let texts: BTreeMap<&String, &String> = files.texts().collect();
    let used: BTreeSet<&String> = pages(files).into_values().flatten().collect();
    let mut missing = Vec::new();
    for path in used {
        let Some(text) = texts.get(path) else { continue };
        for (at, name) in shown(text) {
            let what = match name {
                None => "the name of an inline image is written out: the files are looked at before there is any data"
                    .to_owned(),
                Some(name) if is_refused(files, name) => continue,
                Some(name) if content(files, name).is_none() => {
                    format!("shows `cid:{name}`, and there is no {ATTACHMENTS}/{name}")
                }
                Some(name) if !type_of(name).is_some_and(|kind| kind.starts_with("image/")) => {
                    format!("shows `cid:{name}`, which is no image by its ending")
                }
                Some(_) => continue,
            };
            let line = text[..at].matches('\n').count() + 1;
            let own = Place { file: path.clone(), line };
            let place = files.made.get(path).filter(|made| !made.lines.is_empty());
            // Of MJML only the lines of its tags are known; the source knows the rest.
            let place = place.map_or(own, |_| in_source(files, path, name.unwrap_or_default()));
            missing.push((place, what));
        }
    }
    missing.dedup();
    missing
}

fn in_source(files: &Files, path: &str, name: &str) -> Place {
    let text = files.files.get(path).map_or("", String::as_str);
    let line = text.lines().position(|line| line.contains(&format!("cid:{name}"))).map_or(0, |at| at + 1);
    Place { file: path.to_owned(), line }
}

/// Leaves out what is there for other templates: no version has to be kept with it.
pub fn prune(files: &mut Files, meta: Option<&Meta>) {
    let shown: BTreeSet<String> = images(files).into_values().flatten().collect();
    let is_used = |name: &str| {
        shown.contains(name) || meta.is_none_or(|meta| meta.attachments.iter().any(|one| one.file == name))
    };
    let shared = format!("{SHARED}/{ATTACHMENTS}/");
    files.files.retain(|path, _| path.strip_prefix(&shared).is_none_or(is_used));
}

/// The template's own files that nothing attaches or shows.
#[must_use]
pub fn unused(meta: &Meta, files: &Files) -> Vec<String> {
    let shown: BTreeSet<String> = images(files).into_values().flatten().collect();
    let named = |name: &str| meta.attachments.iter().any(|one| one.file == name);
    let own = files.files.keys().filter(|path| **path != META);
    let own = own.filter_map(|path| Some((path, path.strip_prefix(ATTACHMENTS)?.strip_prefix('/')?)));
    own.filter(|(_, name)| !shown.contains(*name) && !named(name)).map(|(path, _)| path.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_read_from_the_file_alone() {
        let text = "<img src=\"cid:a.png\"><td style='background:url(cid:b.jpg)'>cid:c and xcid:d {{ \"cid:e\" }}\
                    <img src=cid:f.gif><img src='cid:{{ g }}'>";
        let names: Vec<Option<&str>> = shown(text).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, [Some("a.png"), Some("b.jpg"), Some("f.gif"), None]);
    }

    #[test]
    fn media_types_are_those_that_mail_may_have() {
        for (ending, kind) in TYPES {
            let one = Attachment { filename: "x".into(), content_type: kind.into(), base64: String::new(), cid: None };
            assert_eq!(wrong_attachment(&one, &[]), [], "{ending}");
        }
        assert_eq!(type_of("A.PDF"), Some("application/pdf"));
        assert_eq!(type_of("pdf"), None);
    }
}
