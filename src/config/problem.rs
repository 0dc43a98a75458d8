//! What is wrong with a configuration, all of it at once, each by its key.

use std::fmt;
use std::path::PathBuf;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The embedded `config/default.toml`.
    Default,
    File(PathBuf),
    /// An environment variable, by its name.
    Env(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => out.write_str("default"),
            Self::File(path) => write!(out, "{}", path.display()),
            Self::Env(name) => out.write_str(name),
        }
    }
}

/// One key and what would be right. Never holds the value that was found: it may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Dotted; empty where a whole file is at fault.
    pub key: String,
    pub origin: Origin,
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            return write!(out, "{}: {}", self.origin, self.what);
        }
        write!(out, "{}: {}", self.key, self.what)?;
        match &self.origin {
            Origin::Default => Ok(()),
            origin => write!(out, " ({origin})"),
        }
    }
}

/// Why a configuration was refused: never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors {
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.as_slice() {
            [one] => write!(out, "the configuration is refused: {one}"),
            many => {
                write!(out, "the configuration is refused, {} problems:", many.len())?;
                many.iter().try_for_each(|one| write!(out, "\n  {one}"))
            }
        }
    }
}

impl std::error::Error for ConfigErrors {}
