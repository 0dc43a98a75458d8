//! A mail's bytes: lettre's parts put together, every header value encoded by us, nothing drawn
//! and no clock read, so that a repeat is the same octet for octet.
//!
//! `multipart/mixed` (attachments) around `multipart/alternative` (text first, HTML last) around
//! `multipart/related` (HTML and its inline images); each layer only where it is needed.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lettre::Message;
use lettre::message::header::{ContentType, Date, Header, HeaderName, HeaderValue};
use lettre::message::{MessageBuilder, MultiPart, SinglePart};
use thiserror::Error;

use super::address::{AddressProblem, EmailAddress, split_mailbox};
use super::dkim::Signer;
pub use super::door::MailProblem;
use super::door::{check_attachments, check_headers};
use super::{body, header};
use crate::ports::mail::MOST_ATTACHED_BYTES;
use crate::ports::message::{Attachment, EmailMessage, Mailbox, Outgoing};

/// Whom the provider sends as.
#[derive(Clone, Debug)]
pub struct Sender {
    pub name: Option<String>,
    pub address: EmailAddress,
}

impl Sender {
    /// Reads `Name <address>`.
    ///
    /// # Errors
    /// [`AddressProblem`].
    pub fn parse(text: &str) -> Result<Self, AddressProblem> {
        let (name, address) = split_mailbox(text);
        Ok(Self { name, address: EmailAddress::parse(address)? })
    }
}

/// A mail ready for one recipient.
#[derive(Clone)]
pub struct BuiltMail {
    pub from: EmailAddress,
    pub to: EmailAddress,
    /// An address in the envelope or a header has a non-ASCII local part.
    pub needs_smtputf8: bool,
    /// CRLF line ends throughout, the last line ended, dots not yet doubled.
    pub bytes: Vec<u8>,
}

/// The mail cannot be built. `Display` never shows a value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BuildError {
    #[error("{0}")]
    Problem(#[from] MailProblem),
    #[error("the message is no mail")]
    NotAMail,
    #[error("it could not be signed")]
    Signing,
    #[error("it could not be put together: {0}")]
    Lettre(String),
}

/// Builds the copy of `mail` that goes to `out.address`.
///
/// # Errors
/// [`BuildError`]: permanent, the same on every attempt.
pub fn build(
    mail: &EmailMessage,
    out: &Outgoing,
    sender: &Sender,
    signer: Option<&Signer>,
) -> Result<BuiltMail, BuildError> {
    check_headers(&mail.headers)?;
    check_attachments(&mail.attachments)?;
    let from = match &mail.from {
        Some(given) => Shown::of("from", given)?,
        None => Shown { name: sender.name.clone(), address: sender.address.clone() },
    };
    let to = EmailAddress::parse(&out.address.0).map_err(|why| MailProblem::Address { field: "address", why })?;
    let shown = Addressees {
        reply_to: Shown::all("reply_to", &mail.reply_to)?,
        to: Shown::all("to", &mail.to)?,
        cc: Shown::all("cc", &mail.cc)?,
        from,
    };
    if shown.to.is_empty() {
        return Err(MailProblem::NoTo.into());
    }
    let needs_smtputf8 = to.needs_smtputf8() || sender.address.needs_smtputf8() || shown.need_smtputf8();
    let message = with_headers(mail, out, &shown);
    let key = out.message_key.to_string();
    let whole = put_together(message, mail, &key)?;
    let mut bytes = Vec::with_capacity(1024);
    let unsigned = whole.formatted();
    if let Some(signer) = signer {
        let signature = signer.sign(&unsigned, out.created_at).map_err(|_| BuildError::Signing)?;
        bytes.extend_from_slice(signature.as_bytes());
    }
    bytes.extend_from_slice(&unsigned);
    Ok(BuiltMail { from: sender.address.clone(), to, needs_smtputf8, bytes })
}

struct Shown {
    name: Option<String>,
    address: EmailAddress,
}

impl Shown {
    fn of(field: &'static str, mailbox: &Mailbox) -> Result<Self, BuildError> {
        let address = EmailAddress::parse(&mailbox.email.0).map_err(|why| MailProblem::Address { field, why })?;
        Ok(Self { name: mailbox.name.clone(), address })
    }

    fn all(field: &'static str, mailboxes: &[Mailbox]) -> Result<Vec<Self>, BuildError> {
        mailboxes.iter().map(|one| Self::of(field, one)).collect()
    }
}

struct Addressees {
    from: Shown,
    reply_to: Vec<Shown>,
    to: Vec<Shown>,
    cc: Vec<Shown>,
}

impl Addressees {
    fn need_smtputf8(&self) -> bool {
        let lists = [&self.reply_to, &self.to, &self.cc];
        self.from.address.needs_smtputf8() || lists.into_iter().flatten().any(|one| one.address.needs_smtputf8())
    }
}

/// Everything but the MIME headers. One of each: `Message-ID` and `Date` derive from the record.
fn with_headers(mail: &EmailMessage, out: &Outgoing, shown: &Addressees) -> MessageBuilder {
    let domain = shown.from.address.ascii_domain();
    let accepted = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(out.created_at.0).unwrap_or(0));
    let list = |name: &'static str, boxes: &[Shown]| {
        let boxes = boxes.iter().map(|one| (one.name.as_deref(), one.address.as_str()));
        ready(HeaderName::new_from_ascii_str(name), header::mailboxes(name, boxes))
    };
    let from = header::mailboxes("From", [(shown.from.name.as_deref(), shown.from.address.as_str())]);
    // lettre reads the From back to see that there is one: it gets the bare address to read.
    let address = shown.from.address.as_str().to_owned();
    let mut builder = Message::builder()
        .envelope(placeholder_envelope())
        .header(Date::new(accepted))
        .raw_header(HeaderValue::dangerous_new_pre_encoded(HeaderName::new_from_ascii_str("From"), address, from));
    for (name, boxes) in [("Reply-To", &shown.reply_to), ("To", &shown.to), ("Cc", &shown.cc)] {
        if !boxes.is_empty() {
            builder = builder.raw_header(list(name, boxes));
        }
    }
    let subject = header::unstructured("Subject", &mail.subject);
    builder = builder
        .raw_header(ready(HeaderName::new_from_ascii_str("Subject"), subject))
        .raw_header(ready(HeaderName::new_from_ascii_str("Message-ID"), format!("<{}@{domain}>", out.message_key)));
    for (name, value) in &mail.headers {
        // Names were checked above: only letters, digits, - and _.
        if let Ok(checked) = HeaderName::new_from_ascii(name.clone()) {
            builder = builder.raw_header(ready(checked, header::unstructured(name, value)));
        }
    }
    builder
}

/// lettre derives an envelope from To, Cc and Bcc unless it is given one. Ours is in
/// [`BuiltMail`]; this one is never read.
fn placeholder_envelope() -> lettre::address::Envelope {
    let nobody = lettre::Address::new_dangerous("nobody", "invalid");
    lettre::address::Envelope::new(None, vec![nobody]).unwrap_or_else(|_| unreachable!("it has a recipient"))
}

fn ready(name: HeaderName, encoded: String) -> HeaderValue {
    HeaderValue::dangerous_new_pre_encoded(name, String::new(), encoded)
}

fn put_together(message: MessageBuilder, mail: &EmailMessage, key: &str) -> Result<Message, BuildError> {
    // Without HTML there is nothing that could show an inline image: it is attached.
    let is_inline = |one: &Attachment| one.cid.is_some() && mail.html.is_some();
    let (inline, attached): (Vec<_>, Vec<_>) =
        decoded(&mail.attachments)?.into_iter().partition(|(one, _)| is_inline(one));
    let mut content = text_and_html(mail, key, inline)?;
    if !attached.is_empty() {
        let mut mixed = content.within(multipart("mixed", key, 1)?);
        for (one, bytes) in attached {
            mixed = mixed.singlepart(file_part("attachment", one, bytes));
        }
        content = Part::Multi(mixed);
    }
    let whole = match content {
        Part::Single(part) => message.singlepart(part),
        Part::Multi(part) => message.multipart(part),
    };
    whole.map_err(|error| BuildError::Lettre(error.to_string()))
}

fn text_and_html(mail: &EmailMessage, key: &str, inline: Vec<(&Attachment, Vec<u8>)>) -> Result<Part, BuildError> {
    let text = text_part("text/plain; charset=utf-8", &mail.text)?;
    let Some(html) = &mail.html else { return Ok(Part::Single(text)) };
    let mut html = Part::Single(text_part("text/html; charset=utf-8", html)?);
    if !inline.is_empty() {
        let mut related = html.within(multipart("related; type=\"text/html\"", key, 3)?);
        for (one, bytes) in inline {
            related = related.singlepart(file_part("inline", one, bytes));
        }
        html = Part::Multi(related);
    }
    Ok(Part::Multi(html.within(multipart("alternative", key, 2)?.singlepart(text))))
}

enum Part {
    Single(SinglePart),
    Multi(MultiPart),
}

impl Part {
    fn within(self, outer: MultiPart) -> MultiPart {
        match self {
            Self::Single(part) => outer.singlepart(part),
            Self::Multi(part) => outer.multipart(part),
        }
    }
}

/// Each attachment's own bytes, checked together against the limit before any is encoded again.
fn decoded(attachments: &[Attachment]) -> Result<Vec<(&Attachment, Vec<u8>)>, BuildError> {
    let mut all = Vec::with_capacity(attachments.len());
    let mut total = 0;
    for (at, one) in attachments.iter().enumerate() {
        let bytes = STANDARD.decode(&one.base64).map_err(|_| MailProblem::Attachment {
            at,
            field: "base64",
            why: "is not standard base64",
        })?;
        total += bytes.len();
        all.push((one, bytes));
    }
    if total > MOST_ATTACHED_BYTES {
        return Err(MailProblem::AttachmentsTooLarge.into());
    }
    Ok(all)
}

/// `=_` occurs in no quoted-printable or base64 text, and a line of plain text that begins with
/// `--` is never sent as it is; so no content can end its part early.
fn multipart(kind: &str, key: &str, number: u8) -> Result<MultiPart, BuildError> {
    let text = format!("multipart/{kind}; boundary=\"=_{key}_{number}\"");
    Ok(MultiPart::builder().header(content_type(&text)?).build())
}

fn text_part(kind: &str, text: &str) -> Result<SinglePart, BuildError> {
    Ok(SinglePart::builder().header(content_type(kind)?).body(body::encoded(text)))
}

fn content_type(text: &str) -> Result<ContentType, BuildError> {
    ContentType::parse(text).map_err(|_| BuildError::Lettre("a content type cannot be read".into()))
}

fn file_part(kind: &'static str, file: &Attachment, bytes: Vec<u8>) -> SinglePart {
    let builder = SinglePart::builder()
        .header(PartType(header::media_type(&file.content_type)))
        .header(PartDisposition(header::disposition(kind, &file.filename)));
    match &file.cid {
        Some(cid) => builder.header(PartId(format!("<{cid}>"))),
        None => builder,
    }
    .body(body::binary(bytes))
}

/// A part's header, encoded by us: lettre's parts take typed headers only.
macro_rules! part_header {
    ($name:ident, $text:literal) => {
        #[derive(Clone)]
        struct $name(String);

        impl Header for $name {
            fn name() -> HeaderName {
                HeaderName::new_from_ascii_str($text)
            }

            fn parse(encoded: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
                Ok(Self(encoded.to_owned()))
            }

            fn display(&self) -> HeaderValue {
                ready(Self::name(), self.0.clone())
            }
        }
    };
}

part_header!(PartType, "Content-Type");
part_header!(PartDisposition, "Content-Disposition");
part_header!(PartId, "Content-ID");
