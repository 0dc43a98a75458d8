//! What a call is about and whom it is for, as far as rules tell calls apart.

use crate::class::Class;
use crate::delivery::Delivery;
use crate::lane::ChannelKind;
use crate::notification::Notification;

/// Read from the records and the recipient. Not `Debug`: it may hold a telephone number.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    pub tenant: &'a str,
    pub environment: &'a str,
    pub class: &'a str,
    /// [`Class::required`].
    pub required: bool,
    pub channel: ChannelKind,
    pub provider: &'a str,
    /// From whom it would go out, where that tells the recipient's wishes apart: the sending number of an SMS.
    pub sender: Option<&'a str>,
    pub template: Option<&'a str>,
    pub group: Option<&'a str>,
    pub scope: Option<&'a str>,
    /// The caller's own name for the recipient, where the request has one and this is not a copy to somebody else.
    pub recipient: Option<&'a str>,
    /// Keyed hash of the normalised address, as in [`Delivery::address_hash`].
    pub address_hash: &'a str,
    /// E.164, where the address is a telephone number.
    pub number: Option<&'a str>,
}

impl<'a> Subject<'a> {
    /// Of nobody's: no more than what every message of a class on a channel through a provider has in common.
    #[must_use]
    pub const fn of_any(class: &'a str, channel: ChannelKind, provider: &'a str) -> Self {
        Self {
            tenant: "",
            environment: "",
            class,
            required: false,
            channel,
            provider,
            sender: None,
            template: None,
            group: None,
            scope: None,
            recipient: None,
            address_hash: "",
            number: None,
        }
    }

    /// What the records say. The rest (`sender`, `number`) is known to whoever resolved the address.
    #[must_use]
    pub fn of(delivery: &'a Delivery, notification: &'a Notification, class: &'a Class) -> Self {
        Self {
            tenant: &delivery.tenant,
            environment: &notification.environment,
            class: &delivery.class,
            required: class.required,
            channel: delivery.channel,
            provider: &delivery.lane.provider,
            sender: None,
            template: notification.template.as_ref().map(|template| template.name.as_str()),
            group: notification.group.as_deref(),
            scope: notification.scope.as_deref(),
            recipient: delivery.recipient_of(notification),
            address_hash: &delivery.address_hash,
            number: None,
        }
    }
}
