//! Configuration: TOML over embedded defaults, environment over both; checked whole before anything starts.
