//! The canonical form of a request and its keyed fingerprint: sorted keys, no white space, strings
//! normalised, numbers as written. Two requests with the same fingerprint mean the same.

use belfry_domain::hex;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use belfry_domain::notification::Fingerprint;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::json::{Node, Value, child};

/// Most parts a fingerprint names.
const MOST_PARTS: usize = 64;

/// The installation's secret, ready to key a hash.
#[derive(Clone)]
pub struct Secret(Hmac<Sha256>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Secret(…)")
    }
}

impl Secret {
    #[must_use]
    pub fn new(secret: &[u8; 32]) -> Self {
        // Exactly one key of a length that HMAC takes as it is.
        let mut block = [0; 64];
        block[..32].copy_from_slice(secret);
        Self(<Hmac<Sha256> as Mac>::new(&block.into()))
    }

    /// HMAC-SHA256 over length-prefixed parts, so that parts cannot run together.
    #[must_use]
    pub fn hash(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

/// Canonical JSON text.
#[must_use]
pub fn canonical(node: &Node<'_>) -> String {
    let mut out = String::with_capacity(node.raw.len());
    write_node(node, &mut out);
    out
}

fn write_node(node: &Node<'_>, out: &mut String) {
    match &node.value {
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(node.raw),
        Value::Text(text) => write_text(text, out),
        Value::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_node(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|(one, _), (other, _)| one.as_bytes().cmp(other.as_bytes()));
            out.push('{');
            for (at, (key, member)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_text(key, out);
                out.push(':');
                write_node(member, out);
            }
            out.push('}');
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control < ' ' => write!(out, "\\u{:04x}", control as u32).unwrap_or_default(),
            other => out.push(other),
        }
    }
    out.push('"');
}

/// The fingerprint of `node`, whole and by part: the members of the request and their members,
/// at most 64 of them; what lies deeper counts into its parent. `but` names a member left out
/// (a batch item's own key, which is no part of what it asks for).
#[must_use]
pub fn fingerprint(secret: &Secret, node: &Node<'_>, but: Option<&str>) -> Fingerprint {
    let Value::Object(members) = &node.value else {
        let text = canonical(node);
        return Fingerprint { whole: hex(&secret.hash(&[text.as_bytes()])), parts: BTreeMap::new() };
    };
    let members: Vec<_> = members.iter().filter(|(key, _)| Some(key.as_ref()) != but).cloned().collect();
    let mut parts = BTreeMap::new();
    let mut room = MOST_PARTS.saturating_sub(members.len());
    for (key, member) in members.iter().take(MOST_PARTS) {
        let pointer = child("", key);
        match &member.value {
            Value::Object(inner) if !inner.is_empty() && inner.len() - 1 <= room => {
                room -= inner.len() - 1;
                parts.extend(inner.iter().map(|(name, part)| print(secret, child(&pointer, name), part)));
            }
            _ => parts.extend([print(secret, pointer, member)]),
        }
    }
    let whole = canonical(&Node { raw: node.raw, value: Value::Object(members) });
    Fingerprint { whole: hex(&secret.hash(&[whole.as_bytes()])), parts }
}

fn print(secret: &Secret, pointer: String, part: &Node<'_>) -> (String, String) {
    let hash = secret.hash(&[pointer.as_bytes(), canonical(part).as_bytes()]);
    (pointer, hex(&hash[..4]))
}

#[cfg(test)]
mod tests {
    use super::super::json::parse;
    use super::*;

    fn of(text: &str) -> Fingerprint {
        fingerprint(&Secret::new(&[7; 32]), &parse(text.as_bytes()).unwrap(), Some("key"))
    }

    #[test]
    fn order_space_and_escapes_do_not_count() {
        let one = of(r#"{"to":{"email":"é\n"},"data":{"b":[1,2],"a":1.0}}"#);
        let other = of("{ \"data\": {\"a\":1.0,\"b\":[ 1, 2 ]}, \"key\":\"k\",\"to\":{\"email\":\"\\u00e9\\u000a\"} }");
        assert_eq!(one, other);
        assert_eq!(one.parts.keys().collect::<Vec<_>>(), ["/data/a", "/data/b", "/to/email"]);
    }

    #[test]
    fn differences_are_named_by_place() {
        let one = of(r#"{"class":"code","data":{"n":9007199254740993,"deep":{"x":1}},"to":{}}"#);
        let other = of(r#"{"class":"code","data":{"n":9007199254740992,"deep":{"x":2}},"metadata":{},"to":{}}"#);
        assert_ne!(one.whole, other.whole);
        assert_eq!(one.differing(&other), ["/data/deep", "/data/n", "/metadata"]);
        // As written: a caller that sends 1 once and 1.0 later sent something else.
        assert_eq!(of(r#"{"a":1}"#).differing(&of(r#"{"a":1.0}"#)), ["/a"]);
    }

    #[test]
    fn parts_are_bounded() {
        let wide: Vec<String> = (0..70).map(|n| format!("\"k{n}\":{n}")).collect();
        let print = of(&format!("{{\"data\":{{{}}},\"to\":{{\"a\":1,\"b\":2}}}}", wide.join(",")));
        assert_eq!(print.parts.keys().collect::<Vec<_>>(), ["/data", "/to/a", "/to/b"]);
        let top: Vec<String> = (0..70).map(|n| format!("\"k{n}\":{{}}")).collect();
        assert_eq!(of(&format!("{{{}}}", top.join(","))).parts.len(), 64);
    }

    #[test]
    fn keyed() {
        let node = parse(b"{\"a\":1}").unwrap();
        assert_ne!(fingerprint(&Secret::new(&[1; 32]), &node, None), fingerprint(&Secret::new(&[2; 32]), &node, None));
    }
}
