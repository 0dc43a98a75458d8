//! JSON as the caller wrote it: numbers stay text, so that no digit is lost on the way through a
//! float, and a duplicate name is an error and not a silent choice between two values.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use thiserror::Error;

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

/// Why a text is not taken. Says where, never what stands there.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum JsonProblem {
    #[error("not JSON, line {line}")]
    NotJson { line: usize },
    #[error("an object has the same name twice")]
    DuplicateName,
    #[error("nested more than {DEEPEST} deep")]
    TooDeep,
}

impl Json {
    /// # Errors
    /// Where the text is not one JSON value, is nested too deep, or repeats a name in an object.
    pub fn parse(text: &str) -> Result<Self, JsonProblem> {
        let raw: &RawValue =
            serde_json::from_str(text).map_err(|failed| JsonProblem::NotJson { line: failed.line() })?;
        Self::from_raw(raw.get(), DEEPEST)
    }

    fn from_raw(text: &str, levels: usize) -> Result<Self, JsonProblem> {
        let not_json = |failed: serde_json::Error| JsonProblem::NotJson { line: failed.line() };
        let levels = levels.checked_sub(1).ok_or(JsonProblem::TooDeep)?;
        Ok(match text.as_bytes().first() {
            Some(b'n') => Self::Null,
            Some(b't') => Self::Bool(true),
            Some(b'f') => Self::Bool(false),
            Some(b'"') => Self::Text(serde_json::from_str(text).map_err(not_json)?),
            Some(b'[') => {
                let Items(items) = serde_json::from_str(text).map_err(not_json)?;
                Self::List(items.iter().map(|one| Self::from_raw(one.get(), levels)).collect::<Result<_, _>>()?)
            }
            Some(b'{') => {
                let Members(members) = serde_json::from_str(text).map_err(not_json)?;
                let mut names: Vec<&str> = members.iter().map(|(name, _)| &**name).collect();
                names.sort_unstable();
                if names.windows(2).any(|pair| pair[0] == pair[1]) {
                    return Err(JsonProblem::DuplicateName);
                }
                let built = |(name, value): &(Cow<'_, str>, &RawValue)| {
                    Ok((name.clone().into_owned(), Self::from_raw(value.get(), levels)?))
                };
                Self::Object(members.iter().map(built).collect::<Result<_, _>>()?)
            }
            _ => Self::Number(text.to_owned()),
        })
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

struct Items<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Items<'de>;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an array")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut found: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = found.next_element()? {
                    items.push(item);
                }
                Ok(Items(items))
            }
        }
        input.deserialize_seq(InOrder)
    }
}

struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut found: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = found.next_entry::<String, &RawValue>()? {
                    members.push((Cow::Owned(name), value));
                }
                Ok(Members(members))
            }
        }
        input.deserialize_map(InOrder)
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
            assert!(matches!(Json::parse(bad), Err(JsonProblem::NotJson { .. })), "{bad}");
        }
        assert_eq!(Json::parse(r#"{"b":{"a":1,"\u0061":2}}"#), Err(JsonProblem::DuplicateName));
        assert_eq!(Json::parse(&("[".repeat(65) + &"]".repeat(65))), Err(JsonProblem::TooDeep));
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
