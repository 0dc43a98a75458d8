//! CSV as RFC 4180 has it, with any line end: what spreadsheets and other systems' exports write.

use serde_json::{Map, Value};

/// What a file may say of an address.
pub const COLUMNS: &[&str] = &["channel", "address", "kind", "category", "until", "note"];

/// One row: where it begins, counted from 1, and what it says, or what is wrong with it.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    pub line: usize,
    pub body: Result<Map<String, Value>, String>,
}

/// Reads a file whose first row names its columns. Empty cells and rows say nothing.
///
/// # Errors
/// Its first row does not.
pub fn read(text: &str) -> Result<Vec<Row>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = cells(text).into_iter();
    let known = COLUMNS.join(", ");
    let first = || format!("the first row must name the columns: address, and as needed others of {known}");
    let heading = lines.next().ok_or_else(first)?.1.map_err(|wrong| format!("line 1: {wrong}"))?;
    let heading: Vec<String> = heading.iter().map(|name| name.trim().to_lowercase()).collect();
    let unknown: Vec<usize> =
        (0..heading.len()).filter(|at| !COLUMNS.contains(&heading[*at].as_str())).map(|at| at + 1).collect();
    if !heading.iter().any(|name| name == "address") {
        return Err(first());
    }
    // A column is not named here: a file without a heading has addresses there.
    if let Some(at) = unknown.first() {
        return Err(format!("line 1: column {at} is none of {known}"));
    }
    if let Some(at) = (1..heading.len()).find(|at| heading[..*at].contains(&heading[*at])) {
        return Err(format!("line 1: {} stands twice", heading[at]));
    }
    let row = |(line, cells): (usize, Result<Vec<String>, String>)| {
        let body = cells.and_then(|cells| body(&heading, cells));
        (body != Ok(Map::new())).then_some(Row { line, body })
    };
    Ok(lines.filter_map(row).collect())
}

fn body(heading: &[String], cells: Vec<String>) -> Result<Map<String, Value>, String> {
    if cells.iter().all(|cell| cell.trim().is_empty()) {
        return Ok(Map::new());
    }
    if cells.len() != heading.len() {
        return Err(format!("has {} cells, the first row has {}", cells.len(), heading.len()));
    }
    let said = heading.iter().zip(cells).map(|(name, cell)| (name, cell.trim().to_owned()));
    let mut body: Map<String, Value> =
        said.filter(|(_, cell)| !cell.is_empty()).map(|(name, cell)| (name.clone(), cell.into())).collect();
    body.entry("channel").or_insert_with(|| "email".into());
    Ok(body)
}

/// Rows with the lines that they begin on; each its cells, or what is wrong with their quotes.
fn cells(text: &str) -> Vec<(usize, Result<Vec<String>, String>)> {
    let mut rows = Vec::new();
    let mut letters = text.chars().peekable();
    let mut line = 1;
    while letters.peek().is_some() {
        let begins = line;
        let (mut row, mut wrong) = (vec![String::new()], None);
        let mut quoted = false;
        while let Some(letter) = letters.next() {
            let cell = row.last_mut().map_or(0, |cell| cell.len());
            match letter {
                '"' if quoted && letters.next_if_eq(&'"').is_some() => push(&mut row, '"'),
                '"' if quoted => {
                    quoted = false;
                    if letters.peek().is_some_and(|next| !matches!(next, ',' | '\r' | '\n')) {
                        wrong = Some("has something behind a closing quote");
                    }
                }
                '"' if cell == 0 => quoted = true,
                ',' if !quoted => row.push(String::new()),
                '\r' if !quoted && letters.peek() == Some(&'\n') => {}
                '\n' => {
                    line += 1;
                    if !quoted {
                        break;
                    }
                    push(&mut row, letter);
                }
                other => push(&mut row, other),
            }
        }
        if quoted {
            wrong = Some("opens a quote that nothing closes");
        }
        rows.push((begins, wrong.map_or(Ok(row), |wrong| Err(wrong.to_owned()))));
    }
    rows
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
    use serde_json::json;

    use super::*;

    fn bodies(text: &str) -> Vec<(usize, Value)> {
        let told = |row: Row| (row.line, row.body.map_or_else(Value::from, Value::from));
        read(text).unwrap().into_iter().map(told).collect()
    }

    #[test]
    fn rows_are_read_with_the_lines_that_they_begin_on() {
        let text = "\u{feff}Address, kind,note\r\nann@example.com,hard_bounce,\r\n\r\n\"bob@example.com\",,\"one, \
                    \"\"two\"\"\nthree\"\n , ,\nx\n\"eve@example.com\"y,,\njoe@example.com,manual,last";
        let expected = [
            (2, json!({"channel": "email", "address": "ann@example.com", "kind": "hard_bounce"})),
            (4, json!({"channel": "email", "address": "bob@example.com", "note": "one, \"two\"\nthree"})),
            (7, json!("has 1 cells, the first row has 3")),
            (8, json!("has something behind a closing quote")),
            (9, json!({"channel": "email", "address": "joe@example.com", "kind": "manual", "note": "last"})),
        ];
        assert_eq!(bodies(text), expected);
        let sms = json!({"channel": "sms", "address": "+46701234567"});
        assert_eq!(bodies("channel,address\nsms,+46701234567\n"), [(2, sms)]);
        assert_eq!(bodies("address\n\"ann@example.com\n"), [(2, json!("opens a quote that nothing closes"))]);
        assert_eq!(bodies("address\n"), []);
    }

    #[test]
    fn a_file_without_its_columns_names_is_refused_and_no_address_told() {
        for bad in
            ["", "kind\nmanual", "ann@example.com\nbob@example.com", "address,ann@example.com", "address,address"]
        {
            let why = read(bad).unwrap_err();
            assert!(!why.contains('@'), "{why}");
        }
    }

    #[test]
    fn what_is_written_is_one_row_and_no_formula() {
        let row = ["a", "b,c", "say \"x\"", "+46…67", "", "=1+1"].map(str::to_owned);
        assert_eq!(written(&row), "a,\"b,c\",\"say \"\"x\"\"\",'+46…67,,'=1+1\n");
    }
}
