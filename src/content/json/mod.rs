//! JSON as the caller wrote it: numbers stay text, so that no digit is lost on the way through a
//! float, and a duplicate name is an error and not a silent choice between two values.

mod read;

use std::fmt::{self, Write as _};

pub use read::{JsonProblem, Node, Value, child, read};

/// Deeper nesting than the API takes in; a stack is finite.
pub const DEEPEST: usize = 64;

/// A parsed value. Objects keep the order in which they were written.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    /// The number's own text, known to be JSON.
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// # Errors
    /// Where the text is not one JSON value, is nested too deep, or repeats a name in an object.
    pub fn parse(text: &str) -> Result<Self, JsonProblem> {
        Ok(Self::from(read(text.as_bytes(), DEEPEST)?))
    }

    /// The member with this name, where it is an object that has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.iter().find(|(known, _)| known == name).map(|(_, value)| value),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::List(_) => None,
        }
    }
}

impl From<Node<'_>> for Json {
    fn from(node: Node<'_>) -> Self {
        match node.value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(text) => Self::Number(text.to_owned()),
            Value::Text(text) => Self::Text(text.into_owned()),
            Value::List(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(members) => {
                Self::Object(members.into_iter().map(|(name, member)| (name.into_owned(), member.into())).collect())
            }
        }
    }
}

/// Without white space, numbers as they were written, everything outside ASCII as itself.
impl fmt::Display for Json {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("null"),
            Self::Bool(true) => out.write_str("true"),
            Self::Bool(false) => out.write_str("false"),
            Self::Number(text) => out.write_str(text),
            Self::Text(text) => write!(out, "\"{}\"", Escaped(text)),
            Self::List(items) => {
                out.write_char('[')?;
                for (at, item) in items.iter().enumerate() {
                    write!(out, "{}{item}", if at == 0 { "" } else { "," })?;
                }
                out.write_char(']')
            }
            Self::Object(members) => {
                out.write_char('{')?;
                for (at, (name, value)) in members.iter().enumerate() {
                    write!(out, "{}\"{}\":{value}", if at == 0 { "" } else { "," }, Escaped(name))?;
                }
                out.write_char('}')
            }
        }
    }
}

/// The inside of a JSON string: only what JSON itself demands is escaped.
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut from = 0;
        for (at, byte) in self.0.bytes().enumerate() {
            let short = match byte {
                b'"' => "\\\"",
                b'\\' => "\\\\",
                b'\n' => "\\n",
                b'\r' => "\\r",
                b'\t' => "\\t",
                0x08 => "\\b",
                0x0c => "\\f",
                0x00..=0x1f => "",
                _ => continue,
            };
            out.write_str(&self.0[from..at])?;
            if short.is_empty() {
                write!(out, "\\u{byte:04x}")?;
            } else {
                out.write_str(short)?;
            }
            from = at + 1;
        }
        out.write_str(&self.0[from..])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_digit_stays() {
        let text = r#"{"a":[9007199254740993,18446744073709551615,-0.0,1.0,1e400,1E+2,-0],"b":null,"ü":true}"#;
        assert_eq!(Json::parse(text).unwrap().to_string(), text);
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for bad in ["", "NaN", "Infinity", "[1,]", "{\"a\":1}x", "'a'", "01", "[+1]", "{a:1}", "\"\n\""] {
            assert!(matches!(Json::parse(bad), Err(JsonProblem::Syntax { .. })), "{bad}");
        }
        let twice = JsonProblem::Duplicates { pointers: vec!["/b/a".to_owned()] };
        assert_eq!(Json::parse(r#"{"b":{"a":1,"\u0061":2}}"#), Err(twice));
        let deep = Json::parse(&("[".repeat(65) + &"]".repeat(65)));
        assert!(matches!(deep, Err(JsonProblem::TooDeep { .. })));
        assert!(Json::parse(&("[".repeat(64) + &"]".repeat(64))).is_ok());
    }

    proptest! {
        #[test]
        fn strings_survive_and_nothing_beyond_ascii_is_escaped(text: String) {
            let written = Json::Text(text.clone()).to_string();
            prop_assert_eq!(Json::parse(&written).unwrap(), Json::Text(text.clone()));
            let plain = |c: &char| !c.is_ascii();
            prop_assert!(written.chars().filter(plain).eq(text.chars().filter(plain)));
        }
    }
}
