//! A service account's key file, and the assertions that it signs (OAuth 2.0 JWT bearer grant, RFC
//! 7523; Google, "Using OAuth 2.0 for Server to Server Applications").

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use belfry_domain::UnixMs;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;

use crate::channel::pem::pkcs8;

/// What has to stand there.
pub(super) const EXPECTED: &str = "the JSON key of a service account \
    (Firebase console, Project settings, Service accounts, Generate new private key)";
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
    /// What is wrong, with what would be right; never any of the file's.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let file: KeyFile = match serde_json::from_str(text) {
            Ok(file) => file,
            // serde's own words may quote the key.
            Err(error) => return Err(format!("{}; expected {EXPECTED}", no_json(text, error.line()))),
        };
        if file.r#type.as_deref() != Some("service_account") {
            return Err(format!("{}; expected {EXPECTED}", another(text)));
        }
        let lacks = |name: &str| format!("lacks {name}; expected the whole file as Google gives it");
        let pem = file.private_key.ok_or_else(|| lacks("private_key"))?;
        let der = pkcs8(pem.expose_secret()).map_err(|problem| format!("has a private_key that {problem}"))?;
        let key = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).map_err(|_| {
            "has a private_key that is no RSA key of 2048 to 8192 bits; generate a new key for the account".to_owned()
        })?;
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

/// What else than JSON it is, as far as that can be told.
fn no_json(text: &str, line: usize) -> String {
    let text = text.trim();
    let one_word = !text.is_empty() && !text.contains(char::is_whitespace);
    if text.is_empty() {
        "is empty".to_owned()
    } else if one_word && (text.starts_with("AAAA") && text.contains(':') || text.starts_with("AIza")) {
        "is a key of FCM's legacy API, which Google has switched off".to_owned()
    } else if text.contains("<plist") {
        "is a GoogleService-Info.plist, which belongs into the app".to_owned()
    } else if text.contains("BEGIN PRIVATE KEY") && !text.starts_with('{') {
        "is a private key alone".to_owned()
    } else if one_word && text.starts_with('/') {
        "is a path, not what the file holds (give it by service_account_file)".to_owned()
    } else {
        format!("is no JSON of the right form (line {line})")
    }
}

/// What other JSON of Google's it is.
fn another(text: &str) -> &'static str {
    let json: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let has = |name: &str| json.get(name).is_some();
    match json["type"].as_str() {
        Some("authorized_user") => "is a person's login (gcloud auth), which no server should run on",
        Some("external_account" | "impersonated_service_account") => {
            "is a login by way of another account, which is not built"
        }
        Some(_) => "is the key of something else than a service account",
        None if has("project_info") && has("client") => "is a google-services.json, which belongs into the app",
        None if has("apiKey") && has("authDomain") => "is a web app's configuration, which belongs into the page",
        None if has("installed") || has("web") => "is an OAuth client's secret",
        None => "names no type \"service_account\"",
    }
}
