//! What output looks like: colour and width only where a terminal is, plain text otherwise.

use std::io::{IsTerminal, Write, stderr, stdout};

use serde::Serialize;

use super::exit::{Exit, Failure};

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Green,
    Yellow,
    Red,
    Faint,
    Bold,
}

/// How standard output may be written to.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub format: Format,
    pub colour: bool,
    /// Columns, where standard output is a terminal.
    pub width: Option<usize>,
}

impl Look {
    #[must_use]
    pub fn new(format: Format) -> Self {
        let terminal = stdout().is_terminal();
        let width = if terminal { columns() } else { None };
        Self { format, colour: terminal && !no_colour(), width }
    }

    #[must_use]
    pub fn paint(&self, colour: Colour, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Red => "31",
            Colour::Faint => "2",
            Colour::Bold => "1",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// A state's colour: green for done well, yellow for unclear, red for lost.
    #[must_use]
    pub fn state(&self, state: &str) -> String {
        match state {
            "accepted" | "delivered" => self.paint(Colour::Green, state),
            "unknown" | "parked" | "deferred" => self.paint(Colour::Yellow, state),
            "failed" | "bounced" | "expired" => self.paint(Colour::Red, state),
            _ => state.to_owned(),
        }
    }
}

/// Whether log lines on standard error may be coloured.
#[must_use]
pub fn colour_on_stderr() -> bool {
    stderr().is_terminal() && !no_colour()
}

/// <https://no-color.org>: set and not empty.
#[expect(clippy::disallowed_methods, reason = "a matter of the terminal, no setting of the service")]
fn no_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// Rows under a heading, columns as wide as their widest cell. On a terminal the last column is cut
/// where the line would wrap.
#[must_use]
pub fn table(look: &Look, heading: &[&str], rows: &[Vec<String>]) -> String {
    laid_in_columns(look, heading, rows, |cell, room, _| cut(cell, room))
}

/// Likewise, with the last column going on in lines of its own: for sentences that say what to do.
#[must_use]
pub fn table_of_sentences(look: &Look, heading: &[&str], rows: &[Vec<String>]) -> String {
    laid_in_columns(look, heading, rows, wrapped)
}

/// `last` gets a cell of the last column, its room where that is bounded, and where the column begins.
fn laid_in_columns(
    look: &Look,
    heading: &[&str],
    rows: &[Vec<String>],
    last: impl Fn(&str, Option<usize>, usize) -> String,
) -> String {
    let count = heading.len();
    let width_of = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        cells.map(|cell| seen_width(cell)).chain([heading[at].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width_of).collect();
    let before: usize = widths[..count - 1].iter().map(|width| width + 2).sum();
    let room = look.width.map(|width| width.saturating_sub(before).max(16));
    let mut text = String::new();
    let heading: Vec<String> = heading.iter().map(|name| look.paint(Colour::Faint, name)).collect();
    for row in std::iter::once(&heading).chain(rows) {
        for (at, cell) in row.iter().enumerate() {
            if at + 1 == count {
                text.push_str(&last(cell, room, before));
            } else {
                text.push_str(cell);
                text.extend(std::iter::repeat_n(' ', widths[at].saturating_sub(seen_width(cell)) + 2));
            }
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// Characters without colour codes. Wide characters count once: cells hold ids and English.
fn seen_width(cell: &str) -> usize {
    let mut seen = 0;
    let mut in_code = false;
    for letter in cell.chars() {
        match letter {
            '\u{1b}' => in_code = true,
            'm' if in_code => in_code = false,
            _ if in_code => {}
            _ => seen += 1,
        }
    }
    seen
}

fn cut(cell: &str, room: Option<usize>) -> String {
    match room {
        Some(room) if seen_width(cell) > room && !cell.contains('\u{1b}') => {
            cell.chars().take(room.saturating_sub(1)).chain(['…']).collect()
        }
        _ => cell.to_owned(),
    }
}

/// Breaks between words so that no line is wider than `room`; a longer word stands alone. Lines after the
/// first begin at `indent`.
#[must_use]
pub fn wrapped(text: &str, room: Option<usize>, indent: usize) -> String {
    let room = room.unwrap_or(usize::MAX);
    let mut lines: Vec<String> = Vec::new();
    for part in text.split('\n') {
        let mut line = String::new();
        for word in part.split(' ') {
            if !line.is_empty() && seen_width(&line) + 1 + seen_width(word) > room {
                lines.push(std::mem::take(&mut line));
            } else if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.join(&format!("\n{}", " ".repeat(indent)))
}

/// Prints, and fails where nobody reads any more.
///
/// # Errors
/// Standard output is closed.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Failure::new(Exit::Failed, format!("standard output: {error}")))
}

/// Prints one JSON document and a line end: laid out on a terminal, on one line for programs.
///
/// # Errors
/// Standard output is closed, or the value has no JSON form.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    print_json_text(&text)
}

/// Likewise, of JSON text: every number keeps its digits.
///
/// # Errors
/// Standard output is closed.
pub fn print_json_text(text: &str) -> Result<(), Failure> {
    print(&format!("{}\n", laid_out(text, stdout().is_terminal())))
}

/// JSON text with the white space between its tokens made anew.
fn laid_out(text: &str, lines: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut depth: usize = 0;
    let mut letters = text.chars().filter(|letter| !letter.is_control()).peekable();
    let line = |out: &mut String, depth: usize| {
        if lines {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth));
        }
    };
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                out.push('"');
                while let Some(inner) = letters.next() {
                    out.push(inner);
                    match inner {
                        '"' => break,
                        '\\' => out.extend(letters.next()),
                        _ => {}
                    }
                }
            }
            '{' | '[' => {
                out.push(letter);
                depth += 1;
                while letters.next_if_eq(&' ').is_some() {}
                if !matches!(letters.peek(), Some('}' | ']')) {
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if !out.ends_with(['{', '[']) {
                    line(&mut out, depth);
                }
                out.push(letter);
            }
            ',' => {
                out.push(',');
                line(&mut out, depth);
            }
            ':' if lines => out.push_str(": "),
            ' ' => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Look = Look { format: Format::Table, colour: false, width: None };

    #[test]
    fn columns_line_up_and_the_last_is_cut_to_the_terminal() {
        let rows = vec![vec!["a".into(), "short".into()], vec!["long one".into(), "x".repeat(40)]];
        assert_eq!(
            table(&PLAIN, &["ID", "WHY"], &rows),
            format!("ID        WHY\na         short\nlong one  {}\n", "x".repeat(40))
        );
        let narrow = Look { width: Some(30), ..PLAIN };
        let text = table(&narrow, &["ID", "WHY"], &rows);
        assert!(text.lines().all(|line| line.chars().count() <= 30) && text.contains('…'), "{text}");
    }

    #[test]
    fn sentences_go_on_below_where_they_began() {
        let rows = vec![vec!["ok".into(), "one two three\nfour".into()]];
        let narrow = Look { width: Some(22), ..PLAIN };
        let text = table_of_sentences(&narrow, &["VERDICT", "WHAT"], &rows);
        assert_eq!(text, "VERDICT  WHAT\nok       one two three\n         four\n");
        let narrower = table_of_sentences(&Look { width: Some(18), ..PLAIN }, &["A", "WHAT"], &rows);
        assert_eq!(narrower, "A   WHAT\nok  one two three\n    four\n");
        let long = vec![vec!["ok".into(), "a sentence of quite some length".into()]];
        let text = table_of_sentences(&Look { width: Some(20), ..PLAIN }, &["A", "WHAT"], &long);
        assert_eq!(text, "A   WHAT\nok  a sentence of\n    quite some\n    length\n");
        assert_eq!(table_of_sentences(&PLAIN, &["A", "WHAT"], &long).lines().count(), 2, "no terminal, no width");
    }

    #[test]
    fn json_is_laid_out_without_touching_a_digit() {
        let text = "{\"a\": [1e400, {}, [ ], \"x, {\\\"y: z\"],\n \"b\":18446744073709551616}";
        assert_eq!(laid_out(text, false), "{\"a\":[1e400,{},[],\"x, {\\\"y: z\"],\"b\":18446744073709551616}");
        assert_eq!(
            laid_out(text, true),
            "{\n  \"a\": [\n    1e400,\n    {},\n    [],\n    \"x, {\\\"y: z\"\n  ],\n  \"b\": 18446744073709551616\n}"
        );
    }

    #[test]
    fn colour_does_not_widen_a_column() {
        let bright = Look { colour: true, ..PLAIN };
        let rows = vec![vec![bright.state("accepted"), "x".into()], vec!["queued".into(), "y".into()]];
        let text = table(&bright, &["STATE", "N"], &rows);
        assert!(text.contains("\u{1b}[32maccepted\u{1b}[0m  x") && text.contains("queued    y"), "{text}");
        assert_eq!(PLAIN.state("failed"), "failed");
    }
}
