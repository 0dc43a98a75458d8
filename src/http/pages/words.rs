//! The words of the recipients' pages.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::intake::pages::Means;

type Table = BTreeMap<String, BTreeMap<String, String>>;

#[expect(clippy::expect_used, reason = "the file is part of the program, and a test reads all of it")]
static TABLE: LazyLock<Table> = LazyLock::new(|| toml::from_str(include_str!("words.toml")).expect("words.toml"));

/// In this language a page is where no other is known.
const FALLBACK: &str = "en";

/// Of what a browser asks for; nobody reads more languages.
const MOST_ASKED: usize = 32;

/// The words of one language.
#[derive(Clone, Copy)]
pub struct Words {
    pub language: &'static str,
    words: &'static BTreeMap<String, String>,
}

impl Words {
    /// Those nearest to `locale`, else to what the browser asks for by `accepted`, an `Accept-Language`.
    ///
    /// # Panics
    /// Never: a test reads the file.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test sees that English is there")]
    pub fn of(locale: Option<&str>, accepted: &str) -> Self {
        let own = locale.map(primary).filter(|language| TABLE.contains_key(language));
        let language = own.or_else(|| best(accepted).map(str::to_owned)).unwrap_or_else(|| FALLBACK.to_owned());
        let (language, words) = TABLE.get_key_value(&language).expect("one of the file's");
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

/// `de` of `de-AT`.
fn primary(tag: &str) -> String {
    tag.trim().split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase()
}

/// Of the languages that there are, the one that a browser likes best (RFC 9110, section 12.5.4). Of two that it likes
/// alike, the one that it names first; `*` is whichever it does not name, English before others.
fn best(accepted: &str) -> Option<&'static str> {
    let asked: Vec<(String, u16)> = accepted.split(',').take(MOST_ASKED).filter_map(asked).collect();
    let liked = |language: &str| {
        let named = asked.iter().enumerate().filter(|(_, (name, _))| name == language);
        let named = named.max_by_key(|(at, (_, quality))| (*quality, Reverse(*at)));
        named.or_else(|| asked.iter().enumerate().find(|(_, (name, _))| name == "*"))
    };
    let known = TABLE.keys().filter_map(|language| {
        let (at, (_, quality)) = liked(language)?;
        (*quality > 0).then_some((*quality, Reverse(at), language == FALLBACK, language.as_str()))
    });
    known.max().map(|(.., language)| language)
}

/// `sv-SE;q=0.8` as its language and thousandths. What is not so written says nothing.
fn asked(one: &str) -> Option<(String, u16)> {
    let (range, rest) = one.split_once(';').unwrap_or((one, ""));
    let weight = rest.split(';').filter_map(|said| said.split_once('='));
    let weight =
        weight.map(|(name, value)| (name.trim(), value.trim())).find(|(name, _)| name.eq_ignore_ascii_case("q"));
    Some((primary(range), weight.map_or(Some(1000), |(_, value)| quality(value))?))
}

/// `0.8`: at most three digits after the point, and not more than 1.
fn quality(text: &str) -> Option<u16> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let written = part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit());
    let thousandths: u16 = format!("{part:0<3}").parse().ok().filter(|_| written)?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(1000),
        _ => None,
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
        assert_eq!(of(Some("de-AT"), ""), "de");
        assert_eq!(of(Some("pt_BR"), "fr-CA, en;q=0.5"), "fr");
        assert_eq!(of(Some(""), ";;,"), "en");
        let titles = [("en", "News"), ("de", "Neues"), ("de-at", "Neuigkeiten")].map(|(a, b)| (a.into(), b.into()));
        let called = |locale| title(&titles.clone().into(), "the_news", Some(locale), Words::of(Some(locale), ""));
        assert_eq!(["de-AT", "de-CH", "sv"].map(called), ["Neuigkeiten", "Neues", "News"]);
        assert_eq!(title(&BTreeMap::new(), "the_news", None, Words::of(None, "")), "the news");
    }

    #[test]
    fn a_browser_gets_what_it_likes_best() {
        for (accepted, language) in [
            ("xx, sv;q=0.8", "sv"),
            ("en;q=0.1,sv", "sv"),
            ("en;q=0.1 , sv ; Q=0.2", "sv"),
            ("de;q=0.5, fr;q=0.5", "de"),
            ("fr;q=0.5, de;q=0.5", "fr"),
            ("en-GB;q=0.9, de;q=1.000, en;q=0.1", "de"),
            ("de;q=0.125, en-US;q=0.5, en;q=0.1", "en"),
            ("de;q=0, fr;q=0.001", "fr"),
            ("*", "en"),
            ("de;q=0.5, *", "en"),
            ("en;q=0, *;q=0.1", "sv"),
            ("sv, *;q=0.5", "sv"),
            ("xx", "en"),
            ("", "en"),
            // What is no quality says nothing of its language.
            ("de;q=2, nl;q=0.1", "nl"),
            ("de;q=0.1234, nl;q=0.1", "nl"),
            ("de;q=1.001, nl;q=0.1", "nl"),
            ("de;q=, nl;q=+0.1, fr;q=-1, es;q=.5, sv;q=0.", "en"),
        ] {
            assert_eq!(Words::of(None, accepted).language, language, "{accepted}");
        }
        let many = "xx,".repeat(MOST_ASKED - 1) + "nl";
        assert_eq!(Words::of(None, &many).language, "nl");
        assert_eq!(Words::of(None, &format!("xx,{many}")).language, "en", "of so many");
    }
}
