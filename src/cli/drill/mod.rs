//! `drill`: a fault at every hop of the path, with each guard and without; what a person would have got.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::Shell;
use super::exit::{Exit, Failure};
use super::terminal::{Format, colour_on_stderr, print_json};
use crate::app::Stores;
use crate::config::{Config, LogConfig, LogFormat, Sources, StoreKind};
use crate::machine::{MachineClock, MachineDice};
use crate::ops::drill::{Class, Drill, Guard, Hop, LATER, Row, SCENES, Scene};
use crate::ports::clock::{Clock, Dice};
use crate::telemetry::start_logging;

mod board;
mod ground;
mod server;

use board::Board;
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
    // Before anything is made: a signal that comes right after has to find its listener.
    let mut terminated = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let config = configured(shell, args)?;
    if args.redis.is_some() {
        given(&config).await?;
    }
    let began = MachineClock.boot();
    let ground = Arc::new(
        DrillGround::new(config, args.redis.is_some(), u32::try_from(MachineDice.roll() >> 32).unwrap_or_default())
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
        _ = terminated.recv() => Err(Failure::new(Exit::Failed, "terminated").into()),
        _ = tokio::signal::ctrl_c() => Err(Failure::new(Exit::Failed, "interrupted").into()),
        played = walk(&board, &drill, &ground, &scenes) => played,
    };
    let store = ground.store();
    drop(drill);
    let ended = match Arc::into_inner(ground) {
        Some(ground) => ground.end().await,
        None => Ok(()),
    };
    let rows = played.inspect_err(|_| board.write("\n").unwrap_or_default())?;
    ended?;
    let kept = rows.iter().all(Row::was_kept);
    let took = MachineClock.boot().saturating_sub(began);
    match shell.look.format {
        Format::Json => print_json(&as_json(&rows, seed, store, took))?,
        Format::Table => board.write(&board.sum(&rows, took))?,
    }
    Ok(if kept { Exit::Ok } else { Exit::Findings })
}

/// The embedded defaults, and of the configuration only how a given Redis is logged into.
fn configured(shell: &Shell, args: &DrillArgs) -> anyhow::Result<Config> {
    let mut config = Config::load(&Sources::default())?;
    if let Some(url) = &args.redis {
        config.store.redis = shell.config()?.store.redis;
        config.store.redis.url.clone_from(url);
    }
    config.store.kind = match args.store {
        On::Redis => StoreKind::Redis,
        On::Sqlite => StoreKind::Sqlite,
    };
    Ok(config)
}

/// What is wrong with the one that was given is said before anything is drawn.
async fn given(config: &Config) -> anyhow::Result<()> {
    Stores::check_redis(config).map_err(|wrong| {
        let what = wrong.trim_start_matches("store.redis.url: ");
        Failure::new(Exit::Usage, format!("--redis: {what}"))
    })?;
    Stores::reach_redis(config).await
}

async fn walk(board: &Board, drill: &Drill, ground: &DrillGround, scenes: &[&Scene]) -> anyhow::Result<Vec<Row>> {
    board.write(&board.heading(ground.store()))?;
    let mut rows: Vec<Row> = Vec::with_capacity(scenes.len());
    for scene in scenes {
        if rows.last().is_none_or(|row| row.hop != scene.hop) {
            board.write(&board.hop(scene.hop))?;
        }
        board.write(&board.scene(scene))?;
        let row = drill.play(scene).await?;
        ground.clear().await;
        board.write(&board.row(&row))?;
        rows.push(row);
    }
    Ok(rows)
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
