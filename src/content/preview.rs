//! A template with its sample, as people will see it: on the terminal and as files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use belfry_domain::ChannelKind;
use belfry_domain::notification::TemplateRef;
use belfry_domain::zone::Zone;
use serde_json::value::RawValue;
use thiserror::Error;

use super::files::{HTML, PUSH, SMS, SUBJECT, TEXT};
use super::inputs::{Device, Inputs, Links, Source, To};
use super::text::sms_segments;
use super::{Content, LARGEST_PUSH, RenderFault, RenderProblem};
use crate::ports::locale::{NO_TAG, is_tag};
use crate::ports::message::{Address, Attachment, EmailMessage, Mailbox, Rendered};

/// What a preview shows.
#[derive(Clone, Debug)]
pub struct Preview {
    pub template: TemplateRef,
    /// For a terminal, without colours.
    pub screen: String,
    /// What was written, where a folder was given.
    pub files: Vec<PathBuf>,
    /// Channels whose message could not be made; on the screen as well.
    pub problems: Vec<RenderProblem>,
}

/// For whom it is tried out, and with what.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    /// Absent: the template's own language; of a comparison, each that there is.
    pub locale: Option<String>,
    /// Absent: not known, so that times are told in UTC.
    pub time_zone: Option<String>,
    /// A JSON object; absent: the sample.
    pub filling: Option<Box<RawValue>>,
}

impl Trial {
    /// # Errors
    /// Where a request would be refused for the same.
    pub(super) fn check(&self) -> Result<(), PreviewProblem> {
        let unfit = |what: &str| Err(PreviewProblem::Unfit(what.to_owned()));
        if self.locale.as_deref().is_some_and(|tag| !is_tag(tag)) {
            return unfit(&format!("the locale {NO_TAG}"));
        }
        if self.time_zone.as_deref().is_some_and(|zone| zone.parse::<Zone>().is_err()) {
            return unfit("the time zone must be an IANA time zone such as Europe/Stockholm");
        }
        if self.filling.as_ref().is_some_and(|data| !data.get().trim_start().starts_with('{')) {
            return unfit("the data has to be an object");
        }
        Ok(())
    }

    /// Inputs with a template and this data, to somebody who can be reached everywhere.
    pub(super) fn inputs(&self, content: &Content, template: &TemplateRef) -> Option<Inputs> {
        let sample = || RawValue::from_string(content.sample(&template.name, Some(&template.locale))?.to_owned()).ok();
        let data = self.filling.clone().or_else(sample)?;
        Some(Inputs { time_zone: self.time_zone.clone(), ..inputs(content, template, data) })
    }
}

#[derive(Debug, Error)]
pub enum PreviewProblem {
    #[error("there is no template `{0}`")]
    NoTemplate(String),
    #[error("the template has no sample.json")]
    NoSample,
    #[error("{0}")]
    Unfit(String),
    #[error("{path} cannot be written: {source}")]
    NotWritten { path: PathBuf, source: io::Error },
}

/// Renders `name` on each of its channels. With `out`, each part becomes a file there, which is made if need be
/// (`subject.txt`, `text.txt`, `html.html`, `sms.txt`, `push.json`); of these, what there is no part for goes.
///
/// # Errors
/// Where there is nothing to render, or no place to write to. What cannot be rendered is no error
/// but part of the preview.
pub fn preview(content: &Content, name: &str, trial: &Trial, out: Option<&Path>) -> Result<Preview, PreviewProblem> {
    trial.check()?;
    let template =
        content.freeze(name, trial.locale.as_deref()).map_err(|_| PreviewProblem::NoTemplate(name.to_owned()))?;
    let inputs = trial.inputs(content, &template).ok_or(PreviewProblem::NoSample)?;
    let meta = content.meta(name).ok_or(PreviewProblem::NoSample)?;
    let mut built = Preview { template, screen: String::new(), files: Vec::new(), problems: Vec::new() };
    let TemplateRef { version, locale, .. } = &built.template;
    built.screen = format!("{name}, {locale}, version {version}\n{}\n", meta.description);
    let mut pushed = false;
    for channel in &meta.channels {
        // One payload serves them all.
        let is_push = matches!(channel, ChannelKind::Apns | ChannelKind::Fcm | ChannelKind::WebPush);
        if is_push && std::mem::replace(&mut pushed, true) {
            continue;
        }
        let (heading, parts) = match content.render(&inputs, *channel, slot(*channel)) {
            Ok(message) => shown(message),
            Err(problem) => {
                let failed = (format!("{channel}: FAILED"), vec![(None, format!("{problem}\n"))]);
                built.problems.push(problem);
                failed
            }
        };
        built.show(&heading, parts, out)?;
    }
    if let Some(out) = out {
        built.tidied(out)?;
    }
    Ok(built)
}

/// The files that a preview may write.
const WRITTEN: [&str; 5] = [SUBJECT, TEXT, HTML, SMS, PUSH];

impl Preview {
    /// Takes away what an earlier preview wrote and this one has no part for: it would be taken for this one's.
    fn tidied(&self, out: &Path) -> Result<(), PreviewProblem> {
        let stale = WRITTEN.map(|file| out.join(file)).into_iter().filter(|path| !self.files.contains(path));
        for path in stale {
            match fs::remove_file(&path) {
                Err(source) if !matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    return Err(PreviewProblem::NotWritten { path, source });
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    fn show(&mut self, heading: &str, parts: Parts, out: Option<&Path>) -> Result<(), PreviewProblem> {
        self.screen += &format!("\n== {heading}\n\n");
        for (file, text) in parts {
            if file == Some(HTML) {
                self.screen += &format!("\nHTML: {} KiB\n", text.len().div_ceil(1024));
            } else {
                self.screen.push_str(&text);
            }
            if let (Some(out), Some(file)) = (out, file) {
                let path = out.join(file);
                fs::create_dir_all(out)
                    .and_then(|()| fs::write(&path, text))
                    .map_err(|source| PreviewProblem::NotWritten { path: path.clone(), source })?;
                self.files.push(path);
            }
        }
        Ok(())
    }
}

/// File, where the part becomes one, and text ending in a line end.
type Parts = Vec<(Option<&'static str>, String)>;

fn shown(message: Rendered) -> (String, Parts) {
    match message {
        Rendered::Email(mail) => ("Email".to_owned(), mail_parts(*mail)),
        Rendered::Sms { text } => {
            let parts = sms_segments(&text);
            let count = text.chars().count();
            (
                format!("SMS, {count} characters, {parts} {}", if parts == 1 { "part" } else { "parts" }),
                vec![(Some(SMS), text + "\n")],
            )
        }
        Rendered::Push { payload, .. } => {
            (format!("Push, {} of {LARGEST_PUSH} bytes", payload.len()), vec![(Some(PUSH), payload + "\n")])
        }
        Rendered::Inbox { payload } => ("Inbox".to_owned(), vec![(None, payload + "\n")]),
        Rendered::Webhook { body } => ("Webhook".to_owned(), vec![(None, body + "\n")]),
        Rendered::Chat { text } => ("Chat".to_owned(), vec![(None, text + "\n")]),
    }
}

fn mail_parts(mail: EmailMessage) -> Parts {
    let mut parts = vec![(None, "Subject: ".to_owned()), (Some(SUBJECT), mail.subject + "\n")];
    parts.extend(mail.headers.into_iter().map(|(name, value)| (None, format!("{name}: {value}\n"))));
    parts.push((None, "\n".to_owned()));
    parts.push((Some(TEXT), mail.text));
    parts.extend(mail.html.map(|html| (Some(HTML), html)));
    parts.extend(mail.attachments.iter().map(|one| {
        let how = if one.cid.is_some() { "Image in the HTML" } else { "Attachment" };
        (None, format!("{how}: {} ({}, {})\n", one.filename, one.content_type, size_of(one)))
    }));
    parts
}

/// How large a file is, for people.
pub(super) fn size_of(one: &Attachment) -> String {
    format!("{} KiB", decoded_len(one).div_ceil(1024))
}

/// In bytes, as far as base64 tells without being decoded.
pub(super) fn decoded_len(one: &Attachment) -> usize {
    one.base64.len() / 4 * 3 - one.base64.bytes().rev().take_while(|byte| *byte == b'=').count()
}

/// Inputs to somebody who can be reached everywhere.
fn inputs(content: &Content, template: &TemplateRef, data: Box<RawValue>) -> Inputs {
    let device = |kind| Device { kind, token: Address("sample".to_owned()), app: None, environment: None, id: None };
    let address = |text: &str| Some(Address(text.to_owned()));
    Inputs {
        to: To {
            recipient: Some("sample".to_owned()),
            email: Some(Mailbox { name: None, email: Address("sample@example.com".to_owned()) }),
            phone: address("+12025550100"),
            devices: vec![device(ChannelKind::Apns), device(ChannelKind::Fcm), device(ChannelKind::WebPush)],
            webhook: address("https://example.com/"),
            chat: address("sample"),
            ..To::default()
        },
        source: Source::template(template.clone(), data),
        locale: Some(template.locale.clone()),
        time_zone: None,
        links: Some(Links {
            base: "https://notify.example.com".to_owned(),
            unsubscribe: content.speaks_of_links(&template.version),
            tokens: [("to".to_owned(), "sample".to_owned())].into(),
        }),
    }
}

/// The slot of [`inputs`] on a channel.
pub(super) const fn slot(channel: ChannelKind) -> &'static str {
    match channel {
        ChannelKind::Email => "to",
        ChannelKind::Apns => "device/0",
        ChannelKind::Fcm => "device/1",
        ChannelKind::WebPush => "device/2",
        ChannelKind::Sms => "phone",
        ChannelKind::Webhook => "webhook",
        ChannelKind::Chat => "chat",
        ChannelKind::Inbox => "recipient",
    }
}

/// Which rule of the lint a failed sample falls under.
pub(super) const fn rule_of(fault: RenderFault) -> &'static str {
    match fault {
        RenderFault::TooLarge | RenderFault::Late => "too_large",
        RenderFault::MissingPart => "missing_part",
        RenderFault::UnknownTemplate
        | RenderFault::UnknownVersion
        | RenderFault::NoSuchSlot
        | RenderFault::MissingVariable
        | RenderFault::Failed => "sample_fails",
    }
}
