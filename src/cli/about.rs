//! `version`.

use clap::Args;
use serde_json::json;

use super::Shell;
use super::exit::Exit;
use super::terminal::{Format, print, print_json};

#[derive(Args)]
pub struct VersionArgs {
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub fn run(shell: &Shell, args: VersionArgs) -> anyhow::Result<Exit> {
    let version = env!("CARGO_PKG_VERSION");
    if args.json || shell.look.format == Format::Json {
        let build = if cfg!(debug_assertions) { "debug" } else { "release" };
        print_json(&json!({ "name": "belfry", "version": version, "build": build, "target": std::env::consts::ARCH }))?;
    } else {
        print(&format!("belfry {version}\n"))?;
    }
    Ok(Exit::Ok)
}
