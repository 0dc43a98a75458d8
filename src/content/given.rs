//! Filters of Jinja's that would take what is missing for nothing, or say no name: asked first, so that a missing
//! variable is the same error before every filter.

use minijinja::value::{Kwargs, Rest, StringInput, Value, ValueOrKwargs, from_args};
use minijinja::{Environment, Error, State, filters};

/// The engine counts so many bytes as one step.
const BYTES: u64 = 64;

/// Refuses a value that is not there as printing it would, with its name.
///
/// # Errors
/// Where the value is missing.
pub fn is_given(state: &State, value: &Value) -> Result<(), Error> {
    if value.is_undefined() { StringInput::new(state, value).map(drop) } else { Ok(()) }
}

/// Puts the question before them.
pub fn add(language: &mut Environment<'static>) {
    for name in ["e", "escape"] {
        language.add_filter(name, |state: &mut State, value: Value| {
            is_given(state, &value)?;
            filters::escape(state, &value)
        });
    }
    language.add_filter("list", |state: &State, value: Value| {
        is_given(state, &value)?;
        filters::list(state, value)
    });
    language.add_filter("max", |state: &State, value: Value, options: Kwargs| {
        is_given(state, &value)?;
        filters::max(state, value, options)
    });
    language.add_filter("min", |state: &State, value: Value, options: Kwargs| {
        is_given(state, &value)?;
        filters::min(state, value, options)
    });
    language.add_filter("sort", |state: &State, value: Value, options: Kwargs| {
        is_given(state, &value)?;
        filters::sort(state, value, options)
    });
    language.add_filter("split", |state: &State, value: Value, rest: Rest<Value>| {
        is_given(state, &value)?;
        let (by, most) = from_args(&rest)?;
        filters::split(&value, by, most)
    });
    language.add_filter("lines", |state: &State, value: Value| {
        is_given(state, &value)?;
        filters::lines(&value)
    });
    language.add_filter("format", |state: &mut State, value: Value, rest: Rest<ValueOrKwargs>| {
        is_given(state, &value)?;
        filters::format(state, &value, rest)
    });
    language.add_filter("dictsort", dictsort);
    language.add_filter("indent", indent);
}

/// The engine's own counts its work; this is handed none to count with.
fn dictsort(state: &State, value: Value, options: Kwargs) -> Result<Value, Error> {
    is_given(state, &value)?;
    let many = value.len().unwrap_or_default();
    state.consume_fuel(u64::from(many.checked_ilog2().unwrap_or_default() + 2).saturating_mul(many as u64))?;
    filters::dictsort(&value, options)
}

/// Likewise.
fn indent(state: &State, value: Value, rest: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    is_given(state, &value)?;
    let rest: Vec<Value> = rest.0.into_iter().map(ValueOrKwargs::into_value).collect();
    let (width, first, blank, options): (Option<usize>, Option<bool>, Option<bool>, Kwargs) = from_args(&rest)?;
    let text = StringInput::new(state, &value)?;
    let wide = width.or(options.get::<Option<usize>>("width")?).unwrap_or(4) as u64;
    let more = wide.saturating_mul(text.as_str().lines().count() as u64);
    state.consume_fuel(more.saturating_add(text.as_str().len() as u64) / BYTES)?;
    filters::indent(text, width, first, blank, options)
}
