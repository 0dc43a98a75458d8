//! `suppressions import`: one request for each row, several at a time. What is wrong with a row costs that row alone.

use std::cell::Cell;
use std::collections::HashSet;
use std::path::PathBuf;

use clap::Args;
use futures::stream::{self, StreamExt as _};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::super::Shell;
use super::super::client::{Answer, Client, ServerArgs};
use super::super::exit::{Exit, Failure};
use super::super::progress::Progress;
use super::super::terminal::{Format, print, print_json};
use super::rows::{self, Row};
use crate::text_file;

/// Largest file.
const MOST_BYTES: u64 = 256 * 1024 * 1024;
/// Requests under way.
const AT_ONCE: usize = 16;
/// Rows at fault that are told of one by one.
const MOST_TOLD: usize = 100;

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
    /// Rows about the same as a row of this file that was counted.
    repeats: usize,
    /// Those that were counted, by id.
    seen: HashSet<String>,
    /// By line, what would be right; never what stands there.
    wrong: Vec<(usize, String)>,
}

impl Tally {
    fn rows(&self) -> usize {
        self.new + self.before + self.repeats + self.wrong.len()
    }

    /// # Errors
    /// It is no matter of the row.
    fn count(&mut self, line: usize, told: Result<Answer, Failure>) -> Result<(), Failure> {
        let answer = told?;
        let taken = matches!(answer.status, StatusCode::CREATED | StatusCode::OK);
        if taken && !answer.body["id"].as_str().is_none_or(|id| self.seen.insert(id.to_owned())) {
            self.repeats += 1;
            return Ok(());
        }
        match answer.status {
            StatusCode::CREATED => self.new += 1,
            StatusCode::OK => self.before += 1,
            StatusCode::PAYLOAD_TOO_LARGE => {
                self.wrong.push((line, "is too long: a note has at most 255 characters".into()))
            }
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
        let repeats = match self.repeats {
            0 => String::new(),
            1 => ", 1 repeats another row".into(),
            many => format!(", {many} repeat other rows"),
        };
        let rows = if self.rows() == 1 { "1 row".into() } else { format!("{} rows", self.rows()) };
        format!("{rows}: {} suppressed, {} were before{repeats}{wrong}\n", self.new, self.before)
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
    let mut progress = Progress::of("rows", Some(all.len()));
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
            Ok(()) => progress.step(tally.rows(), None),
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
                "rows": tally.rows(), "suppressed": tally.new, "before": tally.before, "repeats": tally.repeats, "wrong": wrong,
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
