//! Whom a message goes to has a say in it: what is suppressed for an address, and what a recipient wants. One look for
//! many messages, at accept and again after every claim.

use belfry_domain::preferences::Preferences;
use belfry_domain::suppression::Suppression;
use belfry_domain::{Delivery, Notification};

use super::StoreError;
use super::deliveries::Owner;
use super::preferences::{Person, PreferenceBook};
use super::suppressions::{Addressee, Suppressed, Suppressions, takes};

/// What there is to be asked for a delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    addressee: Option<Addressee>,
    person: Option<Person>,
}

/// What was said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    pub suppressions: Vec<Suppression>,
    pub preferences: Preferences,
}

impl Asked {
    /// `required`: of its class, [`Class::required`](belfry_domain::Class::required).
    #[must_use]
    pub fn of(delivery: &Delivery, notification: &Notification, required: bool) -> Self {
        let owner = || Owner::of(notification);
        let (channel, address_hash) = (delivery.channel, &delivery.address_hash);
        let addressee = || Addressee { owner: owner(), channel, address_hash: address_hash.clone() };
        let person = |recipient: &str| Person { owner: owner(), recipient: recipient.to_owned() };
        Self {
            addressee: takes(channel).then(addressee),
            // Nobody can turn off what is required.
            person: delivery.recipient_of(notification).filter(|_| !required).map(person),
        }
    }

    #[must_use]
    pub const fn is_nothing(&self) -> bool {
        self.addressee.is_none() && self.person.is_none()
    }
}

/// Of each, in their order, or why it is not known.
pub async fn look(
    (suppressions, book): (&dyn Suppressions, &dyn PreferenceBook),
    asked: Vec<Asked>,
) -> Vec<Result<Said, StoreError>> {
    let mut said = vec![Ok(Said::default()); asked.len()];
    let (mut addressees, mut people) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    for (at, one) in asked.into_iter().enumerate() {
        if let Some(addressee) = one.addressee {
            addressees.0.push(at);
            addressees.1.push(addressee);
        }
        if let Some(person) = one.person {
            people.0.push(at);
            people.1.push(person);
        }
    }
    let of_addresses =
        async { if addressees.1.is_empty() { Vec::new() } else { suppressions.find(addressees.1).await } };
    let of_people = async { if people.1.is_empty() { Vec::new() } else { book.preferences(people.1).await } };
    let (of_addresses, of_people) = futures::future::join(of_addresses, of_people).await;
    for (at, found) in addressees.0.into_iter().zip(of_addresses) {
        let rules = found.map(|found| found.iter().map(Suppressed::rule).collect());
        put(&mut said[at], rules, |said, rules| said.suppressions = rules);
    }
    for (at, kept) in people.0.into_iter().zip(of_people) {
        let wanted = kept.map(|kept| kept.map(|kept| kept.preferences).unwrap_or_default());
        put(&mut said[at], wanted, |said, wanted| said.preferences = wanted);
    }
    said
}

fn put<T>(said: &mut Result<Said, StoreError>, found: Result<T, StoreError>, into: impl FnOnce(&mut Said, T)) {
    match (said.as_mut(), found) {
        (Ok(said), Ok(found)) => into(said, found),
        (Ok(_), Err(away)) => *said = Err(away),
        (Err(_), _) => {}
    }
}
