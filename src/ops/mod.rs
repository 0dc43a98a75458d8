//! What an operator runs beside the service. Reached from a command of its own; never from `serve`.

pub mod drill;
