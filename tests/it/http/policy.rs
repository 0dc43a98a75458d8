//! The configuration that the tests of the API go by.

use std::collections::BTreeMap;
use std::time::Duration;

use belfry::ports::links::{ClassPage, LinkPolicy};
use belfry::ports::policy::Policy;
use belfry_domain::admission::Rules;
use belfry_domain::class::{Class, Order, RetryPolicy};
use belfry_domain::{ChannelKind, Priority};

use super::bed::DAY;

pub fn policy() -> Policy {
    let class = |name: &str, order, priority| Class {
        name: name.into(),
        order,
        priority,
        expiry: DAY,
        retry: RetryPolicy { base: Duration::from_secs(1), cap: Duration::from_secs(60), max_attempts: 5 },
        resend_limit: u32::from(order == Order::SendThenRecord),
        lease: Duration::from_secs(30),
        window: 15 * DAY,
        receipt_window: 3 * DAY,
        keep_content: 3 * DAY,
        channels: vec![ChannelKind::Email, ChannelKind::Sms],
        required: name == "code",
        budget_exempt: false,
    };
    let classes = [
        class("code", Order::SendThenRecord, Priority::High),
        class("receipt", Order::SendThenRecord, Priority::Normal),
        class("marketing", Order::RecordThenSend, Priority::Low),
        Class {
            channels: vec![ChannelKind::Apns, ChannelKind::Email, ChannelKind::Fcm],
            ..class("transactional", Order::SendThenRecord, Priority::Normal)
        },
    ];
    Policy {
        rules: [("code".to_owned(), Rules { pause_exempt: true, ..Rules::default() })].into(),
        classes: classes.into_iter().map(|class| (class.name.clone(), class)).collect(),
        caps: BTreeMap::new(),
        providers: BTreeMap::new(),
        routes: BTreeMap::new(),
        environments: BTreeMap::new(),
        links: links(),
        keep_record: 15 * DAY,
    }
}

/// There is one class to unsubscribe from, and in Spanish another of the same title.
fn links() -> LinkPolicy {
    let page = |unsubscribe, titles: &[(&str, &str)]| {
        let titles = titles.iter().map(|(locale, title)| ((*locale).to_owned(), (*title).to_owned()));
        ClassPage { unsubscribe, titles: titles.collect() }
    };
    let marketing = page(true, &[("en", "Offers"), ("de", "Angebote"), ("es", "Ofertas")]);
    let receipt = page(false, &[("en", "Receipts"), ("es", "Ofertas")]);
    LinkPolicy {
        base: "https://notify.example.com".into(),
        pages: [("marketing".to_owned(), marketing), ("receipt".to_owned(), receipt)].into(),
        ..LinkPolicy::default()
    }
}
