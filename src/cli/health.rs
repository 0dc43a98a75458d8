//! `health`: 0 or 1, nothing between, as container runtimes want it.

use clap::Args;
use serde_json::json;

use super::Shell;
use super::client::{Client, ServerArgs};
use super::exit::{Exit, Failure};
use super::terminal::{Format, print, print_json};

#[derive(Args)]
pub struct HealthArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Ask only whether it lives, not whether it is ready for work
    #[arg(long)]
    live: bool,
}

pub async fn run(shell: &Shell, args: &HealthArgs) -> anyhow::Result<Exit> {
    let client = Client::discover(&args.server, &shell.config()?)?;
    let path = if args.live { "/livez" } else { "/readyz" };
    // Away is as unhealthy as it gets: no 75 here, whose meaning a container runtime does not know.
    let answer = client.get(path).await.map_err(|failure| Failure { exit: Exit::Failed, ..failure })?;
    let well = answer.status.is_success();
    if shell.look.format == Format::Json {
        print_json(&json!({ "ok": well, "status": answer.status.as_u16() }))?;
    } else if well {
        print(if args.live { "alive\n" } else { "ready\n" })?;
    }
    if well {
        return Ok(Exit::Ok);
    }
    if shell.look.format == Format::Json {
        return Ok(Exit::Failed);
    }
    Err(Failure::new(Exit::Failed, format!("{}{path} answered {}", client.base(), answer.status.as_u16())).into())
}
