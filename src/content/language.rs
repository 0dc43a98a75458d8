//! The template language: Jinja as minijinja speaks it, without anything that could give two
//! answers to the same data. No clock, no randomness, no counter, no access to files; a missing
//! value is an error; work and output are bounded. [`grammar`](super::grammar) is what a template
//! may not say besides.

use std::fmt::{self, Write as _};
use std::io;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, filters};

use super::given::{self, is_given};
use super::json::Escaped;
use super::problem::{RenderFault, RenderProblem};
use super::value::{Kept, to_json};

/// Work per part: one unit is an instruction, or 64 bytes read or written. A digest of a thousand
/// entries takes a quarter of it; all of it, some tens of milliseconds.
const FUEL: u64 = 200_000;
/// What `tojson` makes of one value, in bytes.
const LARGEST_JSON: usize = 2 * 1024 * 1024;
/// Steps that files, macros and loops may lead into each other: a macro counts four, an include ten.
const NESTING: usize = 40;
const JSON: AutoEscape = AutoEscape::Custom(std::borrow::Cow::Borrowed("json"));

/// A message of ours inside an engine's error: these hold no value, while the engine's own words
/// may repeat one.
#[derive(Debug)]
struct Ours(&'static str);

impl fmt::Display for Ours {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

impl std::error::Error for Ours {}

pub(super) fn ours(message: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, "").with_source(Ours(message))
}

/// How tags are written: a line that holds only one leaves no line behind.
pub(super) fn syntax() -> SyntaxConfig {
    SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().unwrap_or_else(|_| SyntaxConfig::default())
}

/// An empty environment of the language.
#[must_use]
pub fn environment() -> Environment<'static> {
    let mut language = Environment::new();
    language.set_syntax(syntax());
    // Only so that errors can say which variable is missing; its state dump is never printed.
    language.set_debug(true);
    language.set_undefined_behavior(UndefinedBehavior::Strict);
    language.set_fuel(Some(FUEL));
    language.set_recursion_limit(NESTING);
    language.set_auto_escape_callback(escaping);
    language.set_formatter(write_value);
    // They print the whole context, and with it every value.
    language.remove_global("debug");
    language.remove_filter("pprint");
    // What a loop leaves to its next turn, and lists of lists, can be built without end.
    for builds in ["namespace", "dict"] {
        language.remove_global(builds);
    }
    for builds in ["batch", "chain", "groupby", "slice", "zip"] {
        language.remove_filter(builds);
    }
    for asks in ["filter", "test"] {
        language.remove_test(asks);
    }
    language.add_filter("number", number);
    language.add_filter("int", |state: &State, value: Value, rest: Option<Value>, options: Kwargs| {
        filters::int(state, &plain(value), rest, None, options)
    });
    language.add_filter("float", |state: &State, value: Value, rest: Option<Value>, options: Kwargs| {
        filters::float(state, &plain(value), rest, options)
    });
    language.add_filter(
        "round",
        |state: &State, value: Value, precision: Option<i32>, method: Option<&str>, options: Kwargs| {
            is_given(state, &value)?;
            filters::round(plain(value), precision, method, options)
        },
    );
    language.add_filter("abs", |state: &State, value: Value| {
        is_given(state, &value)?;
        filters::abs(plain(value))
    });
    given::add(&mut language);
    super::regional::add(&mut language);
    language.add_filter("tojson", json);
    language.add_filter("link", link);
    language.add_test("number", |value: &Value| {
        value.kind() == ValueKind::Number || value.downcast_object_ref::<Kept>().is_some()
    });
    language
}

/// By the file's name, so that an included file keeps its own rule.
fn escaping(file: &str) -> AutoEscape {
    match file.rsplit('.').next() {
        Some("html" | "mjml") => AutoEscape::Html,
        Some("json") => JSON,
        _ => AutoEscape::None,
    }
}

fn write_value(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    let raw = value.is_safe() || *state.auto_escape() == AutoEscape::None;
    let in_json = *state.auto_escape() == JSON;
    match value.kind() {
        ValueKind::Bool => out.write_str(if value.is_true() { "true" } else { "false" })?,
        ValueKind::Number => write!(out, "{value}")?,
        ValueKind::None if in_json => out.write_str("null")?,
        ValueKind::None => return Err(ours("null cannot be printed; give it a word with `default`, or ask `is none`")),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            if raw {
                out.write_str(text)?;
            } else if in_json {
                write!(out, "{}", Escaped(text))?;
            } else {
                write!(out, "{}", HtmlEscaped(text))?;
            }
        }
        // What an `if` without `else` leaves behind.
        ValueKind::Undefined => {}
        _ if value.downcast_object_ref::<Kept>().is_some() => write!(out, "{value}")?,
        _ => return Err(ours("a list or an object cannot be printed; use a loop, `join` or `tojson`")),
    }
    Ok(())
}

/// The five characters that mean something in HTML text or in a quoted attribute.
struct HtmlEscaped<'a>(&'a str);

impl fmt::Display for HtmlEscaped<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut from = 0;
        for (at, byte) in self.0.bytes().enumerate() {
            let entity = match byte {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                b'\'' => "&#39;",
                _ => continue,
            };
            out.write_str(&self.0[from..at])?;
            out.write_str(entity)?;
            from = at + 1;
        }
        out.write_str(&self.0[from..])
    }
}

/// A kept number as the language's own float; anything else as it is.
fn plain(value: Value) -> Value {
    value.downcast_object_ref::<Kept>().map_or_else(|| value.clone(), |kept| Value::from(kept.float()))
}

/// `{{ price|number * 2 }}`: to calculate or compare with a number that may have a fraction.
fn number(state: &State, value: Value) -> Result<Value, Error> {
    is_given(state, &value)?;
    let number = plain(value);
    match f64::try_from(number.clone()) {
        Ok(float) if number.kind() == ValueKind::Number && !float.is_finite() => {
            Err(ours("the number is too large to calculate with"))
        }
        _ if number.kind() == ValueKind::Number => Ok(number),
        _ => Err(ours("`number` is for numbers")),
    }
}

/// Any value as JSON, whole.
fn json(state: &State, value: &Value) -> Result<Value, Error> {
    is_given(state, value)?;
    let text = to_json(value, LARGEST_JSON).map_err(ours)?.to_string();
    Ok(if *state.auto_escape() == JSON { Value::from_safe_string(text) } else { Value::from(text) })
}

/// Lets an address through that a person may follow, and nothing that a mail program would run.
fn link(state: &State, value: &Value) -> Result<Value, Error> {
    is_given(state, value)?;
    let text = value.as_str().ok_or_else(|| ours("`link` is for texts"))?;
    let scheme = text.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    let known = matches!(scheme.as_deref(), Some("https" | "http" | "mailto" | "tel"));
    if !known || text.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return Err(ours("not a link that begins with https:, http:, mailto: or tel:"));
    }
    Ok(value.clone())
}

/// Renders one file, at most `limit` bytes of it.
///
/// # Errors
/// Where the data does not fit the template, or the result its limit.
pub fn render(
    language: &Environment<'_>,
    template: &str,
    file: &str,
    context: &Value,
    limit: usize,
) -> Result<String, RenderProblem> {
    let told = |failed: &Error| problem(template, file, failed);
    let compiled = language.get_template(file).map_err(|failed| told(&failed))?;
    let mut out = Bounded { bytes: Vec::new(), limit };
    compiled.render_captured_to(context.clone(), &mut out).map_err(|failed| told(&failed))?;
    String::from_utf8(out.bytes).map_err(|_| RenderProblem::new(RenderFault::Failed, "the result is not UTF-8"))
}

struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + more.len() > self.limit {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The engine's error in our words. Of the engine's own only the template's text is taken: its
/// details may repeat values.
fn problem(template: &str, file: &str, failed: &Error) -> RenderProblem {
    // An error in an included file is the source of the including one's. One without a line is a filter's word for its
    // own, which stands where that does.
    let mut deepest = failed;
    while let Some(inner) = std::error::Error::source(deepest).and_then(|source| source.downcast_ref::<Error>())
        && inner.line().is_some()
    {
        deepest = inner;
    }
    let name = deepest.name().unwrap_or(file);
    let path = if name.starts_with(super::files::SHARED) { name.to_owned() } else { format!("{template}/{name}") };
    let expression = expression(deepest).unwrap_or_default();
    let own = std::error::Error::source(deepest).and_then(|source| source.downcast_ref::<Ours>()).map(|own| own.0);
    let mut built = match deepest.kind() {
        ErrorKind::UndefinedError => {
            let named =
                deepest.detail().and_then(|detail| detail.strip_prefix('`')).and_then(|rest| rest.split('`').next());
            missing(named.filter(|name| !name.contains("(...)")).unwrap_or(expression))
        }
        _ if undefined_within(deepest).is_some() => missing(undefined_within(deepest).unwrap_or_default()),
        ErrorKind::OutOfFuel => {
            RenderProblem::new(RenderFault::TooLarge, "the template does too much work for one message")
        }
        ErrorKind::WriteFailure => RenderProblem::new(RenderFault::TooLarge, "the result is larger than its limit"),
        ErrorKind::InvalidOperation if deepest.detail() == Some("recursion limit exceeded") => RenderProblem::new(
            RenderFault::TooLarge,
            format!("files, macros or blocks call each other more than {NESTING} steps deep, or without end"),
        ),
        kind => {
            let what = own.map_or_else(|| kind_words(kind), ToOwned::to_owned);
            let place = if expression.is_empty() { String::new() } else { format!(" (`{}`)", one_line(expression)) };
            let mut built = RenderProblem::new(RenderFault::Failed, format!("{what}{place}"));
            built.pointer = pointer(expression.split('|').next().unwrap_or_default().trim());
            built
        }
    };
    built.file = path;
    built.line = deepest.line().unwrap_or(0);
    built
}

fn missing(name: &str) -> RenderProblem {
    let mut built = RenderProblem::new(RenderFault::MissingVariable, format!("`{name}` is not in the data"));
    built.pointer = pointer(name);
    built
}

/// What is missing, where an operation failed for it: the engine ends its words with the name. They may repeat a value
/// before it, so that only what stands in the template is taken for a name.
fn undefined_within(failed: &Error) -> Option<&str> {
    let (before, _) = failed.detail()?.rsplit_once("` is undefined")?;
    let (_, name) = before.rsplit_once('`')?;
    let stands = failed.template_source().is_some_and(|source| source.contains(name));
    (stands && !name.is_empty()).then_some(name)
}

/// The template's text that failed; for a filter the whole of its tag, so that what it was put to
/// is seen.
fn expression(failed: &Error) -> Option<&str> {
    let (source, range) = (failed.template_source()?, failed.range()?);
    let before = source.get(..range.start)?;
    if !before.trim_end().ends_with('|') {
        return source.get(range).map(str::trim);
    }
    let start = before.rfind(['{', '%', '('])? + 1;
    let end = range.end + source.get(range.end..)?.find(['}', '%', ')', '|'])?;
    source.get(start..end).map(str::trim)
}

fn kind_words(kind: ErrorKind) -> String {
    match kind {
        ErrorKind::InvalidOperation => {
            "these values cannot be used so; calculate and compare with `|number` where one has a fraction".to_owned()
        }
        known => known.to_string(),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(120).collect()
}

/// `order.items[0].name` as `/order/items/0/name`; nothing for what is no plain path.
#[must_use]
pub fn pointer(expression: &str) -> Option<String> {
    // A literal is nothing of the caller's.
    if !expression.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return None;
    }
    let mut path = String::new();
    for step in expression.replace('[', ".").replace(']', "").split('.') {
        let step = step.trim_matches(|quote| quote == '"' || quote == '\'');
        if step.is_empty() || !step.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-') {
            return None;
        }
        write!(path, "/{step}").ok()?;
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::super::grammar::{FILTERS, TESTS};
    use super::*;

    #[test]
    fn the_language_has_every_filter_and_test_that_its_grammar_lets_through() {
        let known = |name: &str, what: &str| {
            let mut asking = environment();
            asking.add_test("filter", minijinja::tests::is_filter);
            asking.add_test("test", minijinja::tests::is_test);
            let source = format!("{name:?} is {what}");
            let asked = asking.compile_expression(&source).unwrap().eval(());
            asked.unwrap().is_true()
        };
        for name in FILTERS {
            assert!(known(name, "filter"), "{name}");
        }
        for name in TESTS {
            assert!(known(name, "test"), "{name}");
        }
        for gone in ["pprint", "batch", "chain", "groupby", "slice", "zip"] {
            assert!(!known(gone, "filter") && !FILTERS.contains(&gone), "{gone}");
        }
    }
}
