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

/// What replies are made of, and the names of offices: a local part that is one of these says nothing
/// about a person, and without it the reply says nothing at all ("greylisted, try …").
#[rustfmt::skip]
const ORDINARY: &[&str] = &[
    "a", "abuse", "accepted", "access", "account", "action", "active", "address", "addresses", "admin",
    "administrator", "again", "allowed", "and", "any", "are", "as", "at", "attempt", "attempts", "authentication",
    "be", "been", "black", "block", "blocked", "busy", "by", "can", "cannot", "check", "client", "closed", "closing",
    "code", "command", "connect", "connection", "connections", "contact", "content", "could", "data", "day", "deferred",
    "delayed", "delivered", "delivery", "denied", "detected", "directory", "disabled", "disk", "dns", "does", "domain",
    "due", "email", "empty", "end", "error", "exceeded", "exist", "exists", "fail", "failed", "failure", "for", "from",
    "full", "go", "grey", "greylisted", "greylisting", "had", "has", "have", "hello", "help", "here", "high", "host",
    "hour", "hours", "if", "in", "inactive", "info", "internal", "invalid", "ip", "is", "it", "later", "limit", "limits",
    "line", "list", "listed", "local", "lookup", "mail", "mailbox", "many", "may", "message", "messages", "minute",
    "minutes", "moved", "must", "name", "need", "network", "new", "no", "not", "now", "number", "of", "on", "or", "our",
    "out", "over", "please", "policy", "post", "postmaster", "problem", "protocol", "queue", "queued", "quota", "rate",
    "recipient", "recipients", "refused", "reject", "rejected", "relay", "relaying", "reply", "request", "required",
    "resource", "resources", "retry", "route", "sales", "second", "seconds", "security", "see", "send", "sender", "sent",
    "server", "service", "size", "soon", "spam", "status", "storage", "such", "suspended", "syntax", "system",
    "temporarily", "temporary", "test", "that", "the", "there", "this", "time", "timeout", "to", "too", "transaction",
    "try", "unable", "unavailable", "unknown", "until", "us", "use", "user", "users", "valid", "verify", "very", "virus",
    "wait", "was", "we", "web", "webmaster", "will", "with", "within", "you", "your",
];

/// Replaces `word` where it stands alone, whatever its case; an ordinary word only where it is marked
/// as a name.
fn without_word(text: &str, word: &str) -> String {
    let word = word.to_lowercase();
    if word.is_empty() {
        return text.to_owned();
    }
    let ordinary = ORDINARY.contains(&word.as_str());
    let boundary = |c: char| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+'));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let end = rest.find(boundary).unwrap_or(rest.len());
        let bare = rest[..end].trim_end_matches('.');
        if !bare.is_empty() && bare.to_lowercase() == word && (!ordinary || marked(text, at, at + bare.len())) {
            out.push('…');
        } else {
            out.push_str(bare);
        }
        // What ends the word goes over as it is.
        let next = at + end + rest[end..].chars().next().map_or(0, char::len_utf8);
        out.push_str(&text[at + bare.len()..next]);
        at = next;
    }
    out
}

/// In quotes or angle brackets, or as Sendmail marks a name: `<later>`, `'later'`, `later... User unknown`.
fn marked(text: &str, from: usize, to: usize) -> bool {
    let (before, after) = (text[..from].chars().next_back(), &text[to..]);
    let close = match before {
        Some('<') => '>',
        Some('"') => '"',
        _ => '\'',
    };
    let opened = matches!(before, Some('<' | '"' | '\'' | '`'));
    (opened && after.starts_with(close)) || after.starts_with("...")
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
            (
                "550 5.1.1 <ann@example.com>: Recipient address rejected: User unknown",
                "550 5.1.1 <…@example.com>: Recipient address rejected: User unknown",
            ),
            ("550 <ann>... User unknown", "550 <…>... User unknown"),
            ("550 ann... User unknown", "550 …... User unknown"),
            ("550 mailbox 'ann' not found", "550 mailbox '…' not found"),
            ("450 ann", "450 …"),
        ] {
            assert_eq!(told(&Reply::of(text), "ann@example.com"), expected);
        }
        let long = told(&Reply::of(&format!("550 {}", "ü".repeat(500))), "ann@example.com");
        assert_eq!(long.chars().count(), 200);
    }

    /// A local part that is a word of every day does not eat the reply's own words.
    #[test]
    fn ordinary_words_go_only_where_they_are_marked_as_names() {
        for (recipient, text, expected) in [
            ("later@example.com", "450 4.7.1 Greylisted, try later.", "450 4.7.1 Greylisted, try later."),
            ("later@example.com", "550 <later>: unknown", "550 <…>: unknown"),
            ("later@example.com", "550 'later' unknown, see later", "550 '…' unknown, see later"),
            ("later@example.com", "550 \"Later\" unknown", "550 \"…\" unknown"),
            ("later@example.com", "550 Later... User unknown", "550 …... User unknown"),
            ("later@example.com", "550 later@example.com later", "550 …@example.com later"),
            ("user@example.com", "550 User unknown", "550 User unknown"),
            ("may.lee@example.com", "450 you may try, may.lee", "450 you may try, …"),
            ("may@example.com", "450 you may try", "450 you may try"),
            ("lat@example.com", "450 later", "450 later"),
        ] {
            assert_eq!(told(&Reply::of(text), recipient), expected);
        }
        assert!(ORDINARY.is_sorted());
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
