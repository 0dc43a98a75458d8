//! The words of the recipients' pages.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::intake::pages::Means;

type Table = BTreeMap<String, BTreeMap<String, String>>;

#[expect(clippy::expect_used, reason = "the file is part of the program, and a test reads all of it")]
static TABLE: LazyLock<Table> = LazyLock::new(|| toml::from_str(include_str!("words.toml")).expect("words.toml"));

/// In this language a page is where no other is known.
const FALLBACK: &str = "en";

/// The words of one language.
#[derive(Clone, Copy)]
pub struct Words {
    pub language: &'static str,
    words: &'static BTreeMap<String, String>,
}

impl Words {
    /// Those nearest to `locale`, else to what the browser asks for (an `Accept-Language`, by its order).
    ///
    /// # Panics
    /// Never: a test reads the file.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test sees that English is there")]
    pub fn of(locale: Option<&str>, accepted: Option<&str>) -> Self {
        let asked = accepted.unwrap_or_default().split(',').filter_map(|one| one.split(';').next());
        let mut wanted = locale.into_iter().chain(asked).map(|one| one.trim().to_ascii_lowercase());
        let nearest = wanted.find_map(|one| {
            let language = one.split(['-', '_']).next().unwrap_or_default();
            TABLE.get_key_value(language)
        });
        let (language, words) = nearest.or_else(|| TABLE.get_key_value(FALLBACK)).expect("English");
        Self { language, words }
    }

    /// A word, as plain text.
    #[must_use]
    pub fn say(&self, word: &str) -> &'static str {
        self.words.get(word).map_or("", String::as_str)
    }

    #[must_use]
    pub fn means(&self, means: Means) -> &'static str {
        self.say(means.name())
    }
}

/// What a class is called in the language nearest to `locale`: by its title there, in English, or else by its name.
#[must_use]
pub fn title(titles: &BTreeMap<String, String>, name: &str, locale: Option<&str>, words: Words) -> String {
    let mut rest = locale.unwrap_or(words.language).replace('_', "-").to_ascii_lowercase();
    while !rest.is_empty() {
        if let Some(title) = titles.get(&rest) {
            return title.clone();
        }
        rest = rest.rsplit_once('-').map_or(String::new(), |(shorter, _)| shorter.to_owned());
    }
    let known = titles.get(words.language).or_else(|| titles.get(FALLBACK)).or_else(|| titles.values().next());
    known.cloned().unwrap_or_else(|| name.replace(['_', '-'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_every_word_and_the_same_blanks() {
        let english = &TABLE["en"];
        let blanks = |text: &str| ["{category}", "{address}"].map(|blank| text.contains(blank));
        for (language, words) in TABLE.iter() {
            assert_eq!(words.keys().collect::<Vec<_>>(), english.keys().collect::<Vec<_>>(), "{language}");
            for (name, text) in words {
                assert_eq!(blanks(text), blanks(&english[name]), "{language}: {name}");
            }
        }
        assert!(Means::ALL.iter().all(|means| english.contains_key(means.name())));
    }

    #[test]
    fn the_nearest_language_is_chosen() {
        let of = |locale, accepted| Words::of(locale, accepted).language;
        assert_eq!(of(Some("de-AT"), None), "de");
        assert_eq!(of(Some("pt_BR"), Some("fr-CA, en;q=0.5")), "fr");
        assert_eq!(of(None, Some("xx, sv;q=0.8")), "sv");
        assert_eq!(of(Some(""), Some(";;,")), "en");
        let titles = [("en", "News"), ("de", "Neues"), ("de-at", "Neuigkeiten")].map(|(a, b)| (a.into(), b.into()));
        let called = |locale| title(&titles.clone().into(), "the_news", Some(locale), Words::of(Some(locale), None));
        assert_eq!(["de-AT", "de-CH", "sv"].map(called), ["Neuigkeiten", "Neues", "News"]);
        assert_eq!(title(&BTreeMap::new(), "the_news", None, Words::of(None, None)), "the news");
    }
}
