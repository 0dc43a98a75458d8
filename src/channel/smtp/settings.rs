//! The configuration, read and checked once: what is wrong is said at start, by its key.

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use secrecy::ExposeSecret as _;

use super::config::{AuthMechanism, DkimConfig, SmtpConfig, SmtpReuse, SmtpTimeouts};
use super::dkim::Signer;
use super::message::Sender;
use crate::channel::setting::{WrongSetting, wrong, zeros};
use crate::text_file;

pub(super) struct Settings {
    pub host: String,
    pub port: u16,
    pub implicit_tls: bool,
    /// With roots of its own, TLS is required on loopback too.
    pub trusts_own_roots: bool,
    pub tls: Arc<rustls::ClientConfig>,
    pub server_name: ServerName<'static>,
    pub login: Option<Login>,
    pub helo: Option<String>,
    pub sender: Sender,
    pub signer: Option<Signer>,
    pub timeouts: SmtpTimeouts,
    pub reuse: SmtpReuse,
    pub connections: usize,
}

pub(super) struct Login {
    pub mechanism: Mechanism,
    pub credentials: Credentials,
    pub user: String,
    /// The password in the forms in which it goes over the wire: a server may quote it.
    pub secrets: Vec<String>,
}

impl Settings {
    /// Everything that [`Self::read`] would stop at, one after the other.
    pub fn problems(config: &SmtpConfig) -> Vec<WrongSetting> {
        let target = Target::parse(&config.url);
        let mut found = zero_waits(&config.timeouts);
        match target {
            Ok(target) => {
                found.extend(server_name(&target.host).err());
                found.extend(login(config, target.user).err());
            }
            Err(problem) => found.push(wrong("url", problem)),
        }
        found.extend(config.ca_file.as_deref().and_then(|file| own_roots(file).err()));
        found.extend(helo(config.helo.as_deref()).err());
        found.extend(sender(&config.from).err());
        found.extend(config.dkim.as_ref().and_then(|dkim| signer(dkim).err()));
        found
    }

    pub fn read(config: &SmtpConfig) -> Result<Self, WrongSetting> {
        let target = Target::parse(&config.url).map_err(|problem| wrong("url", problem))?;
        let server_name = server_name(&target.host)?;
        if config.connections == 0 {
            return Err(wrong("connections", "must be at least 1"));
        }
        if config.reuse.messages == 0 {
            return Err(wrong("reuse.messages", "must be at least 1"));
        }
        Ok(Self {
            login: login(config, target.user)?,
            host: target.host,
            port: target.port,
            implicit_tls: target.implicit_tls,
            trusts_own_roots: config.ca_file.is_some(),
            tls: Arc::new(client_tls(config.ca_file.as_deref())?),
            server_name,
            helo: helo(config.helo.as_deref())?,
            sender: sender(&config.from)?,
            signer: config.dkim.as_ref().map(signer).transpose()?,
            timeouts: match zero_waits(&config.timeouts).into_iter().next() {
                Some(zero) => return Err(zero),
                None => config.timeouts.clone(),
            },
            reuse: config.reuse.clone(),
            connections: usize::from(config.connections),
        })
    }
}

fn server_name(host: &str) -> Result<ServerName<'static>, WrongSetting> {
    ServerName::try_from(host.to_owned()).map_err(|_| wrong("url", "the host is neither a name nor an address"))
}

fn sender(from: &str) -> Result<Sender, WrongSetting> {
    Sender::parse(from).map_err(|why| wrong("from", format!("the address {why}")))
}

fn zero_waits(timeouts: &SmtpTimeouts) -> Vec<WrongSetting> {
    let named = [
        ("timeouts.connect", timeouts.connect),
        ("timeouts.greeting", timeouts.greeting),
        ("timeouts.command", timeouts.command),
        ("timeouts.data", timeouts.data),
        ("timeouts.block", timeouts.block),
        ("timeouts.end_of_data", timeouts.end_of_data),
    ];
    zeros(&[], &named)
}

struct Target {
    implicit_tls: bool,
    user: Option<String>,
    host: String,
    port: u16,
}

impl Target {
    /// `smtp://[user@]host[:587]` or `smtps://[user@]host[:465]`.
    fn parse(url: &str) -> Result<Self, String> {
        let (implicit_tls, rest) = match url.split_once("://") {
            Some(("smtp", rest)) => (false, rest),
            Some(("smtps", rest)) => (true, rest),
            _ => return Err("must begin with smtp:// or smtps://".into()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#']) {
            return Err("has something after the port".into());
        }
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, rest),
        };
        if user.is_some_and(|user| user.contains(':')) {
            return Err("must not hold a password: use password_file".into());
        }
        let (host, port) = match place.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            Some((literal, after)) => (literal, after.strip_prefix(':')),
            None => place.rsplit_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
        };
        let host = if host.parse::<std::net::IpAddr>().is_ok() {
            host.to_owned()
        } else {
            idna::domain_to_ascii(host).ok().filter(|host| !host.is_empty()).ok_or("has no usable host")?
        };
        let port = match port {
            Some(port) => port.parse::<u16>().ok().filter(|port| *port > 0).ok_or("has no usable port")?,
            None if implicit_tls => 465,
            None => 587,
        };
        let user = user.map(percent_decoded).transpose()?;
        Ok(Self { implicit_tls, user, host, port })
    }
}

fn percent_decoded(text: &str) -> Result<String, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    let odd = || "has a user that is not percent-encoded UTF-8".to_owned();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|it| char::from(it).to_digit(16)).ok_or_else(odd);
        let (high, low) = (digit()?, digit()?);
        out.push(u8::try_from(high * 16 + low).map_err(|_| odd())?);
    }
    let text = String::from_utf8(out).map_err(|_| odd())?;
    if text.is_empty() || text.chars().any(char::is_control) { Err(odd()) } else { Ok(text) }
}

fn login(config: &SmtpConfig, user: Option<String>) -> Result<Option<Login>, WrongSetting> {
    let password = match (&config.password, &config.password_file) {
        (Some(password), _) => Some(password.expose_secret().to_owned()),
        (None, Some(file)) => Some(read("password_file", file)?.trim_end_matches(['\r', '\n']).to_owned()),
        (None, None) => None,
    };
    let mechanism = match config.auth {
        AuthMechanism::Plain => Mechanism::Plain,
        AuthMechanism::Login => Mechanism::Login,
        AuthMechanism::Xoauth2 => Mechanism::Xoauth2,
    };
    match (user, password) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(wrong("password_file", "is missing: the url names a user")),
        (None, Some(_)) => Err(wrong("url", "names no user for the password: smtp://user@host")),
        (Some(_), Some(password)) if password.is_empty() || password.contains('\0') => {
            Err(wrong("password", "is empty or holds a NUL"))
        }
        (Some(user), Some(password)) => {
            let secrets = on_the_wire(&user, &password);
            Ok(Some(Login { mechanism, credentials: Credentials::new(user.clone(), password), user, secrets }))
        }
    }
}

/// The password itself and the base64 texts that hold it or the user's name.
fn on_the_wire(user: &str, password: &str) -> Vec<String> {
    let plain = format!("\0{user}\0{password}");
    let bearer = format!("user={user}\x01auth=Bearer {password}\x01\x01");
    let mut forms: Vec<String> =
        [plain.as_str(), &bearer, password, user].iter().map(|text| STANDARD.encode(text)).collect();
    forms.push(password.to_owned());
    forms
}

fn read(key: &'static str, file: &Path) -> Result<String, WrongSetting> {
    text_file::read(file, text_file::SMALL).map_err(|error| wrong(key, format!("{}: {error}", file.display())))
}

/// The machine's own roots and those of `ca_file`.
fn client_tls(ca_file: Option<&Path>) -> Result<rustls::ClientConfig, WrongSetting> {
    let mut roots = rustls::RootCertStore::empty();
    // Single roots that cannot be read are left out; without any, every handshake says so.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(file) = ca_file {
        roots.extend(own_roots(file)?.roots);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong("url", format!("TLS is not available: {error}")))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn own_roots(file: &Path) -> Result<rustls::RootCertStore, WrongSetting> {
    let shown = file.display();
    let certificates = CertificateDer::pem_slice_iter(read("ca_file", file)?.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| wrong("ca_file", format!("{shown}: {error}")))?;
    if certificates.is_empty() {
        return Err(wrong("ca_file", format!("{shown}: holds no certificate")));
    }
    let mut roots = rustls::RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate).map_err(|error| wrong("ca_file", format!("{shown}: {error}")))?;
    }
    Ok(roots)
}

/// The name given in EHLO. The machine's own counts only where it is a full one; else the
/// connection gives its address (RFC 5321 4.1.3).
fn helo(given: Option<&str>) -> Result<Option<String>, WrongSetting> {
    let usable = |name: &str| {
        (1..=255).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._[]:".contains(&b))
    };
    match given {
        Some(name) if usable(name) => Ok(Some(name.to_owned())),
        Some(_) => Err(wrong("helo", "must be a host name or an address literal")),
        None => {
            let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
            Ok((machine.contains('.') && usable(&machine)).then_some(machine))
        }
    }
}

fn signer(config: &DkimConfig) -> Result<Signer, WrongSetting> {
    let usable =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    let domain = idna::domain_to_ascii(&config.domain).map_err(|_| wrong("dkim.domain", "is no domain"))?;
    if !usable(&domain) {
        return Err(wrong("dkim.domain", "is no domain"));
    }
    if !usable(&config.selector) {
        return Err(wrong("dkim.selector", "must consist of letters, digits, - and ."));
    }
    let pem = match &config.key {
        Some(key) => key.expose_secret().to_owned(),
        None => read("dkim.key_file", &config.key_file)?,
    };
    Signer::new(&domain, &config.selector, &pem).map_err(|problem| wrong("dkim.key_file", problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::span::Span;

    fn config(url: &str) -> SmtpConfig {
        SmtpConfig {
            url: url.to_owned(),
            password: None,
            password_file: None,
            auth: AuthMechanism::Plain,
            from: "Shop <shop@example.com>".to_owned(),
            helo: None,
            ca_file: None,
            dkim: None,
            connections: 2,
            timeouts: SmtpTimeouts::default(),
            reuse: SmtpReuse::default(),
        }
    }

    fn key_of(config: &SmtpConfig) -> Option<&'static str> {
        Settings::read(config).err().map(|error| error.key)
    }

    #[test]
    fn targets() {
        for (url, user, host, port, tls) in [
            ("smtp://mail.example.com", None, "mail.example.com", 587, false),
            ("smtps://mail.example.com", None, "mail.example.com", 465, true),
            ("smtp://u%40x@mail.example.com:25/", Some("u@x"), "mail.example.com", 25, false),
            ("smtp://u@x@mail.example.com", Some("u@x"), "mail.example.com", 587, false),
            ("smtp://[::1]:2525", None, "::1", 2525, false),
            ("smtp://127.0.0.1:2525", None, "127.0.0.1", 2525, false),
            ("smtp://exämple.test", None, "xn--exmple-cua.test", 587, false),
        ] {
            let target = Target::parse(url).unwrap();
            assert_eq!(
                (target.user.as_deref(), target.host.as_str(), target.port, target.implicit_tls),
                (user, host, port, tls),
                "{url}"
            );
        }
        for bad in
            ["", "mail.example.com", "http://x", "smtp://", "smtp://u:p@x", "smtp://x:0", "smtp://x:y", "smtp://x/y"]
        {
            assert!(Target::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn errors_name_their_key() {
        assert_eq!(key_of(&config("smtp://127.0.0.1")), None);
        assert_eq!(key_of(&config("ftp://x")), Some("url"));
        assert_eq!(key_of(&config("smtp://user@x")), Some("password_file"));
        assert_eq!(key_of(&SmtpConfig { password: Some("p".into()), ..config("smtp://x") }), Some("url"));
        assert_eq!(key_of(&SmtpConfig { from: "nobody".into(), ..config("smtp://x") }), Some("from"));
        assert_eq!(key_of(&SmtpConfig { connections: 0, ..config("smtp://x") }), Some("connections"));
        assert_eq!(key_of(&SmtpConfig { helo: Some("a b".into()), ..config("smtp://x") }), Some("helo"));
        assert_eq!(key_of(&SmtpConfig { ca_file: Some("/nonexistent".into()), ..config("smtp://x") }), Some("ca_file"));
        let timeouts = SmtpTimeouts { block: Span::secs(0), ..SmtpTimeouts::default() };
        assert_eq!(key_of(&SmtpConfig { timeouts, ..config("smtp://x") }), Some("timeouts.block"));
        let dkim = |domain: &str, key: &str| DkimConfig {
            domain: domain.into(),
            selector: "s1".into(),
            key_file: "/nonexistent".into(),
            key: Some(key.into()),
        };
        let bad_key = SmtpConfig { dkim: Some(dkim("example.com", "x")), ..config("smtp://x") };
        assert_eq!(key_of(&bad_key), Some("dkim.key_file"));
        let bad_domain = SmtpConfig { dkim: Some(dkim("a b", "x")), ..config("smtp://x") };
        assert_eq!(key_of(&bad_domain), Some("dkim.domain"));
    }

    #[test]
    fn the_wait_after_the_final_dot_is_long_enough_by_default() {
        assert!(SmtpTimeouts::default().end_of_data >= Span::secs(600), "RFC 5321 4.5.3.2.6");
    }
}
