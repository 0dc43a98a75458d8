//! A service account's key file, and the assertions that it signs (OAuth 2.0 JWT bearer grant, RFC
//! 7523; Google, "Using OAuth 2.0 for Server to Server Applications").

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use belfry_domain::UnixMs;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;

/// May send messages, and nothing else.
pub const SCOPE: &str = "https://www.googleapis.com/auth/firebase.messaging";
/// Seconds that an assertion lives: Google's longest.
const LIFE: i64 = 3600;

/// What counts of the key file. Unknown members are Google's business.
#[derive(Deserialize)]
struct KeyFile {
    r#type: Option<String>,
    project_id: Option<String>,
    private_key_id: Option<String>,
    private_key: Option<SecretString>,
    client_email: Option<String>,
    token_uri: Option<String>,
}

pub(super) struct Account {
    /// The project that the account belongs to.
    pub project: Option<String>,
    /// Where an assertion becomes an access token.
    pub token_uri: String,
    key_id: Option<String>,
    email: String,
    key: Box<RsaKeyPair>,
}

impl Account {
    /// # Errors
    /// What is wrong, in words; never any of the file's.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        // serde's own words may quote the key.
        let file: KeyFile = serde_json::from_str(text)
            .map_err(|error| format!("is no service account's key in JSON (line {})", error.line()))?;
        if file.r#type.as_deref() != Some("service_account") {
            return Err("is the key of something else than a service account".to_owned());
        }
        let lacks = |name: &str| format!("lacks {name}");
        let pem = file.private_key.ok_or_else(|| lacks("private_key"))?;
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.expose_secret().as_bytes())
            .map_err(|_| "holds a private_key that is no PKCS#8 PEM".to_owned())?;
        let key = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der())
            .map_err(|_| "holds a private_key that is no usable RSA key (2048 to 8192 bits)".to_owned())?;
        Ok(Self {
            project: file.project_id,
            token_uri: file.token_uri.ok_or_else(|| lacks("token_uri"))?,
            key_id: file.private_key_id,
            email: file.client_email.ok_or_else(|| lacks("client_email"))?,
            key: Box::new(key),
        })
    }

    /// A signed claim to be this account from `now` on, for an hour. The same for the same second.
    ///
    /// # Errors
    /// The key cannot sign.
    pub(super) fn assertion(&self, now: UnixMs) -> Result<String, ring::error::Unspecified> {
        let seconds = now.0.max(0) / 1000;
        let mut head = json!({"alg": "RS256", "typ": "JWT"});
        if let Some(key_id) = &self.key_id {
            head["kid"] = json!(key_id);
        }
        let claims = json!({
            "iss": self.email,
            "scope": SCOPE,
            "aud": self.token_uri,
            "iat": seconds,
            "exp": seconds + LIFE,
        });
        let encoded = |json: &serde_json::Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let signed = format!("{}.{}", encoded(&head), encoded(&claims));
        let mut signature = vec![0; self.key.public().modulus_len()];
        // PKCS#1 v1.5 draws nothing from it: the signature is the same every time.
        self.key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}
