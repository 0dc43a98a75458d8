//! What can be wrong with a template, and with one rendering of it. Neither ever repeats a value
//! of the caller's: both are shown in answers, logs and records.

use std::fmt;

/// A fault in a template's files, found when they are read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemplateProblem {
    /// Empty where the fault is the folder's itself.
    pub template: String,
    /// Path within the template's folder.
    pub file: String,
    /// From 1; 0 where no line is known.
    pub line: usize,
    pub message: String,
}

impl fmt::Display for TemplateProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.template.is_empty() {
            write!(out, "{}", self.template)?;
        }
        if !self.file.is_empty() {
            write!(out, "/{}", self.file)?;
        }
        if self.line > 0 {
            write!(out, ":{}", self.line)?;
        }
        let place = if self.template.is_empty() && self.file.is_empty() { "" } else { ": " };
        write!(out, "{place}{}", self.message)
    }
}

impl std::error::Error for TemplateProblem {}

/// What went wrong, by what a caller does about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenderFault {
    /// There is no template of that name.
    UnknownTemplate,
    /// The frozen version is not in memory: fetch its files, [`super::Content::import`] them, and
    /// render again.
    UnknownVersion,
    /// The content has nothing for this channel.
    MissingPart,
    /// The inputs have no such address slot.
    NoSuchSlot,
    /// A variable that the template uses is not in the data.
    MissingVariable,
    /// The template cannot work with this data.
    Failed,
    /// The result is larger than its limit, or took too much work.
    TooLarge,
    /// It did not finish in time, or found no thread free: it may do so later.
    Late,
}

/// Why a message could not be made. For an answer's `errors` and a record's reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderProblem {
    pub fault: RenderFault,
    /// `<template>/<file>`; empty where it is no file's fault.
    pub file: String,
    /// From 1; 0 where no line is known.
    pub line: usize,
    /// JSON pointer of the data that is missing or unfit. For a part of what a loop goes over it is the
    /// loop's list, and nothing where the template has given a name of its own to something made.
    pub pointer: Option<String>,
    /// A sentence without a value in it.
    pub message: String,
}

impl RenderProblem {
    #[must_use]
    pub fn new(fault: RenderFault, message: impl Into<String>) -> Self {
        Self { fault, file: String::new(), line: 0, pointer: None, message: message.into() }
    }

    #[must_use]
    pub fn in_file(mut self, file: impl Into<String>) -> Self {
        self.file = file.into();
        self
    }

    #[must_use]
    pub fn at_pointer(mut self, pointer: &str) -> Self {
        self.pointer = Some(pointer.to_owned());
        self
    }
}

impl fmt::Display for RenderProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", _) => {}
            (file, 0) => write!(out, "{file}: ")?,
            (file, line) => write!(out, "{file}:{line}: ")?,
        }
        out.write_str(&self.message)
    }
}

impl std::error::Error for RenderProblem {}
