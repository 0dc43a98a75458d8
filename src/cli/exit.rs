//! How a command ends: a number for scripts, a sentence for people.

use std::fmt;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::app::Away;
use crate::config::{ConfigErrors, Problem};

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

impl Exit {
    /// A word for programs.
    const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::Findings => "findings",
            Self::RetryLater => "retry_later",
            Self::Configuration => "configuration",
        }
    }
}

/// An end that is no success, and what to print about it on standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub exit: Exit,
    pub text: String,
    /// The server's own problem object (RFC 9457), where it gave one.
    pub problem: Option<Value>,
}

impl Failure {
    pub fn new(exit: Exit, text: impl Into<String>) -> Self {
        Self { exit, text: text.into(), problem: None }
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
    if error.downcast_ref::<ConfigErrors>().is_some() {
        return Exit::Configuration;
    }
    if error.downcast_ref::<Away>().is_some() {
        return Exit::RetryLater;
    }
    error.downcast_ref::<Failure>().map_or(Exit::Failed, |failure| failure.exit)
}

/// A problem object: the server's own, or one of the same form.
#[must_use]
pub fn as_json(error: &anyhow::Error) -> Value {
    let exit = code_of(error);
    let told = error.downcast_ref::<Failure>().and_then(|failure| failure.problem.clone());
    let mut problem = told.unwrap_or_else(|| {
        let mut own = json!({ "title": "The command failed", "detail": format!("{error:#}"), "code": exit.name() });
        if let Some(errors) = error.downcast_ref::<ConfigErrors>() {
            let one = |it: &Problem| json!({ "key": it.key, "detail": it.what, "from": it.origin.to_string() });
            own["errors"] = errors.problems.iter().map(one).collect();
        }
        own
    });
    problem["exit"] = (exit as u8).into();
    problem
}
