//! How a command ends: a number for scripts, a sentence for people.

use std::fmt;
use std::process::ExitCode;

/// The exit codes, after sysexits where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Ok = 0,
    Failed = 1,
    Usage = 2,
    /// It ran, and found something that a person should look at.
    Findings = 3,
    /// The server is away or asked to come back: the same command may be given again.
    RetryLater = 75,
    Configuration = 78,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An end that is no success, and what to print about it on standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub exit: Exit,
    pub text: String,
}

impl Failure {
    pub fn new(exit: Exit, text: impl Into<String>) -> Self {
        Self { exit, text: text.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

/// The code that an error asks for; [`Exit::Failed`] where it asks for none.
#[must_use]
pub fn code_of(error: &anyhow::Error) -> Exit {
    error.downcast_ref::<Failure>().map_or(Exit::Failed, |failure| failure.exit)
}
