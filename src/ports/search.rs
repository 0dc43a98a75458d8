//! What is looked for among all that is remembered, and what is found of it.

use std::time::Duration;

use belfry_domain::delivery::StateName;
use belfry_domain::notification::Record;
use belfry_domain::{ChannelKind, Delivery, Notification, NotificationId, UnixMs};

use super::deliveries::Owner;

/// Most ids in one query.
pub const MOST_IDS: usize = 1_000;

/// Most records that one call looks at. A page may then be short of its limit, or empty, and still say where to go on.
pub const MOST_WALKED: usize = 2_000;

/// How far behind its fellows' a node's clock may have been when it accepted something: a stretch of [`MOST_WALKED`]
/// records that all lie further back than this before what is asked for has nothing of it behind it.
const ASTRAY: Duration = Duration::from_secs(24 * 3600);

/// A recipient as a notification names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRecipient {
    pub name: String,
    /// [`NewNotification::recipient_hash`](super::deliveries::NewNotification::recipient_hash).
    pub hash: String,
}

/// Newest first, but for [`Self::ids`]. All filters must hold.
#[derive(Clone, Debug)]
pub struct Query {
    pub owner: Owner,
    pub reference: Option<String>,
    /// The notification's state.
    pub state: Option<StateName>,
    pub class: Option<String>,
    pub channel: Option<ChannelKind>,
    pub group: Option<String>,
    /// That a delivery was accepted with, whatever token its device has had since.
    pub address_hash: Option<String>,
    pub recipient: Option<NamedRecipient>,
    /// A template's name.
    pub template: Option<String>,
    /// As it was frozen at the accept.
    pub template_version: Option<String>,
    /// Accepted then or later.
    pub accepted_from: Option<UnixMs>,
    /// Accepted before.
    pub accepted_until: Option<UnixMs>,
    /// Nothing but these, at most [`MOST_IDS`], each once: found in this order, of which a page looks at its limit.
    pub ids: Option<Vec<NotificationId>>,
    /// Opaque to callers: the store's own position after which to go on; of a query for ids how many are done.
    pub after: Option<u64>,
    /// 1 to 100.
    pub limit: u16,
}

impl Query {
    /// All that is an owner's, on pages of 100.
    #[must_use]
    pub const fn of(owner: Owner) -> Self {
        Self {
            owner,
            reference: None,
            state: None,
            class: None,
            channel: None,
            group: None,
            address_hash: None,
            recipient: None,
            template: None,
            template_version: None,
            accepted_from: None,
            accepted_until: None,
            ids: None,
            after: None,
            limit: 100,
        }
    }

    /// Whether all filters hold for a record.
    #[must_use]
    pub fn fits(&self, record: &Record) -> bool {
        self.owner.owns(record)
            && self.fits_notification(&record.notification)
            && self.state.is_none_or(|state| record.state() == state)
            && self.channel.is_none_or(|channel| record.channels().contains(&channel))
            && self
                .address_hash
                .as_ref()
                .is_none_or(|hash| record.deliveries.iter().any(|one| accepted_for(one) == hash))
    }

    /// Whether those filters hold that say nothing of deliveries.
    #[must_use]
    pub fn fits_notification(&self, it: &Notification) -> bool {
        let same = |asked: &Option<String>, is: Option<&String>| asked.as_ref().is_none_or(|asked| Some(asked) == is);
        let template = it.template.as_ref();
        same(&self.class, Some(&it.class))
            && same(&self.reference, it.reference.as_ref())
            && same(&self.group, it.group.as_ref())
            && same(&self.template, template.map(|template| &template.name))
            && same(&self.template_version, template.map(|template| &template.version))
            && self.recipient.as_ref().is_none_or(|asked| Some(&asked.name) == it.recipient.as_ref())
            && self.accepted_from.is_none_or(|from| it.created_at >= from)
            && self.accepted_until.is_none_or(|until| it.created_at < until)
            && self.ids.as_ref().is_none_or(|ids| ids.contains(&it.id))
    }

    /// Whether it was accepted so long before what is asked for that what is older may be taken for older still.
    #[must_use]
    pub fn is_long_past(&self, accepted: UnixMs) -> bool {
        self.accepted_from.is_some_and(|from| accepted.plus(ASTRAY) < from)
    }

    /// The state asked for, where people look for it and few records are in it: it is worth an index.
    #[must_use]
    pub fn rare_state(&self) -> Option<StateName> {
        self.state.filter(|state| {
            matches!(state, StateName::Parked | StateName::Unknown | StateName::Failed | StateName::Bounced)
        })
    }

    /// Of a query for ids, those that the next page looks at, and where the page after it goes on.
    #[must_use]
    pub fn named(&self) -> Option<(&[NotificationId], Option<u64>)> {
        let ids = self.ids.as_deref()?;
        let from = self.after.map_or(0, |after| usize::try_from(after).unwrap_or(usize::MAX).min(ids.len()));
        let to = ids.len().min(from + usize::from(self.limit.clamp(1, 100)));
        Some((&ids[from..to], u64::try_from(to).ok().filter(|_| to < ids.len())))
    }
}

fn accepted_for(delivery: &Delivery) -> &str {
    delivery.first_hash.as_ref().unwrap_or(&delivery.address_hash)
}

#[derive(Clone, Debug, Default)]
pub struct Page {
    pub records: Vec<Record>,
    pub next: Option<u64>,
}
