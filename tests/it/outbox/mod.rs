//! The outbox provider.
