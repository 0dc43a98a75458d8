//! A server's own words, made fit for a timeline: addresses masked, one line, at most 200
//! characters.

use super::reply::Reply;
use crate::ports::message::EmailMessage;

const LONGEST: usize = 200;
/// A code is at least this long; shorter numbers are in every answer.
const SHORTEST_CODE: usize = 4;
/// So long a word is a token, also without a digit in it.
const TOKEN: usize = 20;

/// What a server may know and quote, and a record must not keep: it outlives content and secrets.
#[derive(Clone, Copy, Default)]
pub struct Unsaid<'a> {
    /// The local part is masked also where it stands without its domain ("no such user ann").
    pub recipient: &'a str,
    /// The name that we log in with, where it stands alone.
    pub user: &'a str,
    /// Our password in the forms in which it goes over the wire, wherever they stand.
    pub secrets: &'a [String],
    /// What went over the wire: of it, what looks like a code or a token.
    pub mail: Option<&'a EmailMessage>,
}

/// Code, enhanced code and masked text.
#[must_use]
pub fn told(reply: &Reply, unsaid: &Unsaid<'_>) -> String {
    let code = match reply.enhanced {
        Some(it) => format!("{} {}.{}.{}", reply.code, it.class, it.subject, it.detail),
        None => reply.code.to_string(),
    };
    let text = masked(&reply.text, unsaid);
    let whole = if text.is_empty() { code } else { format!("{code} {text}") };
    whole.chars().take(LONGEST).collect()
}

/// Every `local@domain` becomes `…@domain`, control characters a space, and what is not to be said `…`.
fn masked(text: &str, unsaid: &Unsaid<'_>) -> String {
    let mut text = text.to_owned();
    for secret in unsaid.secrets {
        text = text.replace(secret.as_str(), "…");
    }
    if let Some(mail) = unsaid.mail {
        text = without_codes(&text, mail);
    }
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('@') {
        out.push_str(&rest[..local_start(&rest[..at])]);
        out.push_str("…@");
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    let local = unsaid.recipient.rsplit_once('@').map_or(unsaid.recipient, |(local, _)| local);
    without_word(&without_word(&out, local), unsaid.user)
}

/// Masks every word that is a code or a token of the mail's, also where either writes its digits in
/// groups ("482 913", "482-913").
fn without_codes(text: &str, mail: &EmailMessage) -> String {
    let values = mail.headers.iter().map(|(_, value)| value.as_str());
    let parts: Vec<&str> =
        [mail.subject.as_str(), &mail.text].into_iter().chain(mail.html.as_deref()).chain(values).collect();
    let whole: Vec<String> = parts.iter().map(|part| ungrouped(part)).collect();
    let in_mail =
        |word: &str| parts.iter().any(|part| part.contains(word)) || whole.iter().any(|part| part.contains(word));
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_alphanumeric()) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let long = word_length(rest);
        let word = &rest[..long];
        let bare = ungrouped(word);
        let count = bare.chars().count();
        let looks_like_one = count >= TOKEN || count >= SHORTEST_CODE && bare.contains(|c: char| c.is_numeric());
        out.push_str(if looks_like_one && (in_mail(&bare) || in_mail(word)) { "…" } else { word });
        rest = &rest[long..];
    }
    out.push_str(rest);
    out
}

/// How long the word at the beginning is: letters, digits and what joins them in a token; groups of
/// digits are one.
fn word_length(text: &str) -> usize {
    let mut letters = text.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, c)) = letters.next() {
        let joins = match c {
            '-' | '_' => letters.peek().is_some_and(|(_, next)| next.is_alphanumeric()),
            ' ' | '\u{a0}' => before.is_numeric() && letters.peek().is_some_and(|(_, next)| next.is_numeric()),
            c => c.is_alphanumeric(),
        };
        if !joins {
            return at;
        }
        before = c;
    }
    text.len()
}

/// Without the blanks and hyphens that stand between two digits.
fn ungrouped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        let between = matches!(c, ' ' | '-' | '\u{a0}')
            && out.ends_with(|c: char| c.is_numeric())
            && letters.peek().is_some_and(|next| next.is_numeric());
        if !between {
            out.push(c);
        }
    }
    out
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
            assert_eq!(told(&Reply::of(text), &ann()), expected);
        }
        let long = told(&Reply::of(&format!("550 {}", "ü".repeat(500))), &ann());
        assert_eq!(long.chars().count(), 200);
    }

    fn ann() -> Unsaid<'static> {
        Unsaid { recipient: "ann@example.com", ..Unsaid::default() }
    }

    #[test]
    fn codes_and_tokens_of_the_mail_are_masked() {
        let mail = EmailMessage {
            from: None,
            reply_to: Vec::new(),
            to: Vec::new(),
            cc: Vec::new(),
            subject: "Your code is 482 913".into(),
            text: "482 913, or AB12-CD34. https://x.example/t/qwertyuiopasdfghjklzxcvb?y=2".into(),
            html: Some("<b>99887766</b>".into()),
            headers: vec![("X-Token".into(), "tok_7f3a9c".into())],
            attachments: Vec::new(),
        };
        let unsaid = Unsaid { mail: Some(&mail), ..ann() };
        for (text, expected) in [
            ("550 5.7.1 blocked: Your code is 482913", "550 5.7.1 blocked: Your code is …"),
            ("550 5.7.1 blocked: 482-913.", "550 5.7.1 blocked: …."),
            ("550 saw 482 913 there", "550 saw … there"),
            ("550 AB12-CD34", "550 …"),
            ("550 <99887766>", "550 <…>"),
            ("550 /t/qwertyuiopasdfghjklzxcvb?y=2", "550 /t/…?y=2"),
            ("550 tok_7f3a9c", "550 …"),
            ("550 try 4711 or 192.0.2.10 in 300 s", "550 try 4711 or 192.0.2.10 in 300 s"),
            ("452 4.3.1 code or example", "452 4.3.1 code or example"),
        ] {
            assert_eq!(told(&Reply::of(text), &unsaid), expected);
        }
    }

    #[test]
    fn our_own_login_is_masked() {
        let secrets = ["hunter2 & co".to_owned(), "aHVudGVyMg==".to_owned()];
        let unsaid = Unsaid { user: "mailer", secrets: &secrets, ..Unsaid::default() };
        for (text, expected) in [
            ("535 5.7.8 bad hunter2 & co!", "535 5.7.8 bad …!"),
            ("535 mailer: aHVudGVyMg== is wrong", "535 …: … is wrong"),
            ("535 the mailers stay", "535 the mailers stay"),
        ] {
            assert_eq!(told(&Reply::of(text), &unsaid), expected);
        }
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
            let unsaid = Unsaid { recipient, ..Unsaid::default() };
            assert_eq!(told(&Reply::of(text), &unsaid), expected);
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
