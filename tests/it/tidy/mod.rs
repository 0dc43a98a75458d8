//! The tree keeps its own rules.
