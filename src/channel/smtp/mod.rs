//! Email by SMTP.

pub mod config;
