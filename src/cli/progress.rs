//! How far a long command has come, on standard error: a bar where that is a terminal, now and then a line where it is
//! not.

use std::io::{IsTerminal, Write as _, stderr};

/// Where there is no terminal to draw on there is a line for every so many.
const A_LINE_FOR: usize = 1_000;
const BAR: usize = 30;

pub struct Progress {
    /// What is counted, in the plural.
    what: &'static str,
    /// How many there are, where that is known.
    all: Option<usize>,
    drawn: Option<usize>,
    lines: usize,
    on_terminal: bool,
}

impl Progress {
    #[must_use]
    pub fn of(what: &'static str, all: Option<usize>) -> Self {
        Self { what, all, drawn: None, lines: 0, on_terminal: stderr().is_terminal() }
    }

    /// `place` says where to go on if this were the end: on a line of its own it outlives whoever printed it.
    pub fn step(&mut self, done: usize, place: Option<&str>) {
        if !self.on_terminal {
            if done / A_LINE_FOR > self.lines && self.all.is_none_or(|all| done < all) {
                self.lines = done / A_LINE_FOR;
                eprintln!("{}{}", counted(done, self.all, self.what), place.unwrap_or_default());
            }
            return;
        }
        let seen = self.all.map_or(done, |all| done * 100 / all.max(1));
        if self.drawn != Some(seen) {
            self.drawn = Some(seen);
            draw(&self.all.map_or_else(|| counted(done, None, self.what), |all| bar(done, all, self.what)));
        }
    }

    /// Leaves nothing of the bar behind.
    pub fn end(&mut self) {
        if self.drawn.take().is_some() {
            draw("");
        }
    }
}

fn draw(text: &str) {
    // Whoever closed standard error wants to see nothing.
    drop(write!(stderr(), "\r\u{1b}[2K{text}"));
}

fn counted(done: usize, all: Option<usize>, what: &str) -> String {
    let of = all.map(|all| format!(" of {all}")).unwrap_or_default();
    format!("{done}{of} {what}")
}

fn bar(done: usize, all: usize, what: &str) -> String {
    let full = (BAR * done).checked_div(all).unwrap_or(BAR).min(BAR);
    format!("[{}{}] {}", "#".repeat(full), "·".repeat(BAR - full), counted(done, Some(all), what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_as_long_at_every_moment() {
        assert_eq!(bar(0, 3, "rows"), format!("[{}] 0 of 3 rows", "·".repeat(30)));
        assert_eq!(bar(1, 3, "rows"), format!("[{}{}] 1 of 3 rows", "#".repeat(10), "·".repeat(20)));
        assert_eq!(bar(3, 3, "rows"), format!("[{}] 3 of 3 rows", "#".repeat(30)));
        // More came in since they were counted.
        assert_eq!(bar(4, 3, "rows"), format!("[{}] 4 of 3 rows", "#".repeat(30)));
        assert_eq!(counted(7, None, "rows"), "7 rows");
    }
}
