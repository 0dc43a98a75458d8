//! Language tags.

/// A language tag as far as templates and pages need it: letters, then subtags.
#[must_use]
pub fn is_locale(text: &str) -> bool {
    let mut subtags = text.split('-');
    let language = subtags.next().unwrap_or_default();
    (2..=3).contains(&language.len())
        && language.chars().all(|c| c.is_ascii_alphabetic())
        && text.len() <= 35
        && subtags.all(|one| (2..=8).contains(&one.len()) && one.chars().all(|c| c.is_ascii_alphanumeric()))
}
