//! The API over a real listener.
