//! What a channel says of a setting that it cannot use, and what several channels check alike.

use std::io;
use std::path::Path;

use secrecy::{ExposeSecret as _, SecretString};
use thiserror::Error;

use crate::ports::span::Span;
use crate::text_file;

/// A setting that cannot be used, and what would be right. Never shows a secret or an address.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{key}: {problem}")]
pub struct WrongSetting {
    /// Within `[providers.<name>]`.
    pub key: &'static str,
    pub problem: String,
}

pub(super) fn wrong(key: &'static str, problem: impl Into<String>) -> WrongSetting {
    WrongSetting { key, problem: problem.into() }
}

/// Those of them that are zero.
pub(super) fn zeros(counts: &[(&'static str, u16)], waits: &[(&'static str, Span)]) -> Vec<WrongSetting> {
    let none = counts.iter().filter(|(_, count)| *count == 0).map(|(key, _)| wrong(key, "must be at least 1"));
    let never = waits.iter().filter(|(_, span)| span.0.is_zero());
    none.chain(never.map(|(key, _)| wrong(key, "must be longer than zero, such as \"10s\""))).collect()
}

/// A text, and the setting that gave it: whoever cannot use the text names that one.
#[derive(Clone, Debug)]
pub struct Given {
    pub key: &'static str,
    pub text: SecretString,
}

impl Given {
    pub(super) fn text(&self) -> &str {
        self.text.expose_secret()
    }

    pub(super) fn wrong(&self, problem: impl Into<String>) -> WrongSetting {
        wrong(self.key, problem)
    }
}

/// The two settings that may give a text.
pub(super) struct Ways {
    /// Itself: by environment mostly.
    pub text: &'static str,
    pub file: &'static str,
}

pub(super) const CA: Ways = Ways { text: "ca", file: "ca_file" };

impl Ways {
    /// `text` counts, else what stands in `file`. Where both are there, the configuration has filled in the one
    /// from the other.
    pub fn given(&self, text: Option<&str>, file: Option<&Path>) -> Result<Option<Given>, WrongSetting> {
        let key = if file.is_some() { self.file } else { self.text };
        let text = match (text, file) {
            (Some(text), _) => text.to_owned(),
            (None, Some(file)) => {
                text_file::read(file, text_file::SMALL).map_err(|error| wrong(key, unreadable(file, &error)))?
            }
            (None, None) => return Ok(None),
        };
        Ok(Some(Given { key, text: text.into() }))
    }
}

/// Why a file that a setting names could not be read. What is most often binary is a key or certificate that is
/// not yet in PEM.
#[must_use]
pub fn unreadable(file: &Path, error: &io::Error) -> String {
    let shown = file.display();
    if error.kind() == io::ErrorKind::InvalidData {
        return format!(
            "{shown} cannot be read: it is no text; keys and certificates have to be PEM, which of a .p12 file \
             openssl pkcs12 -nodes -in OLD -out NEW makes"
        );
    }
    format!("{shown} cannot be read: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_that_gave_a_text_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        std::fs::write(&path, "from the file").unwrap();
        for (text, file, expected) in [
            (None, None, None),
            (Some("itself"), None, Some(("ca", "itself"))),
            (None, Some(path.as_path()), Some(("ca_file", "from the file"))),
            (Some("from the file"), Some(path.as_path()), Some(("ca_file", "from the file"))),
        ] {
            let given = CA.given(text, file).unwrap();
            assert_eq!(given.as_ref().map(|given| (given.key, given.text())), expected);
        }
        let missing = CA.given(None, Some(&folder.path().join("missing"))).unwrap_err();
        assert_eq!(missing.key, "ca_file");
        assert!(missing.problem.contains("missing cannot be read: "), "{missing}");
        std::fs::write(&path, b"\x30\x82\xff\xfe").unwrap();
        let binary = CA.given(None, Some(&path)).unwrap_err();
        assert!(binary.problem.contains("it is no text; keys and certificates have to be PEM"), "{binary}");
    }

    #[test]
    fn zeros_are_named() {
        let (none, some) = (Span::secs(0), Span::secs(1));
        let found = zeros(&[("a", 0), ("b", 1)], &[("c", some), ("d", none)]);
        assert_eq!(found.iter().map(|one| one.key).collect::<Vec<_>>(), ["a", "d"]);
    }
}
