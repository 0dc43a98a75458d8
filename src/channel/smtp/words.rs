//! A server's own words, made fit for a timeline: addresses masked, one line, at most 200
//! characters.

use super::reply::Reply;

const LONGEST: usize = 200;

/// Code, enhanced code and masked text. The recipient's local part is masked also where it stands
/// without its domain ("no such user ann").
#[must_use]
pub fn told(reply: &Reply, recipient: &str) -> String {
    let code = match reply.enhanced {
        Some(it) => format!("{} {}.{}.{}", reply.code, it.class, it.subject, it.detail),
        None => reply.code.to_string(),
    };
    let text = masked(&reply.text, recipient);
    let whole = if text.is_empty() { code } else { format!("{code} {text}") };
    whole.chars().take(LONGEST).collect()
}

/// Every `local@domain` becomes `…@domain`, control characters a space.
fn masked(text: &str, recipient: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('@') {
        out.push_str(&rest[..local_start(&rest[..at])]);
        out.push_str("…@");
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    let local = recipient.rsplit_once('@').map_or(recipient, |(local, _)| local);
    without_word(&out, local)
}

/// Where the local part that ends `before` begins.
fn local_start(before: &str) -> usize {
    if let Some(quoted) = before.strip_suffix('"') {
        return quoted.rfind('"').unwrap_or(0);
    }
    before.char_indices().rfind(|(_, c)| ends_an_address(*c)).map_or(0, |(at, c)| at + c.len_utf8())
}

fn ends_an_address(c: char) -> bool {
    c.is_whitespace() || matches!(c, '<' | '>' | '(' | ')' | '[' | ']' | ',' | ';' | ':' | '\'' | '`' | '…' | '@')
}

/// Replaces `word` where it stands alone, whatever its case.
fn without_word(text: &str, word: &str) -> String {
    if word.is_empty() {
        return text.to_owned();
    }
    let boundary = |c: char| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+'));
    let mut out = String::with_capacity(text.len());
    let mut token = String::new();
    let flush = |token: &mut String, out: &mut String| {
        let bare = token.trim_end_matches('.');
        if bare.to_lowercase() == word.to_lowercase() {
            out.push('…');
            out.push_str(&token[bare.len()..]);
        } else {
            out.push_str(token);
        }
        token.clear();
    };
    for c in text.chars() {
        if boundary(c) {
            flush(&mut token, &mut out);
            out.push(c);
        } else {
            token.push(c);
        }
    }
    flush(&mut token, &mut out);
    out
}

/// The id under which a server says it queued the message.
#[must_use]
pub fn queue_id(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let after =
        ["queued as ", "queued mail id ", " id="].iter().find_map(|mark| lower.find(mark).map(|at| at + mark.len()))?;
    let rest = text[after..].trim_start_matches('<');
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "._-+=".contains(c))).unwrap_or(rest.len());
    // An address would not be an id.
    let is_id = (1..=100).contains(&end) && !rest[end..].starts_with('@');
    is_id.then(|| rest[..end].trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_masked() {
        for (text, expected) in [
            ("550 5.1.1 <ann@example.com>: no such user", "550 5.1.1 <…@example.com>: no such user"),
            ("550 ann@a.b and bob.c+x@d.e.", "550 …@a.b and …@d.e."),
            ("550 No such user Ann here", "550 No such user … here"),
            ("550 user ann.", "550 user …."),
            ("550 annette stays", "550 annette stays"),
            ("550 josé@x.y", "550 …@x.y"),
            ("550 \"odd one\"@x.y", "550 …@x.y"),
            ("550", "550"),
        ] {
            assert_eq!(told(&Reply::of(text), "ann@example.com"), expected);
        }
        let long = told(&Reply::of(&format!("550 {}", "ü".repeat(500))), "ann@example.com");
        assert_eq!(long.chars().count(), 200);
    }

    #[test]
    fn queue_ids() {
        for (text, expected) in [
            ("Ok: queued as 4WxYz12", Some("4WxYz12")),
            ("OK id=1abcDE-000123-Xy", Some("1abcDE-000123-Xy")),
            ("Message accepted", None),
            ("queued as ann@example.com", None),
            ("queued as <20@x>", None),
            ("queued as ", None),
        ] {
            assert_eq!(queue_id(text), expected, "{text}");
        }
    }
}
