//! Attachments of a request, whose contents are kept apart from the inputs that name them: each once, however many
//! messages have it with them.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::inputs::Inputs;
use super::problem::{RenderFault, RenderProblem};
use crate::ports::attachments::{Attached, AttachedId};
use crate::ports::deliveries::Owner;
use crate::ports::message::Attachment;

/// In bytes of base64: what is shorter stays in the inputs, where it takes less room than a place of its own.
pub(super) const SHORT: usize = 1024;

/// An attachment with its content, or with the id that this is kept under.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Attaches {
    Whole(Attachment),
    Kept(KeptAttachment),
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct KeptAttachment {
    pub filename: String,
    pub content_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cid: Option<String>,
    pub kept: AttachedId,
}

impl Attaches {
    /// # Errors
    /// Its content is not at hand.
    pub fn whole(&self) -> Result<Attachment, RenderProblem> {
        match self {
            Self::Whole(attachment) => Ok(attachment.clone()),
            Self::Kept(_) => Err(RenderProblem::new(RenderFault::Failed, "an attachment is no longer kept")),
        }
    }

    /// Its content, which only its id stands for from now on; nothing where it is short.
    fn take(&mut self, owner: &Owner) -> Option<Attached> {
        let Self::Whole(Attachment { filename, content_type, base64, cid }) = self else { return None };
        if base64.len() < SHORT {
            return None;
        }
        // There is one base64 of every content: what is made of it again is what was given.
        let attached = Attached::of(owner, STANDARD.decode(base64).ok()?);
        let (filename, content_type) = (std::mem::take(filename), std::mem::take(content_type));
        *self = Self::Kept(KeptAttachment { filename, content_type, cid: cid.take(), kept: attached.id });
        Some(attached)
    }

    fn give(&mut self, contents: &BTreeMap<AttachedId, Vec<u8>>) {
        let Self::Kept(KeptAttachment { filename, content_type, cid, kept }) = self else { return };
        let Some(content) = contents.get(kept) else { return };
        let (filename, content_type) = (std::mem::take(filename), std::mem::take(content_type));
        *self = Self::Whole(Attachment { filename, content_type, base64: STANDARD.encode(content), cid: cid.take() });
    }
}

impl Inputs {
    fn attaches(&mut self) -> &mut [Attaches] {
        self.source.given_mut().map_or(&mut [], |given| &mut given.attachments)
    }

    /// Takes the contents of attachments out, each once, and leaves their ids.
    #[must_use]
    pub fn take_contents(&mut self, owner: &Owner) -> Vec<Attached> {
        let mut taken: Vec<Attached> = Vec::new();
        for attached in self.attaches().iter_mut().filter_map(|one| one.take(owner)) {
            if taken.iter().all(|other| other.id != attached.id) {
                taken.push(attached);
            }
        }
        taken
    }

    /// Which contents are kept elsewhere, each once.
    #[must_use]
    pub fn contents_elsewhere(&self) -> Vec<AttachedId> {
        let mut ids: Vec<AttachedId> = Vec::new();
        for one in self.source.given().map_or(&[][..], |given| &given.attachments) {
            if let Attaches::Kept(KeptAttachment { kept, .. }) = one
                && !ids.contains(kept)
            {
                ids.push(*kept);
            }
        }
        ids
    }

    /// Puts contents back in their places.
    pub fn give_contents(&mut self, contents: &BTreeMap<AttachedId, Vec<u8>>) {
        self.attaches().iter_mut().for_each(|one| one.give(contents));
    }
}

#[cfg(test)]
mod tests {
    use belfry_domain::ChannelKind;

    use super::super::{Content, hash};
    use super::*;
    use crate::ports::message::Rendered;

    fn owner(tenant: &str) -> Owner {
        Owner { tenant: tenant.into(), environment: "live".into() }
    }

    /// As it was frozen before contents were kept apart.
    fn whole(attachments: &[(&str, &[u8])]) -> String {
        let attachment = |(name, content): &(&str, &[u8])| {
            let base64 = STANDARD.encode(content);
            format!(r#"{{"filename":"{name}","content_type":"image/png","base64":"{base64}","cid":"{name}"}}"#)
        };
        let attachments: Vec<String> = attachments.iter().map(attachment).collect();
        format!(
            r#"{{"to":{{"email":{{"email":"ann@example.com"}}}},"source":{{"inline":{{"subject":"s","text":"t","attachments":[{}],"webhook":{{"n":1.50}}}}}}}}"#,
            attachments.join(",")
        )
    }

    fn read(text: &str) -> Inputs {
        serde_json::from_str(text).unwrap()
    }

    fn mail(inputs: &Inputs) -> Result<Rendered, RenderProblem> {
        Content::built_in().unwrap().render(inputs, ChannelKind::Email, "to")
    }

    const LONG: &[u8] = &[7; 1_000];

    #[test]
    fn what_was_frozen_whole_renders_as_what_is_kept_apart() {
        let short = &LONG[..SHORT / 4 * 3 - 3];
        let text = whole(&[("a", LONG), ("b", short), ("c", LONG), ("d", &[1; 768])]);
        let mut inputs = read(&text);
        let before = hash(&mail(&inputs).unwrap());
        let taken = inputs.take_contents(&owner("acme"));
        // The same content twice is one; what is short stays.
        assert_eq!(taken.iter().map(|one| one.content.to_vec()).collect::<Vec<_>>(), [LONG, &[1; 768]]);
        let frozen = serde_json::to_string(&inputs).unwrap();
        assert!(frozen.len() < 2_000 && frozen.contains(&STANDARD.encode(short)), "{frozen}");
        let mut thawed = read(&frozen);
        let ids: Vec<AttachedId> = taken.iter().map(|one| one.id).collect();
        assert_eq!(thawed.contents_elsewhere(), ids);
        thawed.give_contents(&taken.iter().map(|one| (one.id, one.content.to_vec())).collect());
        assert_eq!(serde_json::to_string(&thawed).unwrap(), text);
        assert_eq!(hash(&mail(&thawed).unwrap()), before);
        // What was frozen whole needs nothing from elsewhere.
        assert!(read(&text).contents_elsewhere().is_empty());
    }

    #[test]
    fn no_mail_is_made_without_its_attachment() {
        let mut inputs = read(&whole(&[("a", LONG), ("b", &[1; 768])]));
        let taken = inputs.take_contents(&owner("acme"));
        inputs.give_contents(&BTreeMap::from([(taken[0].id, taken[0].content.to_vec())]));
        assert_eq!(mail(&inputs).unwrap_err().message, "an attachment is no longer kept");
        // Other channels have none.
        let hook = Content::built_in().unwrap().render(&inputs, ChannelKind::Webhook, "webhook");
        assert_eq!(hook.unwrap_err().fault, RenderFault::NoSuchSlot);
    }

    #[test]
    fn two_owners_share_nothing() {
        let of = |tenant| read(&whole(&[("a", LONG)])).take_contents(&owner(tenant)).remove(0).id;
        assert_ne!(of("acme"), of("other"));
    }
}
