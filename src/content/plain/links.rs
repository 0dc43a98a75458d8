//! How a link, a list and a quotation are written in plain text.

use html2text::render::{TaggedLine, TextDecorator};

/// Links as `words <address>`; no markdown signs, as this is not for a markdown reader.
#[derive(Clone, Debug, Default)]
pub(super) struct Plain {
    /// Addresses of the links that are open.
    open: Vec<String>,
}

const fn nothing() -> (String, ()) {
    (String::new(), ())
}

impl TextDecorator for Plain {
    type Annotation = ();

    fn decorate_link_start(&mut self, url: &str) -> (String, ()) {
        self.open.push(url.to_owned());
        nothing()
    }
    fn decorate_link_end(&mut self) -> String {
        match self.open.pop() {
            Some(url) if !url.is_empty() && !url.starts_with('#') => format!(" <{url}>"),
            _ => String::new(),
        }
    }
    fn decorate_em_start(&self) -> (String, ()) {
        nothing()
    }
    fn decorate_em_end(&self) -> String {
        String::new()
    }
    fn decorate_strong_start(&self) -> (String, ()) {
        nothing()
    }
    fn decorate_strong_end(&self) -> String {
        String::new()
    }
    fn decorate_strikeout_start(&self) -> (String, ()) {
        nothing()
    }
    fn decorate_strikeout_end(&self) -> String {
        String::new()
    }
    fn decorate_code_start(&self) -> (String, ()) {
        nothing()
    }
    fn decorate_code_end(&self) -> String {
        String::new()
    }
    fn decorate_preformat_first(&self) {}
    fn decorate_preformat_cont(&self) {}
    fn decorate_image(&mut self, _src: &str, words: &str) -> (String, ()) {
        (words.to_owned(), ())
    }
    fn header_prefix(&self, _level: usize) -> String {
        String::new()
    }
    fn quote_prefix(&self) -> String {
        "> ".to_owned()
    }
    fn unordered_item_prefix(&self) -> String {
        "- ".to_owned()
    }
    fn ordered_item_prefix(&self, number: i64) -> String {
        format!("{number}. ")
    }
    fn decorate_superscript_start(&self) -> (String, ()) {
        nothing()
    }
    fn decorate_superscript_end(&self) -> String {
        String::new()
    }
    fn make_subblock_decorator(&self) -> Self {
        Self::default()
    }
    fn finalise(&mut self, _urls: Vec<String>) -> Vec<TaggedLine<()>> {
        Vec::new()
    }
}
