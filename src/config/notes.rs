//! What a configuration says that holds together and is probably not meant: told at each start and reload, by
//! `check-config` and by `doctor`.

use std::collections::BTreeMap;

use belfry_domain::ChannelKind;

use super::{Config, ProviderKind};

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Dotted.
    pub key: String,
    pub what: String,
    /// Customers are worse off for it.
    pub matters: bool,
}

impl Config {
    /// What to look at, by key.
    #[must_use]
    pub fn notes(&self) -> Vec<Note> {
        self.links_lead_nowhere().into_iter().chain(self.alike()).collect()
    }

    /// Links in mail that really goes out, where nobody outside is told how this server is reached.
    fn links_lead_nowhere(&self) -> Option<Note> {
        let linked: Vec<&str> =
            self.classes.iter().filter(|(_, class)| class.unsubscribe).map(|(name, _)| name.as_str()).collect();
        let of_mail = self.channels.get(&ChannelKind::Email)?;
        let goes_out = |name: &String| {
            self.providers.get(name).is_some_and(|provider| matches!(provider.kind, ProviderKind::Smtp(_)))
        };
        if linked.is_empty() || !of_mail.providers.iter().any(goes_out) {
            return None;
        }
        let classes = linked.join(", ");
        let what = match self.http.public_url.as_deref() {
            Some(url) if url.starts_with("https://") => return None,
            Some(_) => format!(
                "is not https: mail of {classes} has a link to unsubscribe and no one-click header, which mailbox \
                 providers ask for (RFC 8058)"
            ),
            None => format!(
                "is not set: mail of {classes} has a link to unsubscribe that leads to {}, which recipients cannot \
                 reach, and no one-click header; give the https address that they reach this server by",
                self.public_url(self.http.listen)
            ),
        };
        Some(Note { key: "http.public_url".to_owned(), what, matters: true })
    }

    /// Classes that recipients see under one name.
    fn alike(&self) -> Vec<Note> {
        let mut called: BTreeMap<(String, &str), &str> = BTreeMap::new();
        let mut notes = Vec::new();
        for (name, class) in &self.classes {
            for (locale, title) in &class.titles {
                let first = called.entry((locale.to_ascii_lowercase(), title)).or_insert(name);
                if *first != name.as_str() {
                    let what = format!(
                        "is what {first} is called as well: recipients see the names {first} and {name} beside it"
                    );
                    notes.push(Note { key: format!("classes.{name}.titles.{locale}"), what, matters: false });
                }
            }
        }
        notes
    }
}
