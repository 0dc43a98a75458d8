//! Conditions that real users met, where no other room has them.
