//! What the commands look at without a server: the store's keys, and whether things are in reach.

use std::path::PathBuf;
use std::sync::Arc;

use super::stores::Surroundings;
use super::{Away, NotBegun, Stores};
use crate::channel::apns::{ApnsChannel, Mints};
use crate::channel::fcm::FcmChannel;
use crate::channel::smtp::SmtpChannel;
use crate::channel::web_push::WebPushChannel;
use crate::config::{Config, ProviderConfig, ProviderKind, StoreKind};
use crate::machine::MachineClock;
use crate::ports::certificate::{CertificateEnd, Left};
use crate::ports::channel::Channel as _;
use crate::ports::store_news::Unwatched;
use crate::store::sqlite::OpenError;

/// Why the store cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum NoStore {
    /// A running server has it to itself.
    #[error("a running server holds the store")]
    Held,
    /// Nobody has started a server here.
    #[error("there is no store yet at {}; `belfry serve` makes it", .0.display())]
    Absent(PathBuf),
    /// Likewise, on servers that are there.
    #[error(transparent)]
    NotBegun(NotBegun),
    /// Its servers do not answer now.
    #[error(transparent)]
    Away(Away),
    #[error("{0:#}")]
    Broken(anyhow::Error),
}

/// Opens the store that is there; makes none.
///
/// # Errors
/// [`NoStore`], by what to do about it.
pub async fn open_store(config: &Config) -> Result<Stores, NoStore> {
    match config.store.kind {
        StoreKind::Sqlite if !config.store.sqlite.path.exists() => {
            return Err(NoStore::Absent(config.store.sqlite.path.clone()));
        }
        StoreKind::Sqlite | StoreKind::Redis => {}
    }
    let around =
        Surroundings { clock: Arc::new(MachineClock), watch: Arc::new(Unwatched), patient: false, begins: false };
    let error = match Stores::open(config, false, around).await {
        Ok(stores) => return Ok(stores),
        Err(error) => error,
    };
    if let Some(OpenError::InUse(_)) = error.downcast_ref() {
        return Err(NoStore::Held);
    }
    Err(match error.downcast::<Away>() {
        Ok(away) => NoStore::Away(away),
        Err(error) => error.downcast().map_or_else(NoStore::Broken, NoStore::NotBegun),
    })
}

fn told<E: std::fmt::Display>(place: &str, checked: Result<(), E>) -> Result<String, String> {
    match checked {
        Ok(()) => Ok(format!("{place} answers and takes our login")),
        Err(problem) => Err(format!("{place}: {problem}")),
    }
}

/// One that has ended, or will before long, is something to look at even where the provider still answers.
fn with_certificate(told: Result<String, String>, end: Option<CertificateEnd>) -> Result<String, String> {
    let Some(CertificateEnd { at, left }) = end else { return told };
    let day = jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| "?".into(), |at| at.strftime("%F").to_string());
    match (told, left) {
        (Ok(told), Left::Enough) => Ok(format!("{told}; the certificate is good until {day}")),
        (Ok(told), Left::Little) => Err(format!("{told}, but the certificate ends on {day}: have a new one made")),
        (Err(told), Left::Enough | Left::Little) => Err(told),
        (Ok(told) | Err(told), Left::Nothing) => {
            Err(format!("{told}; the certificate ended on {day}: have a new one made, and reload"))
        }
    }
}

/// Connects to a provider as far as can be done without sending anything. `Ok` says what was found.
///
/// # Errors
/// What is wrong, in words.
pub async fn provider(provider: &ProviderConfig) -> Result<String, String> {
    match &provider.kind {
        ProviderKind::Outbox(_) => Ok("keeps messages here".into()),
        ProviderKind::Apns(apns) => {
            let channel =
                ApnsChannel::new(apns, &Mints::default(), Arc::new(MachineClock)).map_err(|error| error.to_string())?;
            with_certificate(told(channel.place(), channel.check().await), channel.certificate_end())
        }
        ProviderKind::Fcm(fcm) => {
            let channel = FcmChannel::new(fcm, Arc::new(MachineClock)).map_err(|error| error.to_string())?;
            told(&channel.place(), channel.check().await)
        }
        ProviderKind::WebPush(web) => {
            let channel = WebPushChannel::new(web, Arc::new(MachineClock)).map_err(|error| error.to_string())?;
            Ok(channel.check())
        }
        ProviderKind::Smtp(smtp) => {
            let channel = SmtpChannel::new(smtp).map_err(|error| error.to_string())?;
            let place = channel.place();
            match channel.check().await {
                Ok(()) if smtp.password.is_some() => Ok(format!("{place} answers and takes our login")),
                Ok(()) => Ok(format!("{place} answers; no login is configured")),
                Err(problem) => Err(format!("{place}: {problem}")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use belfry_domain::UnixMs;

    use super::*;

    #[test]
    fn a_certificate_is_told_of_by_its_day() {
        const DAY: i64 = 24 * 60 * 60 * 1000;
        let at = UnixMs(1_924_992_000_000);
        let told = |told, before: i64| with_certificate(told, Some(CertificateEnd::seen(at, UnixMs(at.0 - before))));
        let (answers, silent) = (|| Ok("it answers".to_owned()), || Err("it is away".to_owned()));
        assert_eq!(with_certificate(answers(), None), answers());
        assert_eq!(told(answers(), 90 * DAY), Ok("it answers; the certificate is good until 2031-01-01".into()));
        let soon = "it answers, but the certificate ends on 2031-01-01: have a new one made";
        assert_eq!(told(answers(), DAY), Err(soon.into()));
        assert_eq!(told(silent(), DAY), silent());
        let over = "it is away; the certificate ended on 2031-01-01: have a new one made, and reload";
        assert_eq!(told(silent(), -DAY), Err(over.into()));
    }
}
