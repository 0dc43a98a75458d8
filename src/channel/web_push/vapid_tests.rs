use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::*;

const HOUR: Duration = Duration::from_secs(60 * 60);
const START: UnixMs = UnixMs(1_700_000_000_000);

/// Both hands are moved by the test.
struct Hands(Mutex<(UnixMs, Boot)>);

#[async_trait::async_trait]
impl Clock for Hands {
    fn now(&self) -> UnixMs {
        self.0.lock().unwrap().0
    }

    fn boot(&self) -> Boot {
        self.0.lock().unwrap().1
    }

    async fn sleep_until(&self, _until: Boot) {}
}

impl Hands {
    fn pass(&self, span: Duration) {
        let mut hands = self.0.lock().unwrap();
        *hands = (hands.0.plus(span), hands.1 + span);
    }

    fn step_to(&self, now: UnixMs) {
        self.0.lock().unwrap().0 = now;
    }
}

fn tokens() -> (Arc<Hands>, Tokens) {
    let clock = Arc::new(Hands(Mutex::new((START, Duration::from_secs(5)))));
    let key = VapidKey::from_pem(generate().pem.expose_secret()).unwrap();
    (clock.clone(), Tokens::new(key, "mailto:push@example.com".to_owned(), clock))
}

/// The token's claims, once its signature was verified with the key that stands beside it.
fn claims(header: &HeaderValue, public: &str) -> Value {
    let text = header.to_str().unwrap().strip_prefix("vapid t=").unwrap();
    let (token, key) = text.split_once(", k=").unwrap();
    assert_eq!(key, public);
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let key = URL_SAFE_NO_PAD.decode(key).unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key).verify(signed.as_bytes(), &signature).unwrap();
    let (head, claims) = signed.split_once('.').unwrap();
    let [head, claims] = [head, claims].map(|part| URL_SAFE_NO_PAD.decode(part).unwrap());
    assert_eq!(serde_json::from_slice::<Value>(&head).unwrap(), json!({"typ": "JWT", "alg": "ES256"}));
    serde_json::from_slice(&claims).unwrap()
}

#[test]
fn a_generated_key_is_read_again() {
    let made = generate();
    assert_eq!(public_of(made.pem.expose_secret()), Ok(made.public.clone()));
    let point = URL_SAFE_NO_PAD.decode(&made.public).unwrap();
    assert_eq!((point.len(), point[0]), (65, 4));
    assert!(made.pem.expose_secret().lines().all(|line| line.len() <= 64));
    assert_ne!(generate().public, made.public);
    let ec = made.pem.expose_secret().replace("PRIVATE", "EC PRIVATE");
    for bad in ["", "x", &ec, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
        assert_eq!(public_of(bad), Err(NotAKey));
    }
}

#[test]
fn a_token_is_for_one_origin_and_half_a_day() {
    let (_, tokens) = tokens();
    let header = tokens.authorization("https://push.example.com");
    assert!(header.is_sensitive());
    assert_eq!(
        claims(&header, tokens.public()),
        json!({"aud": "https://push.example.com", "exp": 1_700_000_000 + 12 * 3600, "sub": "mailto:push@example.com"})
    );
    let other = tokens.authorization("https://push.example.com:8443");
    assert_eq!(claims(&other, tokens.public())["aud"], "https://push.example.com:8443");
}

#[test]
fn a_token_is_kept_and_renewed_at_half_its_life() {
    let (clock, tokens) = tokens();
    let first = tokens.authorization("https://a.example");
    clock.pass(6 * HOUR - Duration::from_millis(1));
    assert_eq!(tokens.authorization("https://a.example"), first);
    clock.pass(Duration::from_millis(1));
    let second = tokens.authorization("https://a.example");
    assert_eq!(claims(&second, tokens.public())["exp"], 1_700_000_000 + (12 + 6) * 3600);
    assert_eq!(tokens.authorization("https://a.example"), second);
}

#[test]
fn case_56_a_wall_clock_stepped_to_and_fro_makes_no_new_tokens() {
    let (clock, tokens) = tokens();
    let first = tokens.authorization("https://a.example");
    for step in [2 * HOUR, Duration::ZERO].repeat(10) {
        clock.step_to(START.plus(step));
        assert_eq!(tokens.authorization("https://a.example"), first);
        clock.step_to(START.minus(step));
        assert_eq!(tokens.authorization("https://a.example"), first);
    }
}

#[test]
fn a_token_made_by_a_wrong_clock_is_not_used_once_the_clock_is_right() {
    for right in [START.plus(12 * HOUR), START.plus(11 * HOUR + Duration::from_millis(1)), START.minus(12 * HOUR)] {
        let (clock, tokens) = tokens();
        tokens.authorization("https://a.example");
        clock.step_to(right);
        let exp = claims(&tokens.authorization("https://a.example"), tokens.public())["exp"].as_i64().unwrap();
        assert_eq!(exp, right.plus(12 * HOUR).0.div_euclid(1000));
    }
}

#[test]
fn so_many_origins_are_kept_and_the_longest_unused_goes() {
    let (clock, tokens) = tokens();
    let origin = |number: usize| format!("https://push-{number}.example");
    let mut first = Vec::new();
    for number in 0..MOST_ORIGINS {
        first.push(tokens.authorization(&origin(number)));
        clock.pass(Duration::from_millis(1));
    }
    assert_eq!(tokens.authorization(&origin(0)), first[0]);
    clock.pass(Duration::from_millis(1));
    tokens.authorization(&origin(MOST_ORIGINS));
    assert_eq!(tokens.kept.lock().unwrap().len(), MOST_ORIGINS);
    assert_eq!(tokens.authorization(&origin(0)), first[0]);
    assert_ne!(tokens.authorization(&origin(1)), first[1]);
}
