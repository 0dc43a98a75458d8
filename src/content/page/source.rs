//! A text put together from files, that still knows which line of which file each byte is from.

use serde::{Deserialize, Serialize};

/// A line of a template's file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    pub file: String,
    /// From 1.
    pub line: usize,
}

#[derive(Clone, Debug, Default)]
pub struct Source {
    pub text: String,
    /// Where another file begins or goes on, in order.
    pieces: Vec<(usize, Place)>,
}

impl Source {
    /// Appends what stands on `line` of `file` and after.
    pub fn push(&mut self, text: &str, file: &str, line: usize) {
        self.pieces.push((self.text.len(), Place { file: file.to_owned(), line }));
        self.text.push_str(text);
    }

    /// Where the byte at `at` is from.
    #[must_use]
    pub fn place(&self, at: usize) -> Place {
        let before = self.pieces.partition_point(|(begins, _)| *begins <= at);
        let Some((begins, place)) = before.checked_sub(1).and_then(|piece| self.pieces.get(piece)) else {
            return Place { file: String::new(), line: 0 };
        };
        let upto = at.min(self.text.len());
        let lines = self.text.as_bytes()[*begins..upto].iter().filter(|byte| **byte == b'\n').count();
        Place { file: place.file.clone(), line: place.line + lines }
    }

    /// Where the `line` of the whole is from; a line that several files share is the last one's.
    #[must_use]
    pub fn place_of_line(&self, line: usize) -> Place {
        let ends = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').nth(line.saturating_sub(1));
        self.place(ends.map_or(self.text.len(), |(at, _)| at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_knows_its_line() {
        let mut source = Source::default();
        source.push("a\nb ", "one", 1);
        source.push("x\ny", "two", 1);
        source.push(" c\nd", "one", 2);
        let at = |needle: &str| {
            let place = source.place(source.text.find(needle).unwrap());
            (place.file, place.line)
        };
        assert_eq!(at("a"), ("one".to_owned(), 1));
        assert_eq!(at("b"), ("one".to_owned(), 2));
        assert_eq!(at("x"), ("two".to_owned(), 1));
        assert_eq!(at("y"), ("two".to_owned(), 2));
        assert_eq!(at("c"), ("one".to_owned(), 2));
        assert_eq!(at("d"), ("one".to_owned(), 3));
        assert_eq!(source.place_of_line(1), Place { file: "one".to_owned(), line: 1 });
        assert_eq!(source.place_of_line(4), Place { file: "one".to_owned(), line: 3 });
    }
}
