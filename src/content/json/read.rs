//! Strict reading of a caller's JSON: numbers stay the text they came as, duplicate keys and deep
//! nesting are refused with their place. Numbers must never pass through a float: `2^53 + 1`
//! would come out as another order's number.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use thiserror::Error;

/// Most duplicate keys named in one answer.
const MOST_NAMED: usize = 100;

/// One value and the exact text it was written as.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    pub raw: &'a str,
    pub value: Value<'a>,
}

#[derive(Clone, Debug)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    /// As written.
    Number(&'a str),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    /// In the order written; no key twice.
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

/// Why a text is not JSON that can be taken. Says where, never what stands there.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum JsonProblem {
    /// Bytes that are not UTF-8, or text that is not JSON. Holds no part of the text.
    #[error("{detail}")]
    Syntax { detail: String },
    /// Nested deeper than is read.
    #[error("nested too deep, at {pointer}")]
    TooDeep { pointer: String },
    /// Keys that stand more than once in their object, by pointer.
    #[error("an object with the same name twice, at {}", pointers.join(", "))]
    Duplicates { pointers: Vec<String> },
}

/// Reads one JSON text of at most `deepest` arrays and objects within each other.
///
/// # Errors
/// [`JsonProblem`].
pub fn read(bytes: &[u8], deepest: usize) -> Result<Node<'_>, JsonProblem> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| JsonProblem::Syntax { detail: "the text is not UTF-8".into() })?;
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| syntax(&error))?;
    let mut reader = Reader { duplicates: Vec::new(), path: Vec::new(), deepest };
    let node = reader.node(raw.get())?;
    if reader.duplicates.is_empty() { Ok(node) } else { Err(JsonProblem::Duplicates { pointers: reader.duplicates }) }
}

fn syntax(error: &serde_json::Error) -> JsonProblem {
    // serde_json's own words name the place and what was expected, and quote nothing of the text.
    JsonProblem::Syntax { detail: format!("not valid JSON: {error}") }
}

struct Reader<'a> {
    duplicates: Vec<String>,
    path: Vec<Step<'a>>,
    deepest: usize,
}

enum Step<'a> {
    Key(Cow<'a, str>),
    Index(usize),
}

impl<'a> Reader<'a> {
    fn node(&mut self, raw: &'a str) -> Result<Node<'a>, JsonProblem> {
        let value = match raw.as_bytes().first() {
            Some(b'{') => self.object(raw)?,
            Some(b'[') => self.list(raw)?,
            Some(b'"') => Value::Text(serde_json::from_str::<Text>(raw).map_err(|error| syntax(&error))?.0),
            Some(b't') => Value::Bool(true),
            Some(b'f') => Value::Bool(false),
            Some(b'n') => Value::Null,
            _ => Value::Number(raw),
        };
        Ok(Node { raw, value })
    }

    fn enter(&self) -> Result<(), JsonProblem> {
        if self.path.len() < self.deepest { Ok(()) } else { Err(JsonProblem::TooDeep { pointer: self.pointer() }) }
    }

    fn object(&mut self, raw: &'a str) -> Result<Value<'a>, JsonProblem> {
        self.enter()?;
        let Members(members) = serde_json::from_str(raw).map_err(|error| syntax(&error))?;
        let mut seen = std::collections::HashSet::with_capacity(members.len());
        let mut read = Vec::with_capacity(members.len());
        for (key, member) in members {
            self.path.push(Step::Key(key.clone()));
            if !seen.insert(key.clone()) && self.duplicates.len() < MOST_NAMED {
                let pointer = self.pointer();
                self.duplicates.push(pointer);
            }
            let node = self.node(member.get())?;
            self.path.pop();
            read.push((key, node));
        }
        Ok(Value::Object(read))
    }

    fn list(&mut self, raw: &'a str) -> Result<Value<'a>, JsonProblem> {
        self.enter()?;
        let Items(items) = serde_json::from_str(raw).map_err(|error| syntax(&error))?;
        let mut read = Vec::with_capacity(items.len());
        for (at, item) in items.into_iter().enumerate() {
            self.path.push(Step::Index(at));
            read.push(self.node(item.get())?);
            self.path.pop();
        }
        Ok(Value::List(read))
    }

    fn pointer(&self) -> String {
        self.path.iter().fold(String::new(), |base, step| match step {
            Step::Key(key) => child(&base, key),
            Step::Index(at) => child(&base, &at.to_string()),
        })
    }
}

/// The JSON pointer of member `name` under `base`.
#[must_use]
pub fn child(base: &str, name: &str) -> String {
    format!("{base}/{}", name.replace('~', "~0").replace('/', "~1"))
}

impl<'a> Node<'a> {
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Node<'a>> {
        match &self.value {
            Value::Object(members) => members.iter().find(|(key, _)| key == name).map(|(_, node)| node),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::List(_) => None,
        }
    }

    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Object(_) => None,
        }
    }
}

struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Take;
        impl<'de> Visitor<'de> for Take {
            type Value = Members<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((key, member)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                    members.push((key.0, member));
                }
                Ok(Members(members))
            }
        }
        input.deserialize_map(Take)
    }
}

struct Items<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Take;
        impl<'de> Visitor<'de> for Take {
            type Value = Items<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Items<'de>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element::<&'de RawValue>()? {
                    items.push(item);
                }
                Ok(Items(items))
            }
        }
        input.deserialize_seq(Take)
    }
}

/// A string, borrowed where it holds no escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Take;
        impl<'de> Visitor<'de> for Take {
            type Value = Text<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        input.deserialize_str(Take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<Node<'_>, JsonProblem> {
        read(bytes, 32)
    }

    fn nested(depth: usize) -> String {
        format!("{}{}", "[".repeat(depth), "]".repeat(depth))
    }

    #[test]
    fn depth_is_bounded() {
        assert!(parse(nested(32).as_bytes()).is_ok());
        let problem = parse(nested(33).as_bytes()).unwrap_err();
        assert_eq!(problem, JsonProblem::TooDeep { pointer: "/0".repeat(32) });
        // As deep as a body may be long: no stack is used up on the way to the refusal.
        assert!(matches!(parse(nested(500_000).as_bytes()), Err(JsonProblem::TooDeep { .. })));
    }

    #[test]
    fn case_68_duplicate_keys_are_named() {
        let problem = parse(br#"{"a":{"x/y":1,"x/y":2},"b":1,"\u0062":2}"#).unwrap_err();
        assert_eq!(problem, JsonProblem::Duplicates { pointers: vec!["/a/x~1y".into(), "/b".into()] });
    }

    #[test]
    fn case_68_numbers_keep_their_text_and_no_others_exist() {
        for number in ["9007199254740993", "18446744073709551615", "-0.0", "1e400", "1.0", "1E+2"] {
            let text = format!("{{\"n\": {number} }}");
            let node = parse(text.as_bytes()).unwrap();
            assert_eq!(node.member("n").unwrap().raw, number);
        }
        for bad in ["NaN", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "0x10", "'a'", "{a:1}", "[1,]", ""] {
            assert!(matches!(parse(bad.as_bytes()), Err(JsonProblem::Syntax { .. })), "{bad}");
        }
    }

    #[test]
    fn strings_must_be_whole() {
        for bad in [&b"\"\\ud800\""[..], b"\"\xff\"", b"\"a\nb\"", b"\"open"] {
            assert!(matches!(parse(bad), Err(JsonProblem::Syntax { .. })), "{bad:?}");
        }
        assert_eq!(parse("\"\\u00e9\\uD83D\\uDE00\"".as_bytes()).unwrap().text(), Some("é😀"));
    }
}
