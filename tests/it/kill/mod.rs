//! The real process, killed.
