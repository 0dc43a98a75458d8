//! The caller's JSON as values of the template language. A number prints exactly as it was
//! written: one that the language's own numbers would print otherwise is kept as its text.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use minijinja::value::{DynObject, Object, ObjectRepr, Value, ValueKind};

use super::json::Json;

/// A number kept as written. Compares with its own kind by size, counts as true unless zero, and
/// is turned into a float by the filters `number`, `int`, `float`, `round` and `abs`. Arithmetic
/// on it is an error: the language would do it on floats, and money must not become one unasked.
#[derive(Debug)]
pub struct Kept {
    text: String,
    float: f64,
}

impl Kept {
    /// The nearest float; infinite where the number has none.
    #[must_use]
    pub const fn float(&self) -> f64 {
        self.float
    }
}

impl Object for Kept {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn is_true(self: &Arc<Self>) -> bool {
        self.float != 0.0
    }

    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<Ordering> {
        let other = other.downcast_ref::<Self>()?;
        // As the language orders its own floats: both zeroes are equal.
        Some(self.float.partial_cmp(&other.float).unwrap_or(Ordering::Equal))
    }

    fn render(self: &Arc<Self>, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

/// How numbers that the language would not print as written are given to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// As written: what goes out.
    Kept,
    /// Kept, but printed as a float is. With [`Numbers::Float`] it shows whether a template's
    /// choices depend on the difference.
    KeptPrintedAsFloat,
    Float,
}

/// The value, and whether a number in it had to be kept.
#[must_use]
pub fn from_json(json: &Json, numbers: Numbers) -> (Value, bool) {
    let mut kept = false;
    let value = convert(json, numbers, &mut kept);
    (value, kept)
}

fn convert(json: &Json, numbers: Numbers, kept: &mut bool) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(value) => Value::from(*value),
        Json::Text(text) => Value::from(text.as_str()),
        Json::List(items) => Value::from(items.iter().map(|one| convert(one, numbers, kept)).collect::<Vec<_>>()),
        Json::Object(members) => {
            // Sorted by name, so that a loop over an object has one order.
            let sorted: BTreeMap<String, Value> =
                members.iter().map(|(name, value)| (name.clone(), convert(value, numbers, kept))).collect();
            Value::from(sorted)
        }
        Json::Number(text) => exact_integer(text).unwrap_or_else(|| {
            *kept = true;
            let float: f64 = text.parse().unwrap_or(f64::NAN);
            match numbers {
                Numbers::Kept => Value::from_object(Kept { text: text.clone(), float }),
                Numbers::KeptPrintedAsFloat => Value::from_object(Kept { text: Value::from(float).to_string(), float }),
                Numbers::Float => Value::from(float),
            }
        }),
    }
}

/// An integer of the language, where that prints as `text` does.
fn exact_integer(text: &str) -> Option<Value> {
    let value = match text.parse::<i64>() {
        Ok(small) => Value::from(small),
        Err(_) => text.parse::<i128>().map(Value::from).or_else(|_| text.parse::<u128>().map(Value::from)).ok()?,
    };
    (value.to_string() == text).then_some(value)
}

/// The value as JSON, for the filter `tojson`, of about `most` bytes. A calculated infinity comes
/// out as such, which the reader of the whole payload then refuses.
///
/// # Errors
/// With what it is that JSON has no word for, or that it is too large.
pub fn to_json(value: &Value, most: usize) -> Result<Json, &'static str> {
    Writer { left: most }.json(value)
}

struct Writer {
    left: usize,
}

impl Writer {
    fn take(&mut self, bytes: usize) -> Result<(), &'static str> {
        self.left = self.left.checked_sub(bytes).ok_or("the value is too large for `tojson`")?;
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<String, &'static str> {
        self.take(text.len() + 2)?;
        Ok(text.to_owned())
    }

    fn json(&mut self, value: &Value) -> Result<Json, &'static str> {
        self.take(1)?;
        Ok(match value.kind() {
            ValueKind::None => Json::Null,
            ValueKind::Bool => Json::Bool(value.is_true()),
            ValueKind::Number => Json::Number(value.to_string()),
            ValueKind::String => Json::Text(self.text(value.as_str().unwrap_or_default())?),
            ValueKind::Seq | ValueKind::Iterable => {
                let items = value.try_iter().map_err(|_| "a value is no JSON")?;
                Json::List(items.map(|one| self.json(&one)).collect::<Result<_, _>>()?)
            }
            ValueKind::Map => {
                let names = value.try_iter().map_err(|_| "a value is no JSON")?;
                let member = |name: Value| {
                    let found = value.get_item(&name).map_err(|_| "a value is no JSON")?;
                    Ok((self.text(&name.to_string())?, self.json(&found)?))
                };
                Json::Object(names.map(member).collect::<Result<_, &'static str>>()?)
            }
            ValueKind::Plain => match value.downcast_object_ref::<Kept>() {
                Some(kept) => Json::Number(self.text(&kept.text)?),
                None => return Err("a value is no JSON"),
            },
            ValueKind::Undefined => return Err("a missing value is no JSON"),
            _ => return Err("a value is no JSON"),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn printed(text: &str) -> String {
        from_json(&Json::parse(text).unwrap(), Numbers::Kept).0.to_string()
    }

    #[test]
    fn case_68_numbers_print_as_written() {
        for text in [
            "0",
            "-0",
            "-0.0",
            "1.0",
            "1.50",
            "19.90",
            "1e400",
            "1E+2",
            "1e-7",
            "9007199254740993",
            "-9223372036854775809",
            "18446744073709551615",
            "340282366920938463463374607431768211456",
            "0.1234567890123456789012345678901234567890",
        ] {
            assert_eq!(printed(text), text);
        }
    }

    #[test]
    fn kept_numbers_order_by_size() {
        let list = Json::parse("[10.50, 9.75, 10.5, -0.0, 0.0]").unwrap();
        let (value, kept) = from_json(&list, Numbers::Kept);
        assert!(kept);
        let mut items: Vec<Value> = value.try_iter().unwrap().collect();
        assert_eq!(items[0], items[2]);
        assert_eq!(items[3], items[4]);
        assert!(!items[3].is_true() && items[0].is_true());
        items.sort();
        let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["-0.0", "0.0", "9.75", "10.50", "10.5"]);
    }

    proptest! {
        #[test]
        fn any_number_prints_as_written(text in "-?(0|[1-9][0-9]{0,45})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?") {
            prop_assert_eq!(printed(&text), text.clone());
            let list = Json::parse(&format!("[{text}]")).unwrap();
            prop_assert_eq!(to_json(&from_json(&list, Numbers::Kept).0, usize::MAX).unwrap(), list);
        }
    }
}
