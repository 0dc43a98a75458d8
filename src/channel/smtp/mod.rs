//! Email by SMTP: builds the mail, drives the session, says what came of it.
//!
//! One recipient per transaction: To, Cc and Bcc are deliveries of their own, so one refused
//! address never decides about another. Every wait has its own deadline. Nothing can have been sent
//! before the final dot; after it only the server's own word says that it was not.

pub mod address;
mod body;
pub mod classify;
pub mod config;
mod connection;
mod dkim;
mod door;
mod header;
pub mod message;
mod pool;
pub mod reply;
mod settings;
mod wire;
pub mod words;

use std::sync::Arc;

use async_trait::async_trait;
use belfry_domain::outcome::{Outcome, RepeatGuard, Why, WhyCode};

use self::classify::{Phase, Told, classify, went_stale};
use self::config::SmtpConfig;
use self::connection::{Connection, Trouble};
use self::message::{BuildError, BuiltMail, Sender, build};
use self::pool::Pool;
use self::reply::Reply;
use self::settings::Settings;
use self::words::Unsaid;
use super::setting::WrongSetting;
use crate::ports::channel::{Call, Channel, CheckProblem};
use crate::ports::message::{Outgoing, Rendered};

/// One `[providers.<name>]` of kind `smtp`.
pub struct SmtpChannel {
    settings: Arc<Settings>,
    pool: Pool,
}

impl SmtpChannel {
    /// Reads and checks the configuration, its key and certificate files included. Connects nowhere.
    ///
    /// # Errors
    /// [`WrongSetting`] names the key.
    pub fn new(config: &SmtpConfig) -> Result<Self, WrongSetting> {
        let settings = Arc::new(Settings::read(config)?);
        Ok(Self { pool: Pool::new(settings.clone()), settings })
    }

    /// Everything wrong with a configuration that [`Self::new`] would stop at, key and certificate
    /// files included. Connects nowhere.
    #[must_use]
    pub fn problems(config: &SmtpConfig) -> Vec<WrongSetting> {
        Settings::problems(config)
    }

    /// Where it connects to: `mail.example.com:587`.
    #[must_use]
    pub fn place(&self) -> String {
        let Settings { host, port, .. } = &*self.settings;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// Connects, encrypts, logs in, and says goodbye; for `doctor`.
    ///
    /// # Errors
    /// Why a message would not get through now.
    pub async fn check(&self) -> Result<(), CheckProblem> {
        let told = |trouble: Trouble| CheckProblem {
            why: classify(trouble.phase, &trouble.told, &self.unsaid()).why().clone(),
            detail: trouble.detail,
        };
        let mut connection = Connection::open(&self.settings).await.map_err(told)?;
        connection.noop(&self.settings.timeouts).await.map_err(told)?;
        connection.bye().await;
        Ok(())
    }

    /// The mail as `send` would write it, for previews and tests.
    ///
    /// # Errors
    /// [`BuildError`]: it can never be sent.
    pub fn build(&self, out: &Outgoing) -> Result<BuiltMail, BuildError> {
        let Rendered::Email(mail) = &out.message else { return Err(BuildError::NotAMail) };
        build(mail, out, &self.settings.sender, self.settings.signer.as_ref())
    }

    /// What no answer may be told with, whatever is sent.
    fn unsaid(&self) -> Unsaid<'_> {
        let login = self.settings.login.as_ref();
        Unsaid {
            user: login.map_or("", |login| &login.user),
            secrets: login.map_or(&[], |login| &login.secrets),
            ..Unsaid::default()
        }
    }

    async fn deliver(&self, mail: &BuiltMail, call: &Call) -> Result<Reply, Trouble> {
        let limits = &self.settings.timeouts;
        let busy = Trouble::new(Phase::Connect, Told::Busy);
        let _permit = self.pool.permit(limits.command.0).await.ok_or(busy)?;
        if let Some(mut kept) = self.pool.take().await {
            match kept.deliver(mail, limits, call).await {
                // It went away while it was idle: that costs this message nothing.
                Err(trouble) if went_stale(trouble.phase, &trouble.told) => {}
                told => {
                    self.pool.give_back(kept).await;
                    return told;
                }
            }
        }
        let mut fresh = Connection::open(&self.settings).await?;
        let told = fresh.deliver(mail, limits, call).await;
        self.pool.give_back(fresh).await;
        told
    }
}

#[async_trait]
impl Channel for SmtpChannel {
    /// The Message-ID is the same on every attempt, but no server is bound to look at it.
    fn repeat_guard(&self) -> RepeatGuard {
        RepeatGuard::None
    }

    fn receipts(&self) -> bool {
        false
    }

    /// The sender is in the Message-ID as well.
    fn stamp(&self) -> Option<String> {
        let Sender { name, address } = &self.settings.sender;
        Some(format!("{} <{}>", name.as_deref().unwrap_or_default(), address.as_str()))
    }

    async fn send(&self, out: &Outgoing, call: &Call) -> Outcome {
        let mail = match self.build(out) {
            Ok(mail) => mail,
            Err(error) => return Outcome::Refused { why: Why::said(WhyCode::RenderFailed, error.to_string()) },
        };
        let (phase, told) = match self.deliver(&mail, call).await {
            Ok(reply) => (Phase::Dot, Told::Reply(reply)),
            Err(Trouble { phase, told, .. }) => (phase, told),
        };
        let sent = if let Rendered::Email(sent) = &out.message { Some(&**sent) } else { None };
        classify(phase, &told, &Unsaid { recipient: mail.to.as_str(), mail: sent, ..self.unsaid() })
    }
}

impl std::fmt::Debug for SmtpChannel {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "SmtpChannel({}:{})", self.settings.host, self.settings.port)
    }
}
