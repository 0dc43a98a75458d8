//! From frozen inputs to one message. Pure: the same inputs give the same bytes on any node, after
//! any crash, which is what makes a repeat harmless.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use belfry_domain::ChannelKind;
use minijinja::Value;
use serde_json::value::RawValue;

use super::files::{META, PUSH, SHARED, SMS, SUBJECT, TEXT};
use super::inputs::{Inline, Inputs, Source, To};
use super::json::{Escaped, Json};
use super::kept::Attaches;
use super::problem::{RenderFault, RenderProblem};
use super::regional::Region;
use super::template::{Template, filename_file, header_file};
use super::value::{Numbers, from_json};
use super::{attached, language, plain, push, regional, text};
use crate::ports::mail as mail_rules;
use crate::ports::message::{Attachment, EmailMessage, Rendered};

/// Of one body part, in bytes. Past 100 KiB mail programs begin to cut.
pub const LARGEST_BODY: usize = 1024 * 1024;
/// In bytes.
pub const LARGEST_SUBJECT: usize = 4_000;
/// In characters: ten parts of an SMS.
pub const LARGEST_SMS: usize = 1_600;
/// In bytes of UTF-8: what APNs and FCM take.
pub const LARGEST_PUSH: usize = 4_096;
/// The name under which a template finds what is not the caller's: `belfry.locale`.
const OWN: &str = "belfry";

/// The file that is being worked on, for whoever waits for it.
pub type Place = Arc<Mutex<String>>;

/// The message for one address slot of these inputs. `template` is the frozen one, for inputs
/// that name one.
///
/// # Errors
/// Where the content has nothing for the channel, or cannot be made from this data.
pub fn render(
    inputs: &Inputs,
    channel: ChannelKind,
    slot: &str,
    template: Option<&Template>,
    place: &Place,
) -> Result<Rendered, RenderProblem> {
    if !inputs.to.slots(channel).iter().any(|(known, _)| known == slot) {
        return Err(RenderProblem::new(RenderFault::NoSuchSlot, format!("no such address on {channel}")));
    }
    match (&inputs.source, template) {
        (Source::Inline(inline), _) => Ok(with_unsubscribe(inline_message(&inputs.to, inline, channel)?, inputs, slot)),
        (Source::Template { template: frozen, data, envelope }, Some(template)) => {
            if channel != ChannelKind::Webhook && !template.meta.channels.contains(&channel) {
                return Err(missing(&format!("the template has nothing for {channel}")).in_file(&frozen.name));
            }
            let own = own_values(inputs, &frozen.locale, slot);
            let own = (inputs.time_zone.as_deref(), own);
            let page = Page::new(template, &frozen.locale, own, (data.get(), place))?;
            let message = enveloped(page.message(&inputs.to, channel, data)?, envelope.as_deref())?;
            Ok(with_unsubscribe(message, inputs, slot))
        }
        (Source::Template { .. }, None) => {
            Err(RenderProblem::new(RenderFault::UnknownVersion, "the frozen template is not in memory"))
        }
    }
}

/// What a template finds under [`OWN`].
fn own_values(inputs: &Inputs, locale: &str, slot: &str) -> Value {
    let or_null = |text: Option<String>| text.map_or_else(|| Value::from(()), Value::from);
    let links = inputs.links.as_ref();
    Value::from_pairs([
        ("locale", Value::from(locale)),
        ("time_zone", or_null(inputs.time_zone.clone())),
        ("unsubscribe_url", or_null(links.and_then(|links| links.unsubscribe_url(slot)))),
        ("preferences_url", or_null(links.and_then(|links| links.preferences_url(slot)))),
    ])
}

/// A template's mail with what the request puts around it. A header of the request stands in place of the template's.
fn enveloped(mut message: Rendered, envelope: Option<&Inline>) -> Result<Rendered, RenderProblem> {
    let (Rendered::Email(mail), Some(given)) = (&mut message, envelope) else { return Ok(message) };
    if given.from.is_some() {
        mail.from.clone_from(&given.from);
    }
    if !given.reply_to.is_empty() {
        mail.reply_to.clone_from(&given.reply_to);
    }
    mail.headers.retain(|(name, _)| !given.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)));
    mail.headers.extend(given.headers.iter().cloned());
    for attachment in given.attachments.iter().map(Attaches::whole) {
        let attachment = attachment?;
        if let Some((field, why)) = mail_rules::wrong_attachment(&attachment, &mail.attachments).into_iter().next() {
            let what = format!("beside the template's own attachments, the `{field}` of one of the request {why}");
            return Err(RenderProblem::new(RenderFault::Failed, what));
        }
        mail.attachments.push(attachment);
    }
    match mail_rules::too_much(&mail.headers, &mail.attachments) {
        Some(what) => Err(RenderProblem::new(RenderFault::TooLarge, what)),
        None => Ok(message),
    }
}

/// A mail with the headers by which mail programs unsubscribe (RFC 2369, RFC 8058), unless it has its own. One click
/// is only promised where the link is https, as RFC 8058 has it (section 3.1).
fn with_unsubscribe(mut message: Rendered, inputs: &Inputs, slot: &str) -> Rendered {
    let url = inputs.links.as_ref().and_then(|links| links.unsubscribe_url(slot));
    if let (Rendered::Email(mail), Some(url)) = (&mut message, url)
        && !mail.headers.iter().any(|(name, _)| name.to_ascii_lowercase().starts_with("list-unsubscribe"))
    {
        let one_click = url.starts_with("https://");
        mail.headers.push(("List-Unsubscribe".into(), format!("<{url}>")));
        if one_click {
            mail.headers.push(("List-Unsubscribe-Post".into(), "List-Unsubscribe=One-Click".into()));
        }
    }
    message
}

fn missing(what: &str) -> RenderProblem {
    RenderProblem::new(RenderFault::MissingPart, what)
}

fn too_large(what: &str, limit: usize, unit: &str) -> RenderProblem {
    RenderProblem::new(RenderFault::TooLarge, format!("{what} has more than {limit} {unit}"))
}

fn inline_message(to: &To, inline: &Inline, channel: ChannelKind) -> Result<Rendered, RenderProblem> {
    let absent = |field: &str| missing(&format!("`content.{field}` is missing for {channel}"));
    Ok(match channel {
        ChannelKind::Email => {
            let subject = inline.subject.as_deref().ok_or_else(|| absent("subject"))?;
            let body = Body { text: inline.text.clone(), html: inline.html.clone() };
            let mut mail = mail(to, subject, body, inline.headers.clone())?;
            mail.from.clone_from(&inline.from);
            mail.reply_to.clone_from(&inline.reply_to);
            mail.attachments = inline.attachments.iter().map(Attaches::whole).collect::<Result<_, _>>()?;
            Rendered::Email(Box::new(mail))
        }
        ChannelKind::Sms => sms(inline.sms.as_deref().ok_or_else(|| absent("sms"))?)?,
        ChannelKind::Apns | ChannelKind::Fcm | ChannelKind::WebPush => {
            let given = inline.push.as_ref().ok_or_else(|| absent("push"))?;
            pushed(given.get(), channel).map_err(|problem| problem.at_pointer("/push"))?
        }
        ChannelKind::Inbox => {
            Rendered::Inbox { payload: inbox(inline.push.as_ref().ok_or_else(|| absent("push"))?.get())? }
        }
        // Verbatim: a signature is over these bytes.
        ChannelKind::Webhook => {
            Rendered::Webhook { body: inline.webhook.as_ref().ok_or_else(|| absent("webhook"))?.get().to_owned() }
        }
        ChannelKind::Chat => Rendered::Chat { text: inline.text.clone().ok_or_else(|| absent("text"))? },
    })
}

struct Body {
    text: Option<String>,
    html: Option<String>,
}

fn mail(to: &To, subject: &str, body: Body, headers: Vec<(String, String)>) -> Result<EmailMessage, RenderProblem> {
    let subject = text::one_line(subject);
    if subject.len() > LARGEST_SUBJECT {
        return Err(too_large("the subject", LARGEST_SUBJECT, "bytes"));
    }
    let fits = |part: &Option<String>| part.as_ref().is_none_or(|part| part.len() <= LARGEST_BODY);
    if !fits(&body.text) || !fits(&body.html) {
        return Err(too_large("a body part", LARGEST_BODY, "bytes"));
    }
    for (at, (name, value)) in headers.iter().enumerate() {
        if let Some(why) = mail_rules::wrong_header(name, value, &headers[..at]) {
            return Err(RenderProblem::new(RenderFault::Failed, format!("the header `{name}` {why}")));
        }
    }
    let text = match (body.text, &body.html) {
        (Some(text), _) => text,
        (None, Some(html)) => plain::from_html(html).ok_or_else(|| {
            RenderProblem::new(RenderFault::Failed, "no text can be made from the HTML; give a text part")
        })?,
        (None, None) => return Err(missing("a mail needs a text or an HTML part")),
    };
    Ok(EmailMessage {
        from: None,
        reply_to: Vec::new(),
        to: to.email.iter().cloned().collect(),
        cc: to.cc.clone(),
        subject,
        text,
        html: body.html,
        headers,
        attachments: Vec::new(),
    })
}

fn sms(text: &str) -> Result<Rendered, RenderProblem> {
    let text = text.trim();
    if text.is_empty() {
        return Err(missing("the SMS is empty"));
    }
    if text.chars().count() > LARGEST_SMS {
        return Err(too_large("the SMS", LARGEST_SMS, "characters"));
    }
    Ok(Rendered::Sms { text: text.to_owned() })
}

/// What the push in `text` becomes on `channel`.
fn pushed(text: &str, channel: ChannelKind) -> Result<Rendered, RenderProblem> {
    let failed = |why: String| RenderProblem::new(RenderFault::Failed, why);
    let json = Json::parse(text).map_err(|fault| failed(format!("the push payload is {fault}")))?;
    if let Some(push::Wrong { pointer, detail }) = push::check(&json).into_iter().next() {
        let place =
            if pointer.is_empty() { "the push payload".into() } else { format!("the push payload's `{pointer}`") };
        return Err(failed(format!("{place} {detail}")));
    }
    let push::Made { payload, settings } = push::made(&json, channel).map_err(|push::TooLarge { bytes, most }| {
        let what = format!("the push comes to {bytes} bytes for {channel}; at most {most} may be sent");
        RenderProblem::new(RenderFault::TooLarge, what)
    })?;
    Ok(Rendered::Push { payload, settings })
}

/// The payload without white space, numbers as written, nothing beyond ASCII escaped.
fn inbox(text: &str) -> Result<String, RenderProblem> {
    let failed = |why: String| RenderProblem::new(RenderFault::Failed, why);
    let json = Json::parse(text).map_err(|fault| failed(format!("the push payload is {fault}")))?;
    let shown = ["title", "body"].map(|name| json.get(name));
    if shown.iter().flatten().any(|value| !matches!(value, Json::Text(_))) {
        return Err(failed("the push payload's `title` and `body` are strings".to_owned()));
    }
    if shown == [None, None] && json.get("data").is_none() {
        return Err(failed("the push payload needs a `title`, a `body` or `data`".to_owned()));
    }
    let payload = json.to_string();
    if payload.len() > LARGEST_PUSH {
        return Err(too_large("the push payload", LARGEST_PUSH, "bytes"));
    }
    Ok(payload)
}

/// A template with the data that it is filled with.
struct Page<'a> {
    template: &'a Template,
    locale: &'a str,
    values: Value,
    /// The same with numbers kept but printed as floats, and with floats, where they differ.
    floats: Option<(Value, Value)>,
    time_zone: Option<&'a str>,
    place: &'a Place,
}

impl<'a> Page<'a> {
    fn new(
        template: &'a Template,
        locale: &'a str,
        (time_zone, own): (Option<&'a str>, Value),
        (given, place): (&str, &'a Place),
    ) -> Result<Self, RenderProblem> {
        let unfit = |why: String| RenderProblem::new(RenderFault::Failed, why);
        let values = Json::parse(given).map_err(|fault| unfit(format!("the data is {fault}")))?;
        let Json::Object(members) = &values else { return Err(unfit("the data has to be an object".to_owned())) };
        if members.iter().any(|(name, _)| name == OWN) {
            let mut problem = unfit(format!("`{OWN}` is taken: it holds what is not the caller's"));
            problem.pointer = Some(format!("/{OWN}"));
            return Err(problem);
        }
        let context = |numbers: Numbers| {
            let mut kept = false;
            let mut values: BTreeMap<&str, Value> = BTreeMap::new();
            for (name, value) in members {
                let (value, has_kept) = from_json(value, numbers);
                kept |= has_kept;
                values.insert(name, value);
            }
            values.insert(OWN, own.clone());
            (Value::from(values), kept)
        };
        let (values, kept) = context(Numbers::Kept);
        let floats = kept.then(|| (context(Numbers::KeptPrintedAsFloat).0, context(Numbers::Float).0));
        Ok(Self { template, locale, values, floats, time_zone, place })
    }

    fn message(&self, to: &To, channel: ChannelKind, given: &RawValue) -> Result<Rendered, RenderProblem> {
        Ok(match channel {
            ChannelKind::Email => Rendered::Email(Box::new(self.mail(to)?)),
            ChannelKind::Sms => {
                let file = self.needed(SMS)?;
                sms(&self.file(&file, LARGEST_BODY)?).map_err(|problem| self.at(problem, &file))?
            }
            ChannelKind::Apns | ChannelKind::Fcm | ChannelKind::WebPush => {
                let file = self.needed(PUSH)?;
                pushed(&self.file(&file, LARGEST_BODY)?, channel).map_err(|problem| self.at(problem, &file))?
            }
            ChannelKind::Inbox => Rendered::Inbox { payload: self.payload()? },
            ChannelKind::Webhook => Rendered::Webhook {
                body: format!("{{\"template\":\"{}\",\"data\":{}}}", Escaped(&self.template.files.name), given.get()),
            },
            ChannelKind::Chat => {
                Rendered::Chat { text: self.file(&self.needed(TEXT)?, LARGEST_BODY)?.trim().to_owned() }
            }
        })
    }

    fn mail(&self, to: &To) -> Result<EmailMessage, RenderProblem> {
        let subject = self.file(&self.needed(SUBJECT)?, LARGEST_SUBJECT)?;
        let (text, html) = self.template.find_body(self.locale);
        let part = |path: Option<String>| {
            path.map(|path| self.file(&path, LARGEST_BODY).map(text::one_final_newline)).transpose()
        };
        let images = html.as_ref().and_then(|path| self.template.images.get(path));
        let body = Body { text: part(text)?, html: part(html)? };
        let mut headers = Vec::new();
        for name in self.template.meta.headers.keys() {
            let value = self.file(&header_file(name), mail_rules::LONGEST_VALUE)?;
            // One that has nothing to say this time is left out.
            if !value.trim().is_empty() {
                headers.push((name.clone(), value.trim().to_owned()));
            }
        }
        let mut mail = mail(to, &subject, body, headers).map_err(|problem| self.at(problem, ""))?;
        mail.attachments =
            images.into_iter().flatten().map(|name| attached::image(name, &self.template.files)).collect();
        self.attach(&mut mail.attachments)?;
        Ok(mail)
    }

    /// Adds the files that the template names.
    fn attach(&self, attachments: &mut Vec<Attachment>) -> Result<(), RenderProblem> {
        for (at, one) in self.template.meta.attachments.iter().enumerate() {
            let given = one.filename.is_some().then(|| self.file(&filename_file(at), LARGEST_SUBJECT)).transpose()?;
            let filename = given.map_or_else(|| one.file.clone(), |given| text::one_line(&given));
            let made = attached::named(one, filename, &self.template.files);
            if let Some((field, why)) = mail_rules::wrong_attachment(&made, attachments).into_iter().next() {
                let why = format!("attachment `{}`: `{field}` {why}", one.file);
                return Err(self.at(RenderProblem::new(RenderFault::Failed, why), META));
            }
            attachments.push(made);
        }
        Ok(())
    }

    fn payload(&self) -> Result<String, RenderProblem> {
        let file = self.needed(PUSH)?;
        inbox(&self.file(&file, LARGEST_BODY)?).map_err(|problem| self.at(problem, &file))
    }

    fn at(&self, problem: RenderProblem, file: &str) -> RenderProblem {
        let name = &self.template.files.name;
        problem.in_file(if file.is_empty() { name.clone() } else { format!("{name}/{file}") })
    }

    fn needed(&self, file: &str) -> Result<String, RenderProblem> {
        self.template.find(self.locale, file).ok_or_else(|| self.at(missing(&format!("there is no {file}")), file))
    }

    /// With a pointer into the data, where its first step is a name that the file gave.
    fn seen_from_outside(&self, mut problem: RenderProblem) -> RenderProblem {
        let own = format!("{}/", self.template.files.name);
        let path = problem.file.strip_prefix(&own).unwrap_or(&problem.file);
        let first = problem.pointer.as_deref().and_then(|pointer| pointer.split('/').nth(1));
        let given = first.and_then(|name| self.template.origins.get(path)?.get(name));
        if let Some(origin) = given {
            problem.pointer.clone_from(origin);
        }
        let (file, line) = self.template.place(path, problem.line);
        if (file.as_str(), line) != (path, problem.line) {
            problem.line = line;
            problem.file = if file.starts_with(SHARED) { file } else { format!("{own}{file}") };
        }
        problem
    }

    fn file(&self, path: &str, limit: usize) -> Result<String, RenderProblem> {
        path.clone_into(&mut self.place.lock().unwrap_or_else(PoisonError::into_inner));
        let language = self.template.language_of(path).to_owned();
        let region = Region { language, time_zone: self.time_zone.map(str::to_owned), plain: path.ends_with(SMS) };
        let spoken = regional::within(&self.template.language, region);
        let with = |values: &Value| language::render(&spoken, &self.template.files.name, path, values, limit);
        let made = with(&self.values).map_err(|problem| self.seen_from_outside(problem))?;
        if let Some((kept, floats)) = &self.floats {
            // A kept number compares with the language's own as an object does: by kind, silently.
            // A choice that would fall otherwise with floats must not go out.
            let same = match (with(kept), with(floats)) {
                (Ok(kept), Ok(floats)) => kept == floats,
                _ => false,
            };
            if !same {
                let why = "compares or calculates with a number that is kept as written; say `|number` there";
                return Err(self.at(RenderProblem::new(RenderFault::Failed, why), path));
            }
        }
        Ok(made)
    }
}
