//! A certificate authority of the simulator's own.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;

#[derive(Clone)]
pub struct SimTls {
    issuer: Arc<Issuer<'static, KeyPair>>,
    ca: CertificateDer<'static>,
    /// To be given to the client as `ca`.
    pub ca_pem: String,
}

impl SimTls {
    pub fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Of the same name as what it signs, OpenSSL takes that for signed by itself.
        params.distinguished_name.push(DnType::CommonName, "the stand-in's authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        Self { ca: certificate.der().clone(), ca_pem: certificate.pem(), issuer: Arc::new(Issuer::new(params, key)) }
    }

    fn certificate(&self, names: &[&str]) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
        (certificate, key)
    }

    /// A certificate and its key, both PEM, for one who logs in with them.
    pub fn identity(&self) -> (String, String) {
        let (certificate, key) = self.certificate(&["client.test"]);
        (certificate.pem(), key.serialize_pem())
    }

    pub fn server(&self, wants_certificates: bool) -> Arc<rustls::ServerConfig> {
        let (certificate, key) = self.certificate(&["127.0.0.1", "localhost"]);
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = if wants_certificates {
            let mut roots = RootCertStore::empty();
            roots.add(self.ca.clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let mut config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(config)
    }
}
