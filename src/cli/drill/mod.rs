//! `drill`: a fault at every hop of the path, with each guard and without; what a person would have got.

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::Shell;
use super::exit::{Exit, Failure};
use super::terminal::{Colour, Format, Look, colour_on_stderr, print, print_json};
use crate::config::{Config, LogConfig, LogFormat, Sources, StoreKind};
use crate::machine::{MachineClock, MachineDice};
use crate::ops::drill::{Class, Drill, Guard, Hop, LATER, Row, SCENES, Scene};
use crate::ports::clock::{Clock, Dice};
use crate::telemetry::start_logging;

mod ground;
mod server;

use ground::DrillGround;

#[derive(Args)]
pub struct DrillArgs {
    /// Only this hop: app, balancer, api, worker, provider
    #[arg(long, value_name = "HOP")]
    hop: Option<Hop>,
    /// Only classes of this order: send_then_record, record_then_send
    #[arg(long, value_name = "ORDER")]
    class: Option<Class>,
    /// Decides what is left open; the same seed plays the same
    #[arg(long)]
    seed: Option<u64>,
    /// A Redis to use instead of one of the drill's own, under keys of its own that are removed again
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    redis: Option<String>,
    /// On what to drill
    #[arg(long, value_enum, default_value = "redis")]
    store: On,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum On {
    /// A Redis server of the drill's own
    Redis,
    /// Files of the drill's own
    Sqlite,
}

pub async fn run(shell: &Shell, args: &DrillArgs) -> anyhow::Result<Exit> {
    start_logging(&LogConfig { format: LogFormat::Pretty, level: "error".into() }, colour_on_stderr())?;
    let seed = args.seed.unwrap_or_else(|| MachineDice.roll() >> 32);
    let config = configured(shell, args)?;
    let began = MachineClock.boot();
    let ground = Arc::new(
        DrillGround::new(config, args.redis.as_deref(), u32::try_from(MachineDice.roll() >> 32).unwrap_or_default())
            .await?,
    );
    let drill = Drill { ground: ground.clone(), seed };
    let wanted = |scene: &&Scene| {
        args.hop.is_none_or(|hop| hop == scene.hop) && args.class.is_none_or(|class| class == scene.class)
    };
    let scenes: Vec<&Scene> = SCENES.iter().filter(wanted).collect();
    let board = Board { look: shell.look, seed };
    let played = tokio::select! {
        biased;
        // What it made is taken away all the same.
        _ = tokio::signal::ctrl_c() => Err(Failure::new(Exit::Failed, "interrupted").into()),
        played = walk(&board, &drill, &ground, &scenes) => played,
    };
    let store = ground.store();
    drop(drill);
    if let Some(ground) = Arc::into_inner(ground) {
        ground.end().await?;
    }
    let rows = played?;
    let kept = rows.iter().all(Row::was_kept);
    let took = MachineClock.boot().saturating_sub(began);
    match shell.look.format {
        Format::Json => print_json(&as_json(&rows, seed, store, took))?,
        Format::Table => board.sum_up(&rows, took)?,
    }
    Ok(if kept { Exit::Ok } else { Exit::Findings })
}

/// The embedded defaults, and of the configuration only how a given Redis is logged into.
fn configured(shell: &Shell, args: &DrillArgs) -> anyhow::Result<Config> {
    let mut config = Config::load(&Sources::default())?;
    if args.redis.is_some() {
        config.store.redis = shell.config()?.store.redis;
    }
    config.store.kind = match args.store {
        On::Redis => StoreKind::Redis,
        On::Sqlite => StoreKind::Sqlite,
    };
    Ok(config)
}

async fn walk(board: &Board, drill: &Drill, ground: &DrillGround, scenes: &[&Scene]) -> anyhow::Result<Vec<Row>> {
    board.begin(ground.store())?;
    let mut rows: Vec<Row> = Vec::with_capacity(scenes.len());
    for scene in scenes {
        if rows.last().is_none_or(|row| row.hop != scene.hop) {
            board.hop(scene.hop)?;
        }
        board.scene(scene)?;
        let row = drill.play(scene).await?;
        ground.clear().await;
        board.row(&row)?;
        rows.push(row);
    }
    Ok(rows)
}

/// The table, which fills while the drill goes on. Programs get one document at the end.
struct Board {
    look: Look,
    seed: u64,
}

impl Board {
    const FAULT: usize = 49;
    const ORDER: usize = 18;
    const GUARD: usize = 29;

    fn write(&self, text: &str) -> anyhow::Result<()> {
        if self.look.format == Format::Table {
            print(text)?;
        }
        Ok(())
    }

    fn begin(&self, store: &str) -> anyhow::Result<()> {
        let (fault, order, guard) = (Self::FAULT, Self::ORDER, Self::GUARD);
        self.write(&format!("Copies that one person gets of one message, on {store}. Seed {}.\n\n", self.seed))?;
        let heading = format!(
            "{:<fault$}{:<order$}{:<guard$}{:>4}{:>9}  {}\n",
            "FAULT", "CLASS", "GUARD", "WITH", "WITHOUT", "AND"
        );
        self.write(&self.look.paint(Colour::Faint, &heading))
    }

    fn hop(&self, hop: Hop) -> anyhow::Result<()> {
        self.write(&format!("{}\n", self.look.paint(Colour::Bold, hop.name())))
    }

    fn scene(&self, scene: &Scene) -> anyhow::Result<()> {
        let (fault, order, guard) = (Self::FAULT, Self::ORDER, Self::GUARD);
        let (name, class) = (format!("  {}", scene.fault.name()), scene.class.name());
        self.write(&format!("{name:<fault$}{class:<order$}{:<guard$}", scene.guard.name()))
    }

    fn row(&self, row: &Row) -> anyhow::Result<()> {
        let right = if row.with.is_right() { Colour::Green } else { Colour::Red };
        let with = self.look.paint(right, &format!("{:>4}", row.with.received));
        let wrong = if row.without.is_right() { Colour::Yellow } else { Colour::Red };
        let without = self.look.paint(wrong, &format!("{:>9}", row.without.received));
        let and = match (row.with.broken.as_slice(), row.without.broken.first()) {
            ([], Some(promise)) => promise.clone(),
            ([], None) if row.without.received == 1 => "no damage shown".to_owned(),
            ([], None) => "not what was asked for".to_owned(),
            (broken, _) => format!("with the guard on: {}", broken.join("; ")),
        };
        self.write(&format!("{with}{without}  {and}\n"))
    }

    fn sum_up(&self, rows: &[Row], took: Duration) -> anyhow::Result<()> {
        for (hop, with) in LATER {
            self.write(&self.look.paint(Colour::Faint, &format!("{hop}: joins with {with}\n")))?;
        }
        let verdict = match (rows.iter().all(Row::was_kept), rows.iter().all(|row| row.with.is_right())) {
            (true, true) => {
                self.look.paint(Colour::Green, "With all guards on everybody got one copy and no promise was broken.")
            }
            (true, false) => self.look.paint(Colour::Yellow, "With all guards on no promise was broken."),
            (false, _) => self.look.paint(Colour::Red, "With all guards on a promise was broken."),
        };
        let idle: Vec<&str> = idle_guards(rows).map(Guard::name).collect();
        let idle = match idle.as_slice() {
            [] => String::new(),
            guards => format!("No damage was shown without: {}.\n", guards.join(", ")),
        };
        self.write(&format!("\n{verdict}\n{idle}{} plays in {:.1} s.\n", rows.len() * 2, took.as_secs_f64()))
    }
}

fn played_guards(rows: &[Row]) -> impl Iterator<Item = Guard> {
    Guard::ALL.into_iter().filter(|guard| rows.iter().any(|row| row.guard == *guard))
}

/// Guards that made no difference in any of their scenes.
fn idle_guards(rows: &[Row]) -> impl Iterator<Item = Guard> {
    played_guards(rows).filter(|guard| !rows.iter().any(|row| row.guard == *guard && row.shows_damage()))
}

fn as_json(rows: &[Row], seed: u64, store: &str, took: Duration) -> Value {
    let guard = |guard: Guard| {
        let needed = rows.iter().any(|row| row.guard == guard && row.shows_damage());
        json!({ "guard": guard.name(), "off": guard.off(), "shows_damage": needed })
    };
    let later = LATER.map(|(hop, with)| json!({ "hop": hop, "joins_with": with }));
    json!({
        "ok": rows.iter().all(Row::was_kept),
        "seed": seed,
        "store": store,
        "took_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "rows": rows,
        "guards": played_guards(rows).map(guard).collect::<Vec<_>>(),
        "later": later,
    })
}
