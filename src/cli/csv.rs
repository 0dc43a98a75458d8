//! CSV as RFC 4180 has it, with any line end: what spreadsheets and other systems' exports write and read. But a row is
//! a line: nothing that is said here has a line end, and a quote that nobody closes must not take all rows behind it.

/// Rows by their lines, counted from 1; each its cells, or what is wrong with their quotes.
#[must_use]
pub fn cells(text: &str) -> Vec<(usize, Result<Vec<String>, String>)> {
    lines(text).enumerate().map(|(before, line)| (before + 1, cells_of(line))).collect()
}

/// Its lines, whatever ends them.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(['\n', '\r'])
        .scan(false, |after_return, part| {
            let is_rest = *after_return && part == "\n";
            *after_return = part.ends_with('\r');
            Some((!is_rest).then(|| part.trim_end_matches(['\n', '\r'])))
        })
        .flatten()
}

fn cells_of(line: &str) -> Result<Vec<String>, String> {
    let mut row = vec![String::new()];
    let (mut quoted, mut wrong) = (false, None);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        let begins = row.last().is_none_or(String::is_empty);
        match letter {
            '"' if quoted && letters.next_if_eq(&'"').is_some() => push(&mut row, '"'),
            '"' if quoted => {
                quoted = false;
                if letters.peek().is_some_and(|next| *next != ',') {
                    wrong = Some("has something behind a closing quote");
                }
            }
            '"' if begins => quoted = true,
            ',' if !quoted => row.push(String::new()),
            other => push(&mut row, other),
        }
    }
    if quoted {
        wrong = Some("opens a quote that is not closed on the same line");
    }
    wrong.map_or(Ok(row), |wrong| Err(wrong.to_owned()))
}

fn push(row: &mut [String], letter: char) {
    row.last_mut().into_iter().for_each(|cell| cell.push(letter));
}

/// A row as it is written. A cell that a spreadsheet would take for a formula is written as text.
pub fn written(cells: &[String]) -> String {
    let cell = |text: &String| {
        let text = if text.starts_with(['=', '+', '-', '@', '\t']) { format!("'{text}") } else { text.clone() };
        if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
    };
    cells.iter().map(cell).collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_one_row_and_no_formula() {
        let row = ["a", "b,c", "say \"x\"", "+46…67", "", "=1+1"].map(str::to_owned);
        assert_eq!(written(&row), "a,\"b,c\",\"say \"\"x\"\"\",'+46…67,,'=1+1\n");
    }
}
