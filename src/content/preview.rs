//! A template with its sample, as people will see it: on the terminal and as files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use belfry_domain::ChannelKind;
use belfry_domain::notification::TemplateRef;
use serde_json::value::RawValue;
use thiserror::Error;

use super::inputs::{Device, Inputs, Links, Source, To};
use super::text::sms_segments;
use super::{Content, LARGEST_PUSH, RenderFault, RenderProblem};
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

#[derive(Debug, Error)]
pub enum PreviewProblem {
    #[error("there is no template `{0}`")]
    NoTemplate(String),
    #[error("the template has no sample.json")]
    NoSample,
    #[error("{path} cannot be written: {source}")]
    NotWritten { path: PathBuf, source: io::Error },
}

/// Renders the sample of `name` on each of its channels. With `out`, each part becomes a file
/// there, which is made if need be: `subject.txt`, `text.txt`, `html.html`, `sms.txt`, `push.json`.
///
/// # Errors
/// Where there is nothing to render, or no place to write to. What cannot be rendered is no error
/// but part of the preview.
pub fn preview(
    content: &Content,
    name: &str,
    locale: Option<&str>,
    out: Option<&Path>,
) -> Result<Preview, PreviewProblem> {
    let template = content.freeze(name, locale).map_err(|_| PreviewProblem::NoTemplate(name.to_owned()))?;
    let inputs = sample_inputs(content, &template).ok_or(PreviewProblem::NoSample)?;
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
    Ok(built)
}

impl Preview {
    fn show(&mut self, heading: &str, parts: Parts, out: Option<&Path>) -> Result<(), PreviewProblem> {
        self.screen += &format!("\n== {heading}\n\n");
        for (file, text) in parts {
            if file == Some("html.html") {
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
                vec![(Some("sms.txt"), text + "\n")],
            )
        }
        Rendered::Push { payload, .. } => {
            (format!("Push, {} of {LARGEST_PUSH} bytes", payload.len()), vec![(Some("push.json"), payload + "\n")])
        }
        Rendered::Inbox { payload } => ("Inbox".to_owned(), vec![(None, payload + "\n")]),
        Rendered::Webhook { body } => ("Webhook".to_owned(), vec![(None, body + "\n")]),
        Rendered::Chat { text } => ("Chat".to_owned(), vec![(None, text + "\n")]),
    }
}

fn mail_parts(mail: EmailMessage) -> Parts {
    let mut parts = vec![(None, "Subject: ".to_owned()), (Some("subject.txt"), mail.subject + "\n")];
    parts.extend(mail.headers.into_iter().map(|(name, value)| (None, format!("{name}: {value}\n"))));
    parts.push((None, "\n".to_owned()));
    parts.push((Some("text.txt"), mail.text));
    parts.extend(mail.html.map(|html| (Some("html.html"), html)));
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

/// Inputs with a template's sample, to somebody who can be reached everywhere.
pub(super) fn sample_inputs(content: &Content, template: &TemplateRef) -> Option<Inputs> {
    let sample = content.sample(&template.name, Some(&template.locale))?;
    let device = |kind| Device { kind, token: Address("sample".to_owned()), app: None, environment: None, id: None };
    let address = |text: &str| Some(Address(text.to_owned()));
    Some(Inputs {
        to: To {
            recipient: Some("sample".to_owned()),
            email: Some(Mailbox { name: None, email: Address("sample@example.com".to_owned()) }),
            phone: address("+12025550100"),
            devices: vec![device(ChannelKind::Apns), device(ChannelKind::Fcm), device(ChannelKind::WebPush)],
            webhook: address("https://example.com/"),
            chat: address("sample"),
            ..To::default()
        },
        source: Source::template(template.clone(), RawValue::from_string(sample.to_owned()).ok()?),
        locale: Some(template.locale.clone()),
        time_zone: None,
        links: Some(Links {
            base: "https://notify.example.com".to_owned(),
            unsubscribe: content.speaks_of_links(&template.version),
            tokens: [("to".to_owned(), "sample".to_owned())].into(),
        }),
    })
}

/// The slot of [`sample_inputs`] on a channel.
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
