//! [`belfry::ports::suppressions::Suppressions`].

mod listed;
mod sequences;
mod words;

use belfry::ports::deliveries::Owner;
use belfry::ports::suppressions::{Addressee, Put, Suppressed};
use belfry_domain::suppression::SuppressionKind;
use belfry_domain::{ChannelKind, UnixMs};

use super::fixture::acme;
use super::harness::Harness;

/// By hand, for ever.
pub(crate) fn suppressed(address: &str, since: UnixMs) -> Suppressed {
    Suppressed {
        channel: ChannelKind::Email,
        address_hash: format!("hash of {address}"),
        address_mask: format!("{address}…"),
        kind: SuppressionKind::Manual,
        category: None,
        sender: None,
        since,
        until: None,
        origin: "key_1".into(),
        note: None,
    }
}

impl Harness {
    /// As it is kept.
    pub(crate) async fn suppress(&self, owner: &Owner, entry: &Suppressed) -> Suppressed {
        match self.store.put(owner, entry).await.unwrap() {
            Put::Kept(kept) => *kept,
            Put::TooMany => panic!("there is room"),
        }
    }

    /// Of one address, by id.
    async fn about(&self, whom: &Addressee) -> Vec<Suppressed> {
        let mut found = self.store.find(vec![whom.clone()]).await.pop().unwrap().unwrap();
        found.sort_by_key(|entry| entry.id(&whom.owner));
        found
    }
}

fn email(address: &str) -> Addressee {
    suppressed(address, UnixMs(0)).addressee(&acme())
}

/// All pages of a list, `limit` at a time.
async fn all_listed(h: &Harness, owner: &Owner, limit: u16) -> Vec<Suppressed> {
    let (mut all, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = h.store.listed(owner, after.as_deref(), limit).await.unwrap();
        assert!(page.entries.len() <= usize::from(limit));
        all.extend(page.entries);
        match page.next {
            Some(next) => after = Some(next),
            None => return all,
        }
    }
}
