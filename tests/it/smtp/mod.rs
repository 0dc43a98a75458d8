//! SMTP against a scripted stub and a real mail server.
