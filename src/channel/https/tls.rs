//! What we trust and who we are.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use secrecy::ExposeSecret as _;

use super::{HttpsError, HttpsSettings, Identity, Protocol};

fn wrong(key: &'static str, problem: impl Into<String>) -> HttpsError {
    HttpsError { key, problem: problem.into() }
}

pub(super) fn client(settings: &HttpsSettings) -> Result<ClientConfig, HttpsError> {
    let mut roots = RootCertStore::empty();
    // Single roots that cannot be read are left out; without any, every handshake says so.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(own) = &settings.roots {
        for certificate in certificates("ca_file", own)? {
            roots.add(certificate).map_err(|error| wrong("ca_file", error.to_string()))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong("ca_file", format!("TLS is not available: {error}")))?
        .with_root_certificates(roots);
    let mut config = match &settings.identity {
        None => builder.with_no_client_auth(),
        Some(Identity { chain, key }) => {
            let chain = certificates("certificate_file", chain)?;
            let key = PrivateKeyDer::from_pem_slice(key.expose_secret().as_bytes())
                .map_err(|_| wrong("key_file", "holds no PEM private key"))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| wrong("certificate_file", error.to_string()))?
        }
    };
    config.alpn_protocols = match settings.protocol {
        Protocol::Http2 => vec![b"h2".to_vec()],
        Protocol::Any => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    Ok(config)
}

fn certificates(key: &'static str, pem: &str) -> Result<Vec<CertificateDer<'static>>, HttpsError> {
    let found = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| wrong(key, error.to_string()))?;
    if found.is_empty() { Err(wrong(key, "holds no certificate")) } else { Ok(found) }
}
