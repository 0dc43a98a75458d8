//! SMTP against a scripted stub and a real mail server.

mod attached;
mod building;
mod cases;
mod connecting;
mod corpus;
mod doors;
mod injection;
mod python;
mod real_server;
mod suppressing;
mod unsubscribing;

use std::sync::Arc;
use std::time::Duration;

use belfry::channel::smtp::SmtpChannel;
use belfry::channel::smtp::config::{AuthMechanism, SmtpConfig, SmtpReuse, SmtpTimeouts};
use belfry::ports::channel::{Call, Channel as _, LeaseGate};
use belfry::ports::message::{Address, EmailMessage, Mailbox, Outgoing, Rendered};
use belfry::ports::span::Span;
use belfry_domain::key::{KeyKind, child_key};
use belfry_domain::{ChannelKind, DeliveryId, NotificationId, Outcome, UnixMs, WhyCode};

use crate::peers::smtp_stub::{PATIENCE, SmtpStub};

/// 2023-11-14T22:13:20Z.
pub const ACCEPTED_AT: UnixMs = UnixMs(1_700_000_000_000);

pub fn mailbox(email: &str) -> Mailbox {
    Mailbox { name: None, email: Address(email.to_owned()) }
}

pub fn named(name: &str, email: &str) -> Mailbox {
    Mailbox { name: Some(name.to_owned()), email: Address(email.to_owned()) }
}

/// A plain mail to ann@example.com.
pub fn mail() -> EmailMessage {
    EmailMessage {
        from: None,
        reply_to: Vec::new(),
        to: vec![named("Ann", "ann@example.com")],
        cc: Vec::new(),
        subject: "Your order 42".to_owned(),
        text: "It is on its way.\n".to_owned(),
        html: None,
        headers: Vec::new(),
        attachments: Vec::new(),
    }
}

/// The copy of `mail` to `address`, of the intent `key`.
pub fn outgoing_of(key: &str, mail: EmailMessage, address: &str) -> Outgoing {
    let notification = NotificationId::http("default", "live", "main", key);
    let delivery = DeliveryId::of(notification, "email", "to");
    Outgoing {
        channel: ChannelKind::Email,
        tenant: "default".to_owned(),
        environment: "live".to_owned(),
        notification,
        delivery,
        send: 1,
        send_key: delivery.send_key(1),
        message_key: child_key(KeyKind::Message, &[notification.0.as_bytes(), &1_u32.to_be_bytes()]),
        created_at: ACCEPTED_AT,
        expires_at: ACCEPTED_AT.plus(Duration::from_secs(3600)),
        address: Address(address.to_owned()),
        message: Rendered::Email(Box::new(mail)),
        collapse: None,
        seen_token: None,
    }
}

pub fn outgoing(mail: EmailMessage) -> Outgoing {
    outgoing_of("order-42/shipped", mail, "ann@example.com")
}

struct Covered(bool);

impl LeaseGate for Covered {
    fn covers(&self) -> bool {
        self.0
    }
}

pub fn call() -> Call {
    Call::new(Arc::new(Covered(true)))
}

pub fn lapsed_call() -> Call {
    Call::new(Arc::new(Covered(false)))
}

/// Long enough that no deadline of the product decides unless the test shortens it.
pub fn config(url: &str) -> SmtpConfig {
    let long = Span::secs(60);
    SmtpConfig {
        url: url.to_owned(),
        password: None,
        password_file: None,
        auth: AuthMechanism::Plain,
        from: "Shop <shop@example.com>".to_owned(),
        helo: None,
        ca_file: None,
        dkim: None,
        connections: 1,
        timeouts: SmtpTimeouts {
            connect: long,
            greeting: long,
            command: long,
            data: long,
            block: long,
            end_of_data: long,
        },
        reuse: SmtpReuse::default(),
    }
}

pub fn channel(stub: &SmtpStub) -> SmtpChannel {
    SmtpChannel::new(&config(&stub.url())).unwrap()
}

/// Sends, bounded by the tests' patience.
pub async fn send(channel: &SmtpChannel, out: &Outgoing) -> Outcome {
    tokio::time::timeout(PATIENCE, channel.send(out, &call())).await.expect("the channel does not come back")
}

pub fn code(outcome: &Outcome) -> WhyCode {
    outcome.why().code
}
