//! The API over HTTP.
