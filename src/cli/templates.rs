//! `templates lint`, `templates preview` and `templates diff`.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::json;

use super::Shell;
use super::exit::{Exit, Failure};
use super::send::request::json_of;
use super::terminal::{Colour, Format, Look, print, print_json, table};
use crate::content::diff::{Change, diff};
use crate::content::lint::{Finding, Level, lint, lint_content};
use crate::content::preview::{PreviewProblem, Trial, preview};
use crate::content::{Content, TemplateProblem};

#[derive(Subcommand)]
pub enum TemplatesCommand {
    /// Look for wording that does not survive a repeat, missing parts, and faults
    Lint {
        /// The folder; absent: templates.path of the configuration
        folder: Option<PathBuf>,
    },
    /// Render a template with its own sample
    Preview(PreviewArgs),
    /// Compare what two folders make of their samples
    Diff(DiffArgs),
}

#[derive(Args)]
pub struct PreviewArgs {
    /// The template
    name: String,
    /// Language tag of who reads it; absent: the template's own
    #[arg(long)]
    locale: Option<String>,
    #[command(flatten)]
    trial: TrialArgs,
    /// Write each part to a file in this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

#[derive(Args)]
pub struct DiffArgs {
    /// The template; absent: all of them
    name: Option<String>,
    /// The folder as it was
    #[arg(long, value_name = "FOLDER")]
    from: PathBuf,
    /// The folder as it is; absent: templates.path of the configuration
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
    /// Language tag of who reads it; absent: every language there is
    #[arg(long)]
    locale: Option<String>,
    #[command(flatten)]
    trial: TrialArgs,
}

#[derive(Args)]
pub struct TrialArgs {
    /// Time zone of who reads it, such as Europe/Stockholm; absent: unknown, and told as UTC
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// The data as JSON: text, @FILE, or - for standard input; absent: the sample
    #[arg(long = "data", value_name = "JSON")]
    fields: Option<String>,
}

impl TrialArgs {
    fn trial(&self, locale: Option<&String>) -> anyhow::Result<Trial> {
        let given = self.fields.as_deref().map(|given| json_of("--data", given)).transpose()?;
        Ok(Trial { locale: locale.cloned(), time_zone: self.time_zone.clone(), filling: given })
    }
}

fn unfit(problem: &PreviewProblem) -> anyhow::Error {
    Failure::new(Exit::Usage, problem.to_string()).into()
}

pub fn run(shell: &Shell, command: &TemplatesCommand) -> anyhow::Result<Exit> {
    let folder = |given: &Option<PathBuf>| -> anyhow::Result<PathBuf> {
        given.clone().map_or_else(|| Ok(shell.config()?.templates.path), Ok)
    };
    match command {
        TemplatesCommand::Lint { folder: given } => {
            let folder = folder(given)?;
            let classes = shell.config()?.unsubscribing();
            let findings = match (given, Content::nothing_given(&folder)) {
                // Without a folder of one's own, the built-in templates are what counts.
                (None, true) => lint_content(&Content::built_in().map_err(faults)?, &classes),
                _ => lint(&folder, &classes),
            };
            linted(shell, &findings)
        }
        TemplatesCommand::Preview(args) => {
            let content = Content::load_or_built_in(&folder(&None)?).map_err(faults)?;
            previewed(shell, &content, args)
        }
        TemplatesCommand::Diff(args) => {
            let from = Content::load(&args.from).map_err(faults)?;
            let to = match &args.to {
                Some(folder) => Content::load(folder),
                None => Content::load_or_built_in(&folder(&None)?),
            };
            compared(shell, &from, &to.map_err(faults)?, args)
        }
    }
}

fn faults(problems: Vec<TemplateProblem>) -> anyhow::Error {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    anyhow!("the templates do not compile:\n  {}", lines.join("\n  "))
}

fn linted(shell: &Shell, findings: &[Finding]) -> anyhow::Result<Exit> {
    match shell.look.format {
        Format::Json => print_json(&json!({ "findings": findings.iter().map(as_json).collect::<Vec<_>>() }))?,
        Format::Table if findings.is_empty() => print("nothing to find\n")?,
        Format::Table => {
            let level = |level: Level| match level {
                Level::Info => shell.look.paint(Colour::Faint, "info"),
                Level::Warning => shell.look.paint(Colour::Yellow, "warning"),
                Level::Error => shell.look.paint(Colour::Red, "error"),
            };
            let rows: Vec<Vec<String>> = findings
                .iter()
                .map(|one| vec![level(one.level), place(one), one.rule.to_owned(), one.message.clone()])
                .collect();
            print(&table(&shell.look, &["LEVEL", "PLACE", "RULE", "WHAT"], &rows))?;
        }
    }
    Ok(if matters(findings) { Exit::Findings } else { Exit::Ok })
}

fn unknown(problem: &str, content: &Content) -> anyhow::Error {
    let known: Vec<&str> = content.names().collect();
    Failure::new(Exit::Failed, format!("{problem}; there are {}", known.join(", "))).into()
}

fn compared(shell: &Shell, from: &Content, to: &Content, args: &DiffArgs) -> anyhow::Result<Exit> {
    if let Some(name) = args.name.as_deref().filter(|name| from.meta(name).is_none() && to.meta(name).is_none()) {
        return Err(unknown(&format!("there is no template `{name}` in either folder"), to));
    }
    let trial = args.trial.trial(args.locale.as_ref())?;
    let changes = diff(from, to, args.name.as_deref(), &trial).map_err(|problem| unfit(&problem))?;
    match shell.look.format {
        Format::Json => print_json(&json!({
            "cut": changes.cut,
            "changes": changes.list.iter().map(change_as_json).collect::<Vec<_>>(),
        }))?,
        Format::Table if changes.list.is_empty() => print("nothing differs\n")?,
        Format::Table => {
            for one in &changes.list {
                print(&shown(&shell.look, one))?;
            }
            if changes.cut {
                print("… and more\n")?;
            }
        }
    }
    Ok(if changes.list.is_empty() { Exit::Ok } else { Exit::Findings })
}

/// One change as `diff` writes it, under a line that says whose it is.
fn shown(look: &Look, one: &Change) -> String {
    let of = [one.locale.clone(), one.channel.map(|channel| channel.to_string())];
    let of: Vec<String> = of.into_iter().flatten().collect();
    let of = if of.is_empty() { String::new() } else { format!(", {}", of.join(", ")) };
    let mut text = look.paint(Colour::Bold, &format!("== {}{of}: {} {}", one.template, one.part, one.kind)) + "\n";
    for line in one.diff.lines() {
        text += &match line.as_bytes().first() {
            Some(b'+') => look.paint(Colour::Green, line),
            Some(b'-') => look.paint(Colour::Red, line),
            Some(b'@') => look.paint(Colour::Faint, line),
            _ => line.to_owned(),
        };
        text.push('\n');
    }
    text
}

fn change_as_json(one: &Change) -> serde_json::Value {
    json!({
        "template": one.template, "locale": one.locale, "channel": one.channel.map(|channel| channel.to_string()),
        "part": one.part, "kind": one.kind, "diff": one.diff,
    })
}

/// What is only worth knowing fails nobody's build.
pub fn matters(findings: &[Finding]) -> bool {
    findings.iter().any(|one| one.level > Level::Info)
}

fn place(one: &Finding) -> String {
    let line = if one.line > 0 { format!(":{}", one.line) } else { String::new() };
    match (one.template.as_str(), one.file.as_str()) {
        // It says itself which folder.
        ("", "") => "-".to_owned(),
        ("", file) => file.to_owned(),
        (template, "") => template.to_owned(),
        (template, file) => format!("{template}/{file}{line}"),
    }
}

fn as_json(one: &Finding) -> serde_json::Value {
    json!({
        "template": one.template, "file": one.file, "line": one.line,
        "rule": one.rule, "level": one.level.to_string(), "message": one.message,
    })
}

fn previewed(shell: &Shell, content: &Content, args: &PreviewArgs) -> anyhow::Result<Exit> {
    let trial = args.trial.trial(args.locale.as_ref())?;
    let made = preview(content, &args.name, &trial, args.out.as_deref());
    let made = made.map_err(|problem| match problem {
        PreviewProblem::NoTemplate(_) => unknown(&problem.to_string(), content),
        PreviewProblem::Unfit(_) => unfit(&problem),
        problem => anyhow::Error::from(problem),
    })?;
    match shell.look.format {
        Format::Table => {
            print(&made.screen)?;
            for file in &made.files {
                print(&format!("wrote {}\n", file.display()))?;
            }
        }
        Format::Json => print_json(&json!({
            "template": made.template, "screen": made.screen, "files": made.files,
            "problems": made.problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }))?,
    }
    Ok(if made.problems.is_empty() { Exit::Ok } else { Exit::Findings })
}
