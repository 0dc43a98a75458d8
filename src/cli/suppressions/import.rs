//! `suppressions import`: one request for each row, several at a time. What is wrong with a row costs that row alone.

use std::cell::Cell;
use std::io::{IsTerminal, Write as _, stderr};
use std::path::PathBuf;

use clap::Args;
use futures::stream::{self, StreamExt as _};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::super::Shell;
use super::super::client::{Answer, Client, ServerArgs};
use super::super::exit::{Exit, Failure};
use super::super::terminal::{Format, print, print_json};
use super::rows::{self, Row};
use crate::text_file;

/// Largest file.
const MOST_BYTES: u64 = 256 * 1024 * 1024;
/// Requests under way.
const AT_ONCE: usize = 16;
/// Rows at fault that are told of one by one.
const MOST_TOLD: usize = 100;
/// Where there is no terminal to draw on there is a line for every so many rows.
const A_LINE_FOR: usize = 1_000;
const BAR: usize = 30;

#[derive(Args)]
pub struct ImportArgs {
    /// Comma-separated, with the names of its columns in the first row: address, and as needed channel (email where
    /// there is none), kind (manual), category, until, note
    file: PathBuf,
    #[command(flatten)]
    server: ServerArgs,
}

impl ImportArgs {
    pub const fn server(&self) -> &ServerArgs {
        &self.server
    }
}

/// What became of the rows so far.
#[derive(Default)]
struct Tally {
    new: usize,
    before: usize,
    /// By line, what would be right; never what stands there.
    wrong: Vec<(usize, String)>,
}

impl Tally {
    fn rows(&self) -> usize {
        self.new + self.before + self.wrong.len()
    }

    /// # Errors
    /// It is no matter of the row.
    fn count(&mut self, line: usize, told: Result<Answer, Failure>) -> Result<(), Failure> {
        let answer = told?;
        match answer.status {
            StatusCode::CREATED => self.new += 1,
            StatusCode::OK => self.before += 1,
            StatusCode::UNPROCESSABLE_ENTITY => self.wrong.push((line, in_words(&answer.body))),
            StatusCode::CONFLICT => {
                let why = answer.body["detail"].as_str().unwrap_or("there are too many of this address");
                self.wrong.push((line, why.to_owned()));
            }
            _ => drop(answer.ok()?),
        }
        Ok(())
    }

    fn words(&self) -> String {
        let wrong = match self.wrong.len() {
            0 => String::new(),
            1 => ", 1 wrong".into(),
            many => format!(", {many} wrong"),
        };
        let rows = if self.rows() == 1 { "1 row".into() } else { format!("{} rows", self.rows()) };
        format!("{rows}: {} suppressed, {} were before{wrong}\n", self.new, self.before)
    }
}

/// The fields of a problem, by their columns.
fn in_words(problem: &Value) -> String {
    let errors = problem["errors"].as_array().into_iter().flatten();
    let word = |error: &Value, name: &str| error[name].as_str().unwrap_or_default().trim_start_matches('/').to_owned();
    let fields: Vec<_> = errors.map(|one| format!("{} {}", word(one, "pointer"), word(one, "detail"))).collect();
    fields.join("; ")
}

pub async fn run(shell: &Shell, args: &ImportArgs, client: &Client) -> anyhow::Result<Exit> {
    let named = |why: String| Failure::new(Exit::Usage, format!("{}: {why}", args.file.display()));
    let text = text_file::read(&args.file, MOST_BYTES).map_err(|error| {
        named(match error.kind() {
            std::io::ErrorKind::InvalidData => "is not in UTF-8; save it as \"CSV UTF-8\"".into(),
            _ => error.to_string(),
        })
    })?;
    let all = rows::read(&text).map_err(named)?;
    drop(text);
    let mut progress = Progress::of(all.len());
    let mut tally = Tally::default();
    let put = |Row { line, body }| async move {
        match body {
            Ok(body) => {
                let body = Value::from(body).to_string();
                (line, client.patiently(|| client.post(super::ALL, None, body.clone())).await.map(Ok))
            }
            Err(wrong) => (line, Ok(Err(wrong))),
        }
    };
    // Of what is under way then it is still heard what became of it: the count must be true.
    let broken_off = Cell::new(false);
    let to_do = all.into_iter().take_while(|_| !broken_off.get());
    let mut told = stream::iter(to_do.map(put)).buffer_unordered(AT_ONCE);
    let mut first_failure = None;
    while let Some((line, answer)) = told.next().await {
        let counted = match answer {
            Ok(Ok(answer)) => tally.count(line, Ok(answer)),
            Ok(Err(wrong)) => {
                tally.wrong.push((line, wrong));
                Ok(())
            }
            Err(failure) => Err(failure),
        };
        match counted {
            Ok(()) => progress.step(tally.rows()),
            Err(failure) => {
                broken_off.set(true);
                first_failure.get_or_insert(failure);
            }
        }
    }
    progress.end();
    if let Some(failure) = first_failure {
        let text = format!("{failure}\nUntil then: {}The same command again finishes it.", tally.words());
        return Err(Failure { text, ..failure }.into());
    }
    report(shell, tally)
}

fn report(shell: &Shell, mut tally: Tally) -> anyhow::Result<Exit> {
    // As they stand in the file: requests overtake each other.
    tally.wrong.sort();
    match shell.look.format {
        Format::Json => {
            let wrong: Vec<_> = tally.wrong.iter().map(|(line, why)| json!({ "line": line, "detail": why })).collect();
            print_json(&json!({
                "rows": tally.rows(), "suppressed": tally.new, "before": tally.before, "wrong": wrong,
            }))?;
        }
        Format::Table => {
            for (line, why) in tally.wrong.iter().take(MOST_TOLD) {
                eprintln!("line {line}: {why}");
            }
            if let Some(more @ 1..) = tally.wrong.len().checked_sub(MOST_TOLD) {
                eprintln!("and {more} more; with --output json all of them are named");
            }
            print(&tally.words())?;
        }
    }
    Ok(if tally.wrong.is_empty() { Exit::Ok } else { Exit::Findings })
}

/// On standard error: a bar where that is a terminal, now and then a line where it is not.
struct Progress {
    all: usize,
    drawn: Option<usize>,
    on_terminal: bool,
}

impl Progress {
    fn of(all: usize) -> Self {
        Self { all, drawn: None, on_terminal: stderr().is_terminal() }
    }

    fn step(&mut self, done: usize) {
        if !self.on_terminal {
            if done.is_multiple_of(A_LINE_FOR) && done < self.all {
                eprintln!("{done} of {} rows", self.all);
            }
            return;
        }
        let percent = done * 100 / self.all.max(1);
        if self.drawn != Some(percent) {
            self.drawn = Some(percent);
            self.draw(&bar(done, self.all));
        }
    }

    /// Leaves nothing of the bar behind.
    fn end(&mut self) {
        if self.drawn.take().is_some() {
            self.draw("");
        }
    }

    fn draw(&self, text: &str) {
        // Whoever closed standard error wants to see nothing.
        drop(write!(stderr(), "\r\u{1b}[2K{text}"));
    }
}

fn bar(done: usize, all: usize) -> String {
    let full = (BAR * done).checked_div(all).unwrap_or(BAR).min(BAR);
    format!("[{}{}] {done} of {all} rows", "#".repeat(full), "·".repeat(BAR - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_as_long_at_every_moment() {
        assert_eq!(bar(0, 3), format!("[{}] 0 of 3 rows", "·".repeat(30)));
        assert_eq!(bar(1, 3), format!("[{}{}] 1 of 3 rows", "#".repeat(10), "·".repeat(20)));
        assert_eq!(bar(3, 3), format!("[{}] 3 of 3 rows", "#".repeat(30)));
    }
}
