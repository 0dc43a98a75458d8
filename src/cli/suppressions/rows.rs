//! The rows of a file to import, each what it says of an address.

use serde_json::{Map, Value};

use super::super::csv;

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
    if let Some(by) = other_separator(csv::lines(text).next().unwrap_or_default()) {
        return Err(format!("line 1: looks like {by} separates the cells; a comma must"));
    }
    let mut lines = csv::cells(text).into_iter();
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

/// What the columns' names are separated by, where it is no comma.
fn other_separator(heading: &str) -> Option<&'static str> {
    let separates = |by: char| {
        let mut names = heading.split(by).map(|name| name.trim_matches(['"', ' ']));
        heading.contains(by) && names.any(|name| name.eq_ignore_ascii_case("address"))
    };
    [(';', "a semicolon"), ('\t', "a tab")].into_iter().find(|(by, _)| separates(*by)).map(|(_, name)| name)
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
    fn rows_are_read_with_their_lines() {
        let text = "\u{feff}Address, kind,note\r\nann@example.com,hard_bounce,\r\n\r\n\"bob@example.com\",,\"one, \
                    \"\"two\"\"\"\n , ,\nx\n\"eve@example.com\"y,,\njoe@example.com,manual,last";
        let expected = [
            (2, json!({"channel": "email", "address": "ann@example.com", "kind": "hard_bounce"})),
            (4, json!({"channel": "email", "address": "bob@example.com", "note": "one, \"two\""})),
            (6, json!("has 1 cells, the first row has 3")),
            (7, json!("has something behind a closing quote")),
            (8, json!({"channel": "email", "address": "joe@example.com", "kind": "manual", "note": "last"})),
        ];
        assert_eq!(bodies(text), expected);
        let sms = json!({"channel": "sms", "address": "+46701234567"});
        assert_eq!(bodies("channel,address\nsms,+46701234567\n"), [(2, sms)]);
        assert_eq!(bodies("address\n"), []);
        // As an old Macintosh writes it.
        let two = |first: usize| {
            ["ann", "bob"]
                .map(|name| format!("{name}@example.com"))
                .into_iter()
                .enumerate()
                .map(move |(at, address)| (first + at, json!({"channel": "email", "address": address})))
                .collect::<Vec<_>>()
        };
        assert_eq!(bodies("address\rann@example.com\rbob@example.com\r"), two(2));
    }

    /// All rows behind it would be one cell of it.
    #[test]
    fn a_quote_that_is_not_closed_costs_its_own_row_alone() {
        let text =
            "address,note\n\"ann@example.com,x\nbob@example.com,\"y\neve@example.com,z\njoe@example.com,\"\"\"\n";
        let open = || json!("opens a quote that is not closed on the same line");
        let eve = json!({"channel": "email", "address": "eve@example.com", "note": "z"});
        assert_eq!(bodies(text), [(2, open()), (3, open()), (4, eve), (5, open())]);
    }

    #[test]
    fn whoever_separates_by_something_else_is_told() {
        for (heading, by) in
            [("address;kind", "a semicolon"), ("\"Kind\";\"Address\"", "a semicolon"), ("address\tkind", "a tab")]
        {
            let why = read(&format!("{heading}\nann@example.com;manual\n")).unwrap_err();
            assert_eq!(why, format!("line 1: looks like {by} separates the cells; a comma must"));
        }
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
}
