//! Language tags.

/// What is said of a text that is none.
pub const NO_TAG: &str = "must be a language tag such as en or pt-BR";

/// A language tag as callers have them, from a browser or a phone: a language of two or three letters, then subtags
/// after `-` or `_`. Whether anybody speaks it is not asked.
#[must_use]
pub fn is_tag(text: &str) -> bool {
    let mut subtags = text.split(['-', '_']);
    let language = subtags.next().unwrap_or_default();
    (2..=3).contains(&language.len())
        && language.bytes().all(|byte| byte.is_ascii_alphabetic())
        && text.len() <= 35
        && subtags.all(|one| (1..=8).contains(&one.len()) && one.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// A language tag as templates and titles are named by: letters, then subtags.
#[must_use]
pub fn is_locale(text: &str) -> bool {
    let mut subtags = text.split('-');
    let language = subtags.next().unwrap_or_default();
    (2..=3).contains(&language.len())
        && language.chars().all(|c| c.is_ascii_alphabetic())
        && text.len() <= 35
        && subtags.all(|one| (2..=8).contains(&one.len()) && one.chars().all(|c| c.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_a_language_and_what_is_said_of_it() {
        for tag in ["en", "gsw", "pt-BR", "pt_BR", "zh-Hant-TW", "xx", "de-x-mine", "en-u-ca-gregory", "es-419"] {
            assert!(is_tag(tag), "{tag}");
        }
        for other in
            ["", "e", "german", "Deutsch", "12", "e1", "xx-bad!", "en-", "en--US", "en US", "-en", "en-abcdefghi"]
        {
            assert!(!is_tag(other), "{other}");
        }
        assert!(!is_tag(&"en-abcdefgh".repeat(4)));
    }
}
