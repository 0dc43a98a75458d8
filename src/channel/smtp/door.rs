//! The last look at a mail before it is built, by the same rules as the door's
//! ([`ports::mail`](crate::ports::mail)): it finds something only where a message did not come
//! through the door.

use thiserror::Error;

use super::address::AddressProblem;
use crate::ports::mail::{MOST_ATTACHMENTS, MOST_HEADERS, TO_UNSUBSCRIBE, wrong_attachment, wrong_header};
use crate::ports::message::Attachment;

/// One thing wrong with a mail. `Display` never shows a value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MailProblem {
    #[error("header {at} {why}")]
    Header { at: usize, why: &'static str },
    #[error("there are more than {MOST_HEADERS} headers")]
    TooManyHeaders,
    #[error("attachment {at}: {field} {why}")]
    Attachment { at: usize, field: &'static str, why: &'static str },
    #[error("there are more than {MOST_ATTACHMENTS} attachments")]
    TooManyAttachments,
    #[error("the attachments are larger than 10 MiB together")]
    AttachmentsTooLarge,
    #[error("{field}: the address {why}")]
    Address { field: &'static str, why: AddressProblem },
    #[error("the message has no recipient to show in To")]
    NoTo,
}

/// The first thing wrong with a mail's own headers.
pub(super) fn check_headers(headers: &[(String, String)]) -> Result<(), MailProblem> {
    if headers.len() > MOST_HEADERS + TO_UNSUBSCRIBE {
        return Err(MailProblem::TooManyHeaders);
    }
    let wrong = |(at, (name, value)): (usize, &(String, String))| {
        wrong_header(name, value, &headers[..at]).map(|why| MailProblem::Header { at, why })
    };
    headers.iter().enumerate().find_map(wrong).map_or(Ok(()), Err)
}

/// The first thing wrong with a mail's attachments, as far as it shows without decoding them.
pub(super) fn check_attachments(attachments: &[Attachment]) -> Result<(), MailProblem> {
    if attachments.len() > MOST_ATTACHMENTS {
        return Err(MailProblem::TooManyAttachments);
    }
    let wrong = |(at, one): (usize, &Attachment)| {
        let first = wrong_attachment(one, &attachments[..at]).into_iter().next();
        first.map(|(field, why)| MailProblem::Attachment { at, field, why })
    };
    attachments.iter().enumerate().find_map(wrong).map_or(Ok(()), Err)
}
