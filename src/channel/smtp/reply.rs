//! SMTP replies as they come: code, enhanced code, words.
//!
//! Not lettre's parser: it refuses second digits above 5 (`571`, `471`), text that is no UTF-8, and
//! gives enhanced codes only within the text.

use std::fmt;

/// RFC 3463.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enhanced {
    pub class: u8,
    pub subject: u16,
    pub detail: u16,
}

impl Enhanced {
    fn parse(word: &str) -> Option<Self> {
        let mut parts = word.split('.');
        let number = |part: Option<&str>| -> Option<u16> {
            part.filter(|it| (1..=3).contains(&it.len()) && it.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
        };
        let class = u8::try_from(number(parts.next())?).ok()?;
        let found = Self { class, subject: number(parts.next())?, detail: number(parts.next())? };
        (parts.next().is_none() && matches!(class, 2 | 4 | 5)).then_some(found)
    }
}

/// A whole reply of one or more lines. `Debug` shows only the codes: the words may hold addresses.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply {
    pub code: u16,
    /// Only where its class agrees with the code's first digit (RFC 2034 4).
    pub enhanced: Option<Enhanced>,
    /// Without codes, the lines joined by spaces, unmasked.
    pub text: String,
    /// Each line's text, for EHLO.
    pub lines: Vec<String>,
}

impl fmt::Debug for Reply {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Reply({} {:?})", self.code, self.enhanced)
    }
}

impl Reply {
    #[must_use]
    pub const fn class(&self) -> u16 {
        self.code / 100
    }

    #[must_use]
    pub const fn is_positive(&self) -> bool {
        self.class() == 2
    }

    /// Subject and detail, where there are any: `(1, 1)` of `5.1.1`.
    #[must_use]
    pub fn detail(&self) -> Option<(u16, u16)> {
        self.enhanced.map(|one| (one.subject, one.detail))
    }
}

/// One line that is no reply line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAReply;

/// Puts a reply together line by line.
#[derive(Debug, Default)]
pub struct ReplyReader {
    code: Option<u16>,
    lines: Vec<String>,
}

impl ReplyReader {
    /// Takes one line without its line end; gives the reply once it is whole.
    ///
    /// # Errors
    /// [`NotAReply`] where the line has no code, or another one than the lines before it.
    pub fn push(&mut self, line: &[u8]) -> Result<Option<Reply>, NotAReply> {
        let (digits, rest) = line.split_at_checked(3).ok_or(NotAReply)?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return Err(NotAReply);
        }
        let code = digits.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
        if !(200..=599).contains(&code) || *self.code.get_or_insert(code) != code {
            return Err(NotAReply);
        }
        let (more, text) = match rest {
            [b'-', text @ ..] => (true, text),
            [b' ', text @ ..] => (false, text),
            [] => (false, rest),
            _ => return Err(NotAReply),
        };
        self.lines.push(String::from_utf8_lossy(text).into_owned());
        if more {
            return Ok(None);
        }
        self.code = None;
        Ok(Some(whole(code, std::mem::take(&mut self.lines))))
    }
}

fn whole(code: u16, lines: Vec<String>) -> Reply {
    let class = u8::try_from(code / 100).unwrap_or(0);
    let first_word = |line: &str| line.split(' ').next().and_then(Enhanced::parse).filter(|it| it.class == class);
    let enhanced = lines.first().and_then(|line| first_word(line));
    let words: Vec<&str> = lines
        .iter()
        .map(|line| match first_word(line) {
            Some(_) => line.split_once(' ').map_or("", |(_, rest)| rest).trim(),
            None => line.trim(),
        })
        .collect();
    let text = words.join(" ");
    Reply { code, enhanced, text, lines }
}

#[cfg(test)]
impl Reply {
    /// A reply from its wire lines, for table tests.
    pub fn of(wire: &str) -> Self {
        let mut reader = ReplyReader::default();
        let mut found = None;
        for line in wire.lines() {
            found = reader.push(line.as_bytes()).unwrap();
        }
        found.unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies() {
        for (wire, code, detail, text) in [
            ("250 ok", 250, None, "ok"),
            ("250", 250, None, ""),
            ("250-one\n250 two", 250, None, "one two"),
            ("550-5.7.25 no\n550 5.7.25 reverse name", 550, Some((7, 25)), "no reverse name"),
            ("571 5.7.1 denied", 571, Some((7, 1)), "denied"),
            ("471 odd", 471, None, "odd"),
            ("422 4.2.2 full", 422, Some((2, 2)), "full"),
            ("550 4.1.1 contradicts itself", 550, None, "4.1.1 contradicts itself"),
            ("550 5.1.1.1 none", 550, None, "5.1.1.1 none"),
        ] {
            let reply = Reply::of(wire);
            assert_eq!((reply.code, reply.detail(), reply.text.as_str()), (code, detail, text), "{wire}");
        }
        assert_eq!(ReplyReader::default().push(b"250 caf\xe9").unwrap().unwrap().text, "caf\u{fffd}");
    }

    #[test]
    fn what_is_no_reply() {
        for line in [&b""[..], b"25", b"abc def", b"999 what", b"199 what", b"250_x", b"+50 x"] {
            assert_eq!(ReplyReader::default().push(line), Err(NotAReply), "{line:?}");
        }
        let mut reader = ReplyReader::default();
        assert_eq!(reader.push(b"250-a"), Ok(None));
        assert_eq!(reader.push(b"550 b"), Err(NotAReply));
    }
}
