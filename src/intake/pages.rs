//! What recipients do on their own pages: unsubscribe from a category, come back, choose what they get.

use std::collections::BTreeMap;
use std::sync::Arc;

use belfry_domain::ChannelKind;
use belfry_domain::preferences::Preferences;
use belfry_domain::subject::Subject;
use belfry_domain::suppression::{Suppression, SuppressionKind};

use super::accept::PolicyNow;
use super::preferences::PreferenceDesk;
use crate::facts::{Fact, FactSink};
use crate::ports::StoreError;
use crate::ports::clock::Clock;
use crate::ports::links::{Link, LinkedAddress};
use crate::ports::preferences::ON_THE_PAGE;
use crate::ports::suppressions::{Addressee, Put, Suppressed, Suppressions};

/// How people speak of channels: all devices are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Means {
    Email,
    Push,
    Sms,
    Chat,
    Webhook,
    Inbox,
}

impl Means {
    pub const ALL: [Self; 6] = [Self::Email, Self::Push, Self::Sms, Self::Chat, Self::Webhook, Self::Inbox];

    #[must_use]
    pub const fn of(channel: ChannelKind) -> Self {
        match channel {
            ChannelKind::Email => Self::Email,
            ChannelKind::Apns | ChannelKind::Fcm | ChannelKind::WebPush => Self::Push,
            ChannelKind::Sms => Self::Sms,
            ChannelKind::Chat => Self::Chat,
            ChannelKind::Webhook => Self::Webhook,
            ChannelKind::Inbox => Self::Inbox,
        }
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Push => "push",
            Self::Sms => "sms",
            Self::Chat => "chat",
            Self::Webhook => "webhook",
            Self::Inbox => "inbox",
        }
    }

    fn channels(self) -> impl Iterator<Item = ChannelKind> {
        ChannelKind::ALL.iter().copied().filter(move |channel| Self::of(*channel) == self)
    }
}

/// Whether a category comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    On,
    /// They said so, and can say otherwise.
    Off,
    /// It cannot be turned off, also where a mail of before it was so has a link.
    Always,
    /// It does not come whatever they say: the address bounced, they complained, or somebody blocked it.
    Blocked(Reach),
}

/// How much does not come to an address, whatever anybody chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// This category alone.
    Category,
    /// All but what cannot be turned off.
    Optional,
    Everything,
}

impl Reach {
    /// Of an entry that is not the recipient's own word to us.
    fn of(entry: &Suppression) -> Self {
        match (&entry.category, entry.kind.blocks_required()) {
            (Some(_), _) => Self::Category,
            (None, false) => Self::Optional,
            (None, true) => Self::Everything,
        }
    }
}

/// What there is to choose for somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    /// Of the link's address, where more than a category does not come to it.
    pub blocked: Option<Reach>,
    pub list: Vec<Choice>,
}

impl Choices {
    /// Whether all that was chosen stands as it was chosen, where it could be.
    #[must_use]
    pub fn stand_as(&self, chosen: &[(String, Means, bool)]) -> bool {
        chosen.iter().all(|(category, means, on)| {
            let of = self.list.iter().find(|choice| choice.category == *category && !choice.required);
            let standing = of.and_then(|choice| choice.by.get(means));
            standing.is_none_or(|standing| (*standing == Standing::On) == *on)
        })
    }
}

/// A category with what can be chosen about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub category: String,
    /// It cannot be turned off.
    pub required: bool,
    pub by: BTreeMap<Means, Standing>,
}

/// Where it is done.
pub struct PageDesk {
    suppressions: Arc<dyn Suppressions>,
    preferences: Arc<PreferenceDesk>,
    clock: Arc<dyn Clock>,
    facts: Arc<dyn FactSink>,
    policy: PolicyNow,
}

impl PageDesk {
    #[must_use]
    pub fn new(
        (suppressions, preferences): (Arc<dyn Suppressions>, Arc<PreferenceDesk>),
        clock: Arc<dyn Clock>,
        facts: Arc<dyn FactSink>,
        policy: PolicyNow,
    ) -> Self {
        Self { suppressions, preferences, clock, facts, policy }
    }

    /// Every category, in the order of their names; those that cannot be turned off last.
    ///
    /// # Errors
    /// [`StoreError`]; so for every verb here: the same call again finishes it.
    pub async fn choices(&self, link: &Link) -> Result<Choices, StoreError> {
        let wanted = self.wanted(link).await?;
        let said = self.said(link).await?;
        let mut list: Vec<Choice> = Vec::new();
        for one in self.preferences.effective(&wanted) {
            let mut by = BTreeMap::new();
            for (channel, on) in &one.channels {
                let of_address = link.address.as_ref().filter(|address| address.channel == *channel);
                // Of somebody who is only an address, only that can be chosen about.
                if of_address.is_none() && link.recipient.is_none() {
                    continue;
                }
                let said: &[Suppression] = if of_address.is_some() { &said } else { &[] };
                let standing = self.stands((&one.category, one.required), *channel, said, *on);
                // A phone and a browser are one to people: on where either is.
                let before = by.entry(Means::of(*channel)).or_insert(standing);
                if standing == Standing::On {
                    *before = standing;
                }
            }
            if !by.is_empty() {
                list.push(Choice { category: one.category, required: one.required, by });
            }
        }
        list.sort_by_key(|choice| choice.required);
        let others = said
            .iter()
            .filter(|one| one.category.is_none() && one.sender.is_none() && one.kind != SuppressionKind::Unsubscribe);
        Ok(Choices { blocked: others.map(Reach::of).max(), list })
    }

    /// How the category of the link's own message stands on the link's own channel.
    ///
    /// # Errors
    /// As [`Self::choices`].
    pub async fn standing(&self, link: &Link) -> Result<Standing, StoreError> {
        let (Some(address), Some(category)) = (&link.address, &link.category) else { return Ok(Standing::On) };
        let required = self.is_required(category);
        let (wanted, said) = (self.wanted(link).await?, self.said(link).await?);
        let on = required || self.on(&wanted, category, address.channel);
        let standing = self.stands((category, required), address.channel, &said, on);
        Ok(if required && standing == Standing::On { Standing::Always } else { standing })
    }

    /// By the rules that are asked before a call.
    fn stands(
        &self,
        (class, required): (&str, bool),
        channel: ChannelKind,
        said: &[Suppression],
        on: bool,
    ) -> Standing {
        let (subject, now) = (Subject { required, ..Subject::of_any(class, channel, "") }, self.clock.now());
        let blocking = said.iter().filter(|one| one.blocks(&subject, now));
        let others = blocking.clone().filter(|one| one.kind != SuppressionKind::Unsubscribe);
        match others.map(Reach::of).max() {
            Some(reach) => Standing::Blocked(reach),
            None if on && blocking.count() == 0 => Standing::On,
            None => Standing::Off,
        }
    }

    /// No more of the link's own category to its own address.
    ///
    /// # Errors
    /// As [`Self::choices`].
    pub async fn unsubscribe(&self, link: &Link) -> Result<(), StoreError> {
        let (Some(address), Some(category)) = (&link.address, &link.category) else { return Ok(()) };
        if self.is_required(category) {
            // It would be kept for nothing.
            return Ok(());
        }
        self.suppress(link, address, category).await?;
        self.facts.record(&Fact::Unsubscribed { class: category.clone(), again: false });
        Ok(())
    }

    /// The link's own category to its own address again.
    ///
    /// # Errors
    /// As [`Self::choices`].
    pub async fn resubscribe(&self, link: &Link) -> Result<(), StoreError> {
        let (Some(address), Some(category)) = (&link.address, &link.category) else { return Ok(()) };
        let means = Means::of(address.channel);
        let mut chosen = vec![(category.clone(), means, true)];
        if self.said(link).await?.iter().any(of_everything) {
            // That goes as a whole: what else it held back is said one by one.
            let others = self.choices(link).await?.list.into_iter().filter(|other| other.category != *category);
            chosen.extend(others.map(|other| (other.category, means, false)));
        }
        self.choose(link, &chosen).await?;
        self.facts.record(&Fact::Unsubscribed { class: category.clone(), again: true });
        Ok(())
    }

    /// Keeps what was chosen: category, means, and whether it is to come.
    ///
    /// # Errors
    /// As [`Self::choices`].
    pub async fn choose(&self, link: &Link, chosen: &[(String, Means, bool)]) -> Result<(), StoreError> {
        let policy = (self.policy)();
        let can_be =
            |(category, ..): &&(String, Means, bool)| policy.classes.get(category).is_some_and(|class| !class.required);
        // Of one that is said twice the later.
        let latest: BTreeMap<(&str, Means), bool> =
            chosen.iter().filter(can_be).map(|(category, means, on)| ((category.as_str(), *means), *on)).collect();
        let mut chosen: Vec<(String, Means, bool)> =
            latest.into_iter().map(|((category, means), on)| (category.to_owned(), means, on)).collect();
        let everything = self.said(link).await?.iter().any(of_everything);
        let own = link.address.as_ref().map(|address| Means::of(address.channel));
        let choices = self.choices(link).await?;
        // What a page shows is not all that is kept: whoever saves it unchanged has turned nothing on or off.
        chosen.retain(|(category, means, on)| {
            let shown = choices.list.iter().find(|choice| choice.category == *category);
            let stands = shown.and_then(|choice| choice.by.get(means));
            // What an unsubscribe from everything holds back stands by itself only once that is said.
            let stands_by_itself = !(everything && own == Some(*means));
            !(stands_by_itself && stands == Some(&if *on { Standing::On } else { Standing::Off }))
        });
        self.prefer(link, &chosen).await?;
        let Some(address) = &link.address else { return Ok(()) };
        let of_address = chosen.iter().filter(|(_, means, _)| own == Some(*means));
        let (on, off): (Vec<_>, Vec<_>) = of_address.partition(|(.., on)| *on);
        for (category, ..) in &on {
            self.lift(link, address, Some(category)).await?;
        }
        let mut one_by_one = true;
        // Nobody's wishes are kept of an address alone: what it does not want stands as a suppression.
        for (category, ..) in off.iter().filter(|_| link.recipient.is_none()) {
            one_by_one &= self.suppress(link, address, category).await?;
        }
        if !on.is_empty() && one_by_one {
            // From everything at once: what is still not wanted was said just now, one by one.
            self.lift(link, address, None).await?;
        }
        Ok(())
    }

    fn is_required(&self, category: &str) -> bool {
        (self.policy)().classes.get(category).is_some_and(|class| class.required)
    }

    fn on(&self, wanted: &Preferences, category: &str, channel: ChannelKind) -> bool {
        let policy = (self.policy)();
        wanted.wants(category, channel, &policy.rules_of(category).defaults)
    }

    async fn wanted(&self, link: &Link) -> Result<Preferences, StoreError> {
        let Some(recipient) = &link.recipient else { return Ok(Preferences::default()) };
        let kept = self.preferences.of(&link.owner(), recipient).await?;
        Ok(kept.map(|kept| kept.preferences).unwrap_or_default())
    }

    /// In force about the link's address.
    async fn said(&self, link: &Link) -> Result<Vec<Suppression>, StoreError> {
        let Some(address) = &link.address else { return Ok(Vec::new()) };
        let found =
            self.suppressions.find(vec![addressee(link, address)]).await.pop().unwrap_or_else(|| Ok(Vec::new()));
        let now = self.clock.now();
        Ok(found?.iter().filter(|one| !one.is_over(now)).map(Suppressed::rule).collect())
    }

    async fn prefer(&self, link: &Link, chosen: &[(String, Means, bool)]) -> Result<(), StoreError> {
        let Some(recipient) = link.recipient.as_ref().filter(|_| !chosen.is_empty()) else { return Ok(()) };
        let change = |mut wanted: Preferences| {
            for (category, means, on) in chosen {
                let said = wanted.categories.entry(category.clone()).or_default();
                said.channels.extend(means.channels().map(|channel| (channel, *on)));
            }
            wanted
        };
        self.preferences.change((&link.owner(), recipient), ON_THE_PAGE, change).await.map(drop)
    }

    /// Whether of that category alone, rather than of everything.
    async fn suppress(&self, link: &Link, address: &LinkedAddress, category: &str) -> Result<bool, StoreError> {
        let entry = self.entry(address, Some(category));
        match self.suppressions.put(&link.owner(), &entry).await? {
            Put::Kept(_) => Ok(true),
            // Better too little mail than mail to somebody who asked for none.
            Put::TooMany => match self.suppressions.put(&link.owner(), &self.entry(address, None)).await? {
                Put::Kept(_) => Ok(false),
                Put::TooMany => Err(StoreError::Unavailable("there is no room for one more about the address".into())),
            },
        }
    }

    async fn lift(&self, link: &Link, address: &LinkedAddress, category: Option<&str>) -> Result<(), StoreError> {
        let owner = link.owner();
        self.suppressions.lift(&owner, self.entry(address, category).id(&owner)).await
    }

    fn entry(&self, address: &LinkedAddress, category: Option<&str>) -> Suppressed {
        Suppressed {
            channel: address.channel,
            address_hash: address.hash.clone(),
            address_mask: address.mask.clone(),
            kind: SuppressionKind::Unsubscribe,
            category: category.map(str::to_owned),
            sender: None,
            since: self.clock.now(),
            until: None,
            origin: ON_THE_PAGE.to_owned(),
            note: None,
        }
    }
}

fn addressee(link: &Link, address: &LinkedAddress) -> Addressee {
    Addressee { owner: link.owner(), channel: address.channel, address_hash: address.hash.clone() }
}

/// Unsubscribed whatever the category.
fn of_everything(one: &Suppression) -> bool {
    one.kind == SuppressionKind::Unsubscribe && one.category.is_none() && one.sender.is_none()
}
