//! A JSON object whose values stay the bytes that they came in: a number keeps its digits, and text
//! that is not ASCII is neither escaped nor unescaped on its way through.

use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Members in the order in which they came. Google takes names in either spelling (`fcm_options`,
/// `fcmOptions`), so that whoever asks for one names both.
#[derive(Default)]
pub(super) struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    /// # Errors
    /// Where `text` is no object, or has a name twice.
    pub(super) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The first member with one of `names`.
    pub(super) fn get(&self, names: &[&str]) -> Option<&RawValue> {
        self.0.iter().find(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| &**value)
    }

    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.get(names).is_some()
    }

    /// The member as an object; an empty one where it is absent or null.
    ///
    /// # Errors
    /// Where it is something else.
    pub(super) fn object(&self, names: &[&str]) -> Result<Self, serde_json::Error> {
        match self.get(names) {
            Some(value) if value.get() != "null" => Self::parse(value.get()),
            Some(_) | None => Ok(Self::default()),
        }
    }

    /// In the place and the spelling of the member that it replaces, else as `names[0]` at the end.
    pub(super) fn put(&mut self, names: &[&str], value: &(impl Serialize + ?Sized)) -> Result<(), serde_json::Error> {
        let value = serde_json::value::to_raw_value(value)?;
        match self.0.iter_mut().find(|(name, _)| names.contains(&name.as_str())) {
            Some((_, old)) => *old = value,
            None => self.0.push((names[0].to_owned(), value)),
        }
        Ok(())
    }

    /// Whether a member has this name, in capitals or not: names of HTTP headers.
    pub(super) fn has_header(&self, header: &str) -> bool {
        self.0.iter().any(|(name, _)| name.eq_ignore_ascii_case(header))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of keys and values, without what only JSON needs (quotes, commas, escapes).
    pub(super) fn weight(&self) -> usize {
        let value = |raw: &RawValue| match serde_json::from_str::<String>(raw.get()) {
            Ok(text) => text.len(),
            Err(_) => raw.get().len(),
        };
        self.0.iter().map(|(name, raw)| name.len() + value(raw)).sum()
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_map(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Fields;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields: Vec<(String, Box<RawValue>)> = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
            // FCM takes the last of two, whoever checked the message may have looked at the first.
            if fields.iter().any(|(known, _)| *known == name) {
                return Err(A::Error::custom("a name stands there twice"));
            }
            fields.push((name, value));
        }
        Ok(Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_touched_keeps_its_bytes() {
        let text = r#"{"n":18446744073709551616.50e+3,"z":-0,"t":"你 \u4f60","a":{"b":[1.0,null]}}"#;
        assert_eq!(serde_json::to_string(&Fields::parse(text).unwrap()).unwrap(), text);
    }

    #[test]
    fn a_member_is_replaced_in_its_place_and_spelling() {
        let mut fields = Fields::parse(r#"{"aB":1,"c":2}"#).unwrap();
        fields.put(&["a_b", "aB"], "x").unwrap();
        fields.put(&["d_e", "dE"], &7).unwrap();
        assert_eq!(serde_json::to_string(&fields).unwrap(), r#"{"aB":"x","c":2,"d_e":7}"#);
    }

    #[test]
    fn only_objects_without_repeated_names() {
        for bad in ["", "[]", "null", r#"{"a":1,"a":2}"#, r#"{"a":1} x"#, r#"{"a":}"#] {
            assert!(Fields::parse(bad).is_err(), "{bad}");
        }
        let fields = Fields::parse(r#"{"a":null,"b":{"c":1},"d":3}"#).unwrap();
        assert!(fields.object(&["a"]).unwrap().is_empty() && fields.object(&["x"]).unwrap().is_empty());
        assert!(fields.object(&["b"]).unwrap().has(&["c"]) && fields.object(&["d"]).is_err());
    }

    #[test]
    fn weight_is_keys_and_values() {
        assert_eq!(Fields::parse(r#"{"ab":"\"你\u4f60","n":123}"#).unwrap().weight(), 2 + 7 + 1 + 3);
    }
}
