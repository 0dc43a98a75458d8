//! What scripts answer, taken apart.

use redis::Value;

use super::codec::{Result, corrupt};

pub fn list(value: Value) -> Result<Vec<Value>> {
    match value {
        Value::Array(items) => Ok(items),
        _ => Err(corrupt("an answer")),
    }
}

/// Exactly so many.
pub fn parts<const N: usize>(value: Value) -> Result<[Value; N]> {
    list(value)?.try_into().map_err(|_| corrupt("an answer"))
}

pub fn bytes(value: Value) -> Result<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        _ => Err(corrupt("an answer")),
    }
}

pub fn maybe_bytes(value: Value) -> Result<Option<Vec<u8>>> {
    match value {
        Value::BulkString(bytes) => Ok(Some(bytes)),
        // Lua's nil and false.
        Value::Nil | Value::Boolean(false) => Ok(None),
        _ => Err(corrupt("an answer")),
    }
}

pub fn number(value: &Value) -> Result<i64> {
    match value {
        Value::Int(number) => Ok(*number),
        Value::BulkString(bytes) => {
            std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()).ok_or_else(|| corrupt("a number"))
        }
        _ => Err(corrupt("a number")),
    }
}

/// A score as Redis writes it; nothing for an empty text.
pub fn score(value: &Value) -> Result<Option<i64>> {
    match value {
        Value::BulkString(bytes) if bytes.is_empty() => Ok(None),
        other => number(other).map(Some),
    }
}

pub fn text(value: Value) -> Result<String> {
    String::from_utf8(bytes(value)?).map_err(|_| corrupt("a text"))
}
