//! What we trust and who we are.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, Error, RootCertStore};

use super::{HttpsSettings, Identity, Protocol};
use crate::channel::pem::no_key;
use crate::channel::setting::{Given, WrongSetting, wrong};

pub(super) fn client(settings: &HttpsSettings) -> Result<ClientConfig, WrongSetting> {
    let mut roots = RootCertStore::empty();
    // Single roots that cannot be read are left out; without any, every handshake says so.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(own) = &settings.roots {
        for certificate in certificates(own)? {
            let unusable = |_| own.wrong("holds a certificate that cannot be read; expected X.509 of the CAs to trust");
            roots.add(certificate).map_err(unusable)?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong("url", format!("TLS is not available: {error}")))?
        .with_root_certificates(roots);
    let mut config = match &settings.identity {
        None => builder.with_no_client_auth(),
        Some(Identity { chain, key }) => {
            let certificates = certificates(chain)?;
            let der =
                PrivateKeyDer::from_pem_slice(key.text().as_bytes()).map_err(|_| key.wrong(no_key(key.text())))?;
            builder.with_client_auth_cert(certificates, der).map_err(|error| no_pair(&error, chain, key))?
        }
    };
    config.alpn_protocols = match settings.protocol {
        Protocol::Http2 => vec![b"h2".to_vec()],
        Protocol::Any => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    Ok(config)
}

fn certificates(given: &Given) -> Result<Vec<CertificateDer<'static>>, WrongSetting> {
    const EXPECTED: &str = "expected PEM, from BEGIN CERTIFICATE to END CERTIFICATE";
    let found = CertificateDer::pem_slice_iter(given.text().as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| given.wrong(format!("holds PEM that is damaged or cut off; {EXPECTED}")))?;
    if found.is_empty() { Err(given.wrong(format!("holds no certificate; {EXPECTED}"))) } else { Ok(found) }
}

fn no_pair(error: &Error, chain: &Given, key: &Given) -> WrongSetting {
    match error {
        Error::InconsistentKeys(_) => chain.wrong(format!(
            "does not begin with the certificate that belongs to the key of {}; give the two that were made together",
            key.key
        )),
        // Before the two are compared, the key is read.
        Error::General(_) => key.wrong("holds a key that cannot be used; expected RSA, ECDSA or Ed25519"),
        _ => chain.wrong("holds a certificate that cannot be read; expected X.509 with its chain, the own one first"),
    }
}
