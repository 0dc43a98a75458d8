//! Next runs on a line of time.

use jiff::{Timestamp, civil::DateTime};

use super::far;
use crate::cli::terminal::{Colour, Look};

const NARROWEST: usize = 32;
const WIDEST: usize = 72;
/// Before the line.
const NOW: &str = "now ";

/// A line from now to the last of `runs` (at least one), a mark for each, and below it when that is, with what clocks
/// show.
pub(super) fn drawn(look: &Look, runs: &[(Timestamp, String)], now: Timestamp) -> String {
    let room = look.width.unwrap_or(WIDEST).clamp(NARROWEST, WIDEST) - NOW.len();
    let mut line: Vec<char> = vec!['─'; room];
    let mut numbers: Vec<char> = vec![' '; room];
    for (number, at) in ('1'..='9').zip(places(runs, now, room)) {
        line[at] = '●';
        numbers[at] = number;
    }
    let line: String = line.into_iter().collect();
    let numbers: String = numbers.into_iter().collect();
    let indent = " ".repeat(NOW.len());
    let mut text = format!("{}{line}\n{indent}{}\n", look.paint(Colour::Faint, NOW), numbers.trim_end());
    for (number, (at, local)) in (1..).zip(runs) {
        text.push_str(&format!("{number}  {}  {}\n", with_day(local), far(now, *at)));
    }
    text
}

/// Where on the line each run stands: by how far off it is, each behind the one before.
fn places(runs: &[(Timestamp, String)], now: Timestamp, room: usize) -> Vec<usize> {
    let off = |at: Timestamp| u128::try_from(at.duration_since(now).as_millis()).unwrap_or(0);
    let longest = runs.last().map_or(1, |(at, _)| off(*at)).max(1);
    let mut places: Vec<usize> = Vec::with_capacity(runs.len());
    for (nth, (at, _)) in runs.iter().enumerate() {
        let by_time = usize::try_from(off(*at) * (room as u128 - 1) / longest).unwrap_or(room - 1);
        let first = places.last().map_or(0, |before| before + 1);
        let last = room - (runs.len() - nth);
        places.push(by_time.clamp(first, last));
    }
    places
}

/// `Sat 2026-03-07 02:30:00`.
fn with_day(local: &str) -> String {
    match local.parse::<DateTime>() {
        Ok(shown) => shown.strftime("%a %Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => local.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;

    use super::*;
    use crate::cli::terminal::Format;

    fn runs(now: Timestamp, hours: &[i64]) -> Vec<(Timestamp, String)> {
        hours.iter().map(|hours| (now + hours.hours(), String::new())).collect()
    }

    #[test]
    fn marks_stand_by_how_far_off_they_are_and_never_on_another() {
        let now: Timestamp = "2026-03-06T00:00:00Z".parse().unwrap();
        assert_eq!(places(&runs(now, &[1, 5, 10]), now, 11), [1, 5, 10]);
        assert_eq!(places(&runs(now, &[1, 2, 1_000]), now, 11), [0, 1, 10]);
        assert_eq!(places(&runs(now, &[998, 999, 1_000]), now, 11), [8, 9, 10]);
        // All of them due now.
        assert_eq!(places(&runs(now, &[-2, -1, 0]), now, 11), [0, 1, 2]);
        assert_eq!(places(&runs(now, &[7]), now, 11), [10]);
    }

    #[test]
    fn a_line_is_as_wide_as_the_terminal() {
        let now: Timestamp = "2026-03-06T00:00:00Z".parse().unwrap();
        for (width, expected) in [(Some(5), NARROWEST), (Some(50), 50), (Some(500), WIDEST), (None, WIDEST)] {
            let look = Look { format: Format::Table, colour: false, width };
            let text = drawn(&look, &runs(now, &[1, 2]), now);
            let line = text.lines().next().unwrap();
            assert_eq!(line.chars().count(), expected, "{text}");
            assert!(line.starts_with("now ─") && line.ends_with('●'), "{text}");
        }
    }
}
