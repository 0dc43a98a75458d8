//! The token endpoint: takes assertions of one service account, and gives out access tokens that end.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

/// Made for these tests; opens nothing.
const KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQD1peBPTCjD9SXb
crAoXDRY83oQSE5TRLcLwUyMb6DjvAwDhcarxsHLSAd2IkpqvYTAPxIXPTH34d0I
fXm1fIonjFjzMZnZ3MEYNEkRZTyuoCN0qrN4SVia1TlXMbc0x2p3AyTxYjrLhZUS
EPiBej8oIGnC7QxZjQVYgWwgeh868S1SM6Y+g2zCgU4lGbl6v3AR7YQBBQn4uvjs
NgNUvP0Efvv2x5382XsSr48qjNVH6rGRvAhm8u8MQb5a+QxwXkx6LyO8N27FEsIk
htm7hrFcrINbqGkKwH2qUqL8QWiT+iNjTua9L8kNQ9ON2V5wt5HetUcOcLmyHyiA
vpdUCbxRAgMBAAECggEAeC1/WHwzg28HZt2spgo6B/ySDq45N46qGMOoThp8tX21
yPFlOXvDKs8h618qVh9C94TDtn/XVuT2rKUqaqozstZ8W/o7wTS5eTx3NN34+pvY
zMaIiAQmJ5XCeFCXx2f6Q6BTrg43IoPHYu/PjBTBGkIFS/qJ7LPL1jl3K0pjxgLr
nqyEvstOP/fKsKs/uB3ZUvIvsiOK2H0gisEbjzUR4amOZcRTF8XNRjDV4ZyEe5wu
fMDISkQAqNDM/YDhDSdl750HDUM4w/xn5nxs9Hxe6h+a4Hl1qKIRdBWV2wNQXFSW
EdjTdmzKFJcj0zNrY1b/FR0ZnemSbsiFoKdS302QcwKBgQD8yjSMJ8UZtxjiIj+Y
6C6LaN5/D0V5e4b5LiSBA4kMLpQq3xckyaZqzGHGyNO5xavlqzC+FYA/Zn9S6E3n
P5LjYs/cePRPAROY0jPLkgKpZnN89vTEMg7BsdK6N5g3yAyx1ZjO6oXfLIxtg+hZ
Rt4z4IWwizr/MBtIQ0nF51qMEwKBgQD4xHQL0HC7SWoZ86Rqwr1GZi1d7YzzjiqM
mKb7i8BiwFLsybEhGGWLaw0av9Dsl2UJehDZXtDHaRkm4SE8+dOKusDcydNAF8J/
LsiCqMrkvBJ57E9oGbGJtzPvIo5gQTcBM5eXFJGpMW7YUBtCzhTMuUhzFOZaUiYk
SCHBjvtaiwKBgFcjYK+7ec7edb5lreSIjJrTwHauDfXNZf55MG4kiNZhLAQHONQe
irYf08iRK6LLB/E4bKnpgXbZXyR2HXyMRpcJVbubGiQtq9KvCtmucCpyvXajLkZ/
NuT/5jL4vQjldbLLfUw+PX1rvtB1et9jdW8OgycTJ3gV3iGvyDtm/6hvAoGBAMXQ
4j6qx5oGbPqqBapnpL8gbR7t0VGzUR5wHQiWPqvIJ6jnUZTxo33T6J3GvkoEsXFx
wYg4n2iSqE+EYjvspU0B6G8phnTG8ADWoNdVhdGRxFdzlElBdS3/oqqcHf9onGa2
MesPjiyuhGg6exMKcPvCslvg2LQl8vKS8VTLcBC1AoGBAPrqeTJgxaGNfL/vN5un
7wVvTSSMjCzokNwLeH0gpcNRrQSvhsxFk0nWP3LsdgmrYko0eMhWtiVjAscBnqDw
JdYSUQjB3EU0BBsM1UssGlkzwOm2HRwU2a8ySWoRM2vCdXoUAsHfIUdPRIRWGYxF
MdULQxy7gzmPEqjprSaz/PPX
-----END PRIVATE KEY-----
";
const KEY_ID: &str = "4f5e6d7c";
const EMAIL: &str = "sender@shop.iam.gserviceaccount.com";
/// What Google's own libraries aim at, wherever the key file sends them.
const GOOGLE: &str = "https://oauth2.googleapis.com/token";
/// Either lets its bearer send.
const SCOPES: [&str; 2] =
    ["https://www.googleapis.com/auth/firebase.messaging", "https://www.googleapis.com/auth/cloud-platform"];

/// The account's key file, as Google's console gives it out.
pub fn key_file(project: &str, token_uri: &str) -> String {
    json!({
        "type": "service_account",
        "project_id": project,
        "private_key_id": KEY_ID,
        "private_key": KEY,
        "client_email": EMAIL,
        "client_id": "1",
        "token_uri": token_uri,
        "universe_domain": "googleapis.com",
    })
    .to_string()
}

/// Whether a form holds a good assertion at `now` (seconds since 1970), else the error's code and what
/// is wrong with it.
pub fn verify(form: &str, token_uri: &str, now: i64) -> Result<(), (&'static str, String)> {
    let field = |name: &str| form.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let request = |what: &str| ("invalid_request", what.to_owned());
    if field("grant_type").map(|kind| kind.replace("%3A", ":")).as_deref()
        != Some("urn:ietf:params:oauth:grant-type:jwt-bearer")
    {
        return Err(("unsupported_grant_type", "grant_type".to_owned()));
    }
    let assertion = field("assertion").ok_or_else(|| request("assertion"))?;
    let [head, claims, signature] = assertion.split('.').collect::<Vec<_>>()[..] else {
        return Err(request("assertion's parts"));
    };
    let grant = |what: &str| ("invalid_grant", what.to_owned());
    let head = part(head).ok_or_else(|| grant("head"))?;
    if head["alg"] != "RS256" || head["kid"] != KEY_ID {
        return Err(grant("alg or kid"));
    }
    let signed = &assertion[..assertion.len() - signature.len() - 1];
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| grant("signature's base64url"))?;
    let der = PrivatePkcs8KeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public())
        .verify(signed.as_bytes(), &signature)
        .map_err(|_| grant("signature"))?;
    let claims = part(claims).ok_or_else(|| grant("claims"))?;
    claimed(&claims, token_uri, now).map_err(grant)
}

fn claimed(claims: &Value, token_uri: &str, now: i64) -> Result<(), &'static str> {
    let seconds = |name: &'static str| claims[name].as_i64().ok_or(name);
    let (iat, exp) = (seconds("iat")?, seconds("exp")?);
    let scopes = claims["scope"].as_str().unwrap_or_default();
    match () {
        () if claims["iss"] != EMAIL => Err("iss"),
        () if claims["aud"] != token_uri && claims["aud"] != GOOGLE => Err("aud"),
        () if !scopes.split(' ').any(|scope| SCOPES.contains(&scope)) => Err("scope"),
        () if exp - iat > 3600 || exp <= iat => Err("exp is more than an hour after iat, or none"),
        () if iat > now + 60 || exp <= now => Err("iat or exp is of another time"),
        () => Ok(()),
    }
}

fn part(text: &str) -> Option<Value> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}
