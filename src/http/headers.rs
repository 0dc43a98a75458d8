//! Headers that mean something here: Idempotency-Key, traceparent, Accept.

use axum::http::{HeaderMap, header};

use super::problem::{Code, Problem};
use crate::intake::plan::wrong_key;

pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
pub const REPLAYED: &str = "idempotency-replayed";

/// Reads the key: a Structured-Field String (RFC 8941) or the bare value.
///
/// # Errors
/// 400 where it is missing, sent twice, or no key.
pub fn idempotency_key(headers: &HeaderMap) -> Result<String, Problem> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else {
        return Err(Problem::new(
            Code::MissingIdempotencyKey,
            "Send an Idempotency-Key header: the same for every repeat of one intent.",
        ));
    };
    if values.next().is_some() {
        return Err(Problem::new(Code::BadIdempotencyKey, "Idempotency-Key stands more than once."));
    }
    let wrong = |detail: &str| Problem::new(Code::BadIdempotencyKey, format!("Idempotency-Key {detail}."));
    let text = value.to_str().map_err(|_| wrong("must have 1 to 255 visible ASCII characters"))?.trim();
    let key = match text.strip_prefix('"') {
        Some(rest) => unquote(rest).ok_or_else(|| wrong("begins with a quote but is no quoted string"))?,
        None => text.to_owned(),
    };
    wrong_key(&key).map_or(Ok(key), |detail| Err(wrong(detail)))
}

/// What stands behind the opening quote, up to a closing one that ends it.
fn unquote(rest: &str) -> Option<String> {
    let mut key = String::with_capacity(rest.len());
    let mut letters = rest.chars();
    loop {
        match letters.next()? {
            '"' => return letters.next().is_none().then_some(key),
            '\\' => match letters.next()? {
                escaped @ ('"' | '\\') => key.push(escaped),
                _ => return None,
            },
            letter => key.push(letter),
        }
    }
}

/// W3C trace context, if it is well formed; a malformed one is nobody's trace and is no reason to
/// refuse.
#[must_use]
pub fn traceparent(headers: &HeaderMap) -> Option<String> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let parts: Vec<&str> = text.split('-').collect();
    let [version, trace, span, flags] = parts[..] else { return None };
    let hex = |part: &str, digits: usize| {
        part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    let fits = hex(version, 2) && version != "ff" && hex(trace, 32) && hex(span, 16) && hex(flags, 2);
    (fits && !zero(trace) && !zero(span)).then(|| text.to_owned())
}

/// Whether an answer in JSON may be given. No Accept header takes anything.
#[must_use]
pub fn takes_json(headers: &HeaderMap) -> bool {
    let mut accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    if accepts.peek().is_none() {
        return true;
    }
    accepts.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let refused = parts.any(|part| {
            let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
            weight.and_then(|weight| weight.trim().parse::<f32>().ok()) == Some(0.0)
        });
        !refused && matches!(kind.as_str(), "*/*" | "application/*" | "application/json" | "application/problem+json")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn one(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())])
    }

    #[test]
    fn keys_quoted_and_bare() {
        for (text, key) in [
            ("order-42/shipped", "order-42/shipped"),
            ("\"order-42/shipped\"", "order-42/shipped"),
            (r#""a\"b\\c""#, r#"a"b\c"#),
            ("a\"b", "a\"b"),
        ] {
            assert_eq!(idempotency_key(&one(IDEMPOTENCY_KEY, text)).unwrap(), key, "{text}");
        }
        let long = "k".repeat(256);
        for bad in ["", "\"\"", "\"", "\"open", "\"a\"b", "\"a\";p=1", r#""a\n""#, "a b", "\"a b\"", "ä", &long] {
            assert_eq!(idempotency_key(&one(IDEMPOTENCY_KEY, bad)).unwrap_err().code, Code::BadIdempotencyKey, "{bad}");
        }
        assert!(idempotency_key(&one(IDEMPOTENCY_KEY, &"k".repeat(255))).is_ok());
        let mut twice = one(IDEMPOTENCY_KEY, "a");
        twice.append(IDEMPOTENCY_KEY, HeaderValue::from_static("a"));
        assert_eq!(idempotency_key(&twice).unwrap_err().code, Code::BadIdempotencyKey);
        assert_eq!(idempotency_key(&HeaderMap::new()).unwrap_err().code, Code::MissingIdempotencyKey);
    }

    #[test]
    fn traces() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(traceparent(&one("traceparent", good)).as_deref(), Some(good));
        for bad in [
            "",
            "00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
        ] {
            assert_eq!(traceparent(&one("traceparent", bad)), None, "{bad}");
        }
    }

    #[test]
    fn accept() {
        assert!(takes_json(&HeaderMap::new()));
        for (accept, takes) in [
            ("*/*", true),
            ("text/html, application/json;q=0.5", true),
            ("application/problem+json", true),
            ("application/*", true),
            ("text/html", false),
            ("application/json;q=0, text/html", false),
            ("", false),
        ] {
            assert_eq!(takes_json(&one("accept", accept)), takes, "{accept}");
        }
    }
}
