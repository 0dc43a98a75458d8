//! Against a real mail server.
