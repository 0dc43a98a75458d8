//! `demo`: a server in this program, one of each template, each repeated ten ways through the real
//! API; then what was caught and what went out. Nothing leaves the machine.

use std::io::Write;

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};

use super::Shell;
use super::client::Client;
use super::exit::{Exit, Failure};
use super::terminal::{Colour, Format, Look, colour_on_stderr, print, print_json};
use crate::app::{StartOptions, start};
use crate::config::{Config, LogConfig, LogFormat, Sources};
use crate::content::{Content, TemplateProblem};
use crate::telemetry::start_logging;

mod intent;
mod ways;

use intent::Intent;
use ways::{Bench, Tally, Way};

#[derive(Args)]
pub struct DemoArgs {
    /// End after the table, with code 1 if anything went out twice
    #[arg(long)]
    once: bool,
    /// Listen on this port; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
}

pub async fn run(shell: &Shell, args: &DemoArgs) -> anyhow::Result<Exit> {
    let templates = shell.config()?.templates;
    // The embedded defaults alone: a demonstration must never reach anybody's mail server.
    let mut config = Config::load(&Sources::default())?;
    config.templates = templates;
    start_logging(&LogConfig { format: LogFormat::Pretty, level: "error".into() }, colour_on_stderr())?;
    let content = Content::load_or_built_in(&config.templates.path).map_err(|problems| faults(&problems))?;
    let options = StartOptions { ephemeral: true, port: Some(args.port), ..StartOptions::default() };
    let running = start(config, options).await?;
    let key = running.first_key.clone().context("the server made no first key")?;
    let url = format!("http://{}", running.address);
    let bench = Bench { client: Client::new(&url, Some(key.clone()))?, address: running.address, key };
    let shown = demonstrate(shell.look, &bench, &content).await;
    let left_up =
        if let (Ok(_), false) = (&shown, args.once) { stay_up(shell, &url, &bench.key).await } else { Ok(()) };
    running.stop().await;
    left_up?;
    let once_each = shown?;
    Ok(if once_each || !args.once { Exit::Ok } else { Exit::Failed })
}

fn faults(problems: &[TemplateProblem]) -> anyhow::Error {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    anyhow::anyhow!("the templates do not compile:\n  {}", lines.join("\n  "))
}

async fn stay_up(shell: &Shell, url: &str, key: &str) -> anyhow::Result<()> {
    if shell.look.format == Format::Table {
        print(&format!(
            "\nStill up until Ctrl-C.\n\n  Outbox     {url}/admin\n  API        {url}/v1\n  API key    {key}\n"
        ))?;
    }
    tokio::signal::ctrl_c().await.context("cannot listen for Ctrl-C")
}

/// Whether every intent had exactly one effect and every repeat was recognised.
async fn demonstrate(look: Look, bench: &Bench, content: &Content) -> anyhow::Result<bool> {
    let names: Vec<String> = content.names().map(str::to_owned).collect();
    let mut intents = Vec::new();
    for name in &names {
        if let Some(sample) = content.sample(name, None) {
            let mut intent = Intent::new(name, sample);
            intent.id = bench.first(&intent).await?;
            intents.push(intent);
        }
    }
    if intents.is_empty() {
        return Err(Failure::new(Exit::Failed, "no template has a sample.json to show").into());
    }
    let mut board = Board::new(look, &intents)?;
    for way in Way::ALL {
        board.begin(way)?;
        for intent in &intents {
            board.cell(way, way.repeat(bench, intent).await?)?;
        }
        board.end()?;
    }
    let mut went_out = Vec::new();
    for intent in &intents {
        went_out.push(bench.went_out(intent).await?);
    }
    board.sum_up(&intents, &went_out)
}

/// What became of one intent after everything.
pub struct WentOut {
    pub messages: usize,
    pub repeats: u64,
    pub state: String,
}

/// The table, written cell by cell as they come.
struct Board {
    look: Look,
    width: usize,
    results: Vec<(Way, Vec<Tally>)>,
}

impl Board {
    const LABEL: usize = 38;

    fn new(look: Look, intents: &[Intent]) -> Result<Self, Failure> {
        let width = intents.iter().map(|intent| intent.template.len()).max().unwrap_or(0).max(5) + 2;
        let board = Self { look, width, results: Vec::new() };
        let names: String = intents.iter().map(|intent| format!("{:>width$}", intent.template)).collect();
        board.write(&look.paint(Colour::Faint, &format!("{:<1$}{names}\n", "REPEATS CAUGHT / SENT", Self::LABEL)))?;
        Ok(board)
    }

    /// Programs get one document at the end.
    fn write(&self, text: &str) -> Result<(), Failure> {
        if self.look.format == Format::Json { Ok(()) } else { print(text) }
    }

    fn begin(&mut self, way: Way) -> Result<(), Failure> {
        self.results.push((way, Vec::new()));
        self.write(&format!("{:<1$}", way.name(), Self::LABEL))
    }

    fn cell(&mut self, way: Way, tally: Tally) -> Result<(), Failure> {
        let text = format!("{:>1$}", format!("{}/{}", tally.caught, tally.sent), self.width);
        let colour = if tally.caught == tally.sent { Colour::Green } else { Colour::Red };
        debug_assert!(self.results.last().is_some_and(|(last, _)| *last == way));
        if let Some((_, cells)) = self.results.last_mut() {
            cells.push(tally);
        }
        self.write(&self.look.paint(colour, &text))
    }

    fn end(&self) -> Result<(), Failure> {
        self.write("\n")?;
        std::io::stdout().flush().map_err(|error| Failure::new(Exit::Failed, error.to_string()))
    }

    fn sum_up(&self, intents: &[Intent], went_out: &[WentOut]) -> anyhow::Result<bool> {
        let caught_all = self.results.iter().flat_map(|(_, cells)| cells).all(|tally| tally.caught == tally.sent);
        let once_each = went_out.iter().all(|one| one.messages == 1);
        if self.look.format == Format::Json {
            print_json(&self.as_json(intents, went_out, caught_all && once_each))?;
            return Ok(caught_all && once_each);
        }
        let row = |label: &str, cells: &mut dyn Iterator<Item = String>| {
            let (width, label_width) = (self.width, Self::LABEL);
            let cells: String = cells.map(|cell| format!("{cell:>width$}")).collect();
            format!("{label:<label_width$}{cells}\n")
        };
        self.write("\n")?;
        self.write(&row("repeats in its record", &mut went_out.iter().map(|one| one.repeats.to_string())))?;
        self.write(&row("state", &mut went_out.iter().map(|one| one.state.clone())))?;
        let out = row("MESSAGES THAT WENT OUT", &mut went_out.iter().map(|one| one.messages.to_string()));
        self.write(&self.look.paint(Colour::Bold, &out))?;
        let verdict = match (caught_all, once_each) {
            (true, true) => self.look.paint(Colour::Green, "Every intent had one effect."),
            (false, true) => self.look.paint(Colour::Red, "A repeat was not recognised."),
            (_, false) => self.look.paint(Colour::Red, "Not every intent had exactly one effect."),
        };
        self.write(&format!("\n{verdict}\n"))?;
        Ok(caught_all && once_each)
    }

    fn as_json(&self, intents: &[Intent], went_out: &[WentOut], ok: bool) -> Value {
        let ways: Vec<Value> = self
            .results
            .iter()
            .map(|(way, cells)| {
                let by_template: serde_json::Map<String, Value> = intents
                    .iter()
                    .zip(cells)
                    .map(|(intent, tally)| {
                        (intent.template.clone(), json!({ "sent": tally.sent, "caught": tally.caught }))
                    })
                    .collect();
                json!({ "way": way.name(), "templates": by_template })
            })
            .collect();
        let out: Vec<Value> = intents
            .iter()
            .zip(went_out)
            .map(|(intent, one)| {
                json!({ "template": intent.template, "notification": intent.id, "messages": one.messages,
                        "repeats": one.repeats, "state": one.state })
            })
            .collect();
        json!({ "ok": ok, "ways": ways, "went_out": out })
    }
}
