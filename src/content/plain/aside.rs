//! Words that are wider than a line, links above all: cut in two they lead nowhere. They stand aside while a text is laid
//! out, each with a short mark in its place.

use html2text::config;

use super::links::Plain;

/// Around the number of a word. A character that nobody has a use for (Unicode, private use, plane 16).
const MARK: char = '\u{10fffc}';
/// With its brackets and what stands before a link it fits a line.
const LONGEST: usize = 60;

#[derive(Default)]
pub(super) struct Aside {
    /// As they stand in HTML.
    words: Vec<String>,
}

/// HTML in which nothing passes for a mark.
pub(super) fn unmarked(html: &str) -> String {
    html.replace(MARK, "\u{fffd}")
}

impl Aside {
    /// The same with marks for what is too long. Of letters that are not ASCII none is: there lines may break anywhere.
    pub fn put(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for piece in text.split_inclusive(char::is_whitespace) {
            let word = piece.trim_end();
            if word.len() > LONGEST && word.is_ascii() {
                out.push_str(&format!("{MARK}{}{MARK}", self.words.len()));
                self.words.push(word.to_owned());
                out.push_str(&piece[word.len()..]);
            } else {
                out.push_str(piece);
            }
        }
        out
    }

    /// The text with its words, as a reader sees them.
    pub fn back(&self, text: &str) -> String {
        if self.words.is_empty() {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        for (at, part) in text.split(MARK).enumerate() {
            let word = if at % 2 == 1 { part.parse::<usize>().ok().and_then(|at| self.words.get(at)) } else { None };
            match word {
                Some(word) => out.push_str(&read(word)),
                None => out.push_str(part),
            }
        }
        out
    }
}

/// Without HTML's escapes; on one line, however long it is.
fn read(word: &str) -> String {
    let wide = config::with_decorator(Plain::default()).no_link_wrapping().allow_width_overflow();
    let read = wide.string_from_read(word.as_bytes(), word.len() + 8);
    read.map_or_else(|_| word.to_owned(), |read| read.trim().to_owned())
}
