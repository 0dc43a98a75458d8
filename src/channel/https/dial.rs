//! From a name to a connection: resolve, check the address, dial it, encrypt.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use belfry_domain::WhyCode;
use http::Uri;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::address::is_public;
use super::{Addresses, Fault, Protocol, Shared};

/// An origin (RFC 6454): what connections are kept for.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Target {
    secure: bool,
    /// Without the brackets of an IPv6 address.
    host: String,
    port: u16,
}

impl Target {
    pub fn of(uri: &Uri) -> Result<Self, Fault> {
        let wrong = |what: &str| Fault::not_taken(WhyCode::Unreachable, what);
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("not an https address")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("not an https address"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("the address holds a login"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if !secure && !names_loopback(&host) {
            return Err(wrong("plain http goes to this machine only"));
        }
        let port = match authority.port() {
            Some(_) => authority.port_u16().filter(|port| *port != 0).ok_or_else(|| wrong("the port is none"))?,
            None if secure => 443,
            None => 80,
        };
        Ok(Self { secure, host, port })
    }
}

fn names_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection on which nothing was said yet.
pub(super) struct Line {
    pub stream: Box<dyn Duplex>,
    pub http2: bool,
}

/// Has no deadline of its own beyond one for each of several addresses, which share `limit`.
pub(super) async fn dial(target: &Target, shared: &Shared, limit: Duration) -> Result<Line, Fault> {
    let addresses = resolve(target, shared.settings.addresses).await?;
    let stream = reach(&addresses, limit).await?;
    let only_http2 = shared.settings.protocol == Protocol::Http2;
    if !target.secure {
        return Ok(Line { stream: Box::new(stream), http2: only_http2 });
    }
    let name = ServerName::try_from(target.host.clone())
        .map_err(|_| Fault::not_taken(WhyCode::Unreachable, "the host is neither a name nor an address"))?;
    let connector = TlsConnector::from(Arc::clone(&shared.tls));
    let stream = connector
        .connect(name, stream)
        .await
        .map_err(|error| Fault::not_taken(WhyCode::TlsFailed, error.to_string()))?;
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    if only_http2 && !http2 {
        return Err(Fault::not_taken(WhyCode::TlsFailed, "the other side does not offer HTTP/2"));
    }
    Ok(Line { stream: Box::new(stream), http2 })
}

/// The addresses that may be dialled: looked at after resolving, so that no name, number or redirect of a name
/// server leads past the rule.
async fn resolve(target: &Target, allowed: Addresses) -> Result<Vec<SocketAddr>, Fault> {
    let found = tokio::net::lookup_host((target.host.as_str(), target.port)).await;
    let found =
        found.map_err(|error| unreachable(&error))?.filter(|address| target.secure || address.ip().is_loopback());
    let (open, inside): (Vec<SocketAddr>, Vec<SocketAddr>) =
        found.partition(|address| allowed == Addresses::Any || is_public(address.ip()));
    match (open.is_empty(), inside.is_empty()) {
        (false, _) => Ok(open),
        (true, false) => Err(Fault::Internal),
        (true, true) => Err(Fault::not_taken(WhyCode::Unreachable, "the name leads to no address that may be called")),
    }
}

/// The first address that answers. Each gets its share of the time, so that a silent one leaves some to the others.
async fn reach(addresses: &[SocketAddr], limit: Duration) -> Result<TcpStream, Fault> {
    let share = limit / u32::try_from(addresses.len()).unwrap_or(u32::MAX);
    let mut last = Fault::NotTaken { code: WhyCode::TimedOutBefore, detail: None };
    for address in addresses {
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Small frames must not wait for each other (Nagle).
                stream.set_nodelay(true).map_err(|error| unreachable(&error))?;
                return Ok(stream);
            }
            Ok(Err(error)) => last = unreachable(&error),
            Err(_) => last = Fault::NotTaken { code: WhyCode::TimedOutBefore, detail: None },
        }
    }
    Err(last)
}

fn unreachable(error: &io::Error) -> Fault {
    Fault::not_taken(WhyCode::Unreachable, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(uri: &str) -> Option<(bool, String, u16)> {
        Target::of(&uri.parse().unwrap()).ok().map(|target| (target.secure, target.host, target.port))
    }

    #[test]
    fn targets() {
        for (uri, secure, host, port) in [
            ("https://api.push.apple.com/3/device/x", true, "api.push.apple.com", 443),
            ("https://API.Push.Apple.com:2197/", true, "api.push.apple.com", 2197),
            ("https://[2001:db8::1]:8443/", true, "2001:db8::1", 8443),
            ("http://127.0.0.1:8080/", false, "127.0.0.1", 8080),
            ("http://[::1]/", false, "::1", 80),
            ("http://localhost/", false, "localhost", 80),
        ] {
            assert_eq!(of(uri), Some((secure, host.to_owned(), port)), "{uri}");
        }
        for bad in [
            "/3/device/x",
            "http://example.com/",
            "http://10.0.0.1/",
            "ftp://127.0.0.1/",
            "https://u:p@example.com/",
            "https://example.com:0/",
            "example.com:443",
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }

    #[tokio::test]
    async fn no_name_and_no_number_leads_inside() {
        for host in ["localhost", "127.0.0.1", "::1", "10.0.0.1", "169.254.169.254", "0", "127.1", "2130706433"] {
            let target = Target { secure: true, host: host.to_owned(), port: 443 };
            assert_eq!(resolve(&target, Addresses::PublicOnly).await, Err(Fault::Internal), "{host}");
        }
        let target = Target { secure: true, host: "1.1.1.1".to_owned(), port: 443 };
        assert_eq!(resolve(&target, Addresses::PublicOnly).await, Ok(vec!["1.1.1.1:443".parse().unwrap()]));
    }
}
