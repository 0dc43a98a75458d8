//! The command line: reads arguments, runs one command, prints its result, and turns its end into
//! an exit code. What the commands do is done elsewhere: by the server over its API, or by the
//! wiring in [`crate::app`].

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::config::{Config, ConfigErrors, Sources};

mod about;
mod act;
mod cancel;
mod check_config;
mod client;
mod csv;
mod demo;
mod doctor;
mod drill;
mod exit;
mod explain;
mod export;
mod filters;
mod find;
mod health;
mod keys;
mod local;
mod pauses;
mod preferences;
mod progress;
mod restored;
mod schedules;
mod send;
mod serve;
mod spans;
mod status;
mod suppressions;
mod templates;
mod terminal;
mod vapid;
mod view;
mod way;

use exit::{Exit, code_of};
use terminal::{Format, Look};

/// Notification delivery: one intent, one effect, whatever is repeated on the way
#[derive(Parser)]
#[command(name = "belfry", version, after_help = AFTER_HELP)]
struct Cli {
    /// Configuration file, merged over the embedded defaults
    #[arg(long, global = true, env = "BELFRY_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// How results are printed; with json, errors are a problem object on standard output too
    #[arg(long, global = true, value_enum, default_value = "table", value_name = "FORMAT")]
    output: Format,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "Exit codes: 0 ok, 1 failed, 2 usage, 3 findings, 75 retry later (the server is away), \
                          78 configuration.";

#[derive(Subcommand)]
enum Command {
    /// Start the server
    Serve(serve::ServeArgs),
    /// Send one notification; prints the key that makes a repeat harmless
    Send(Box<send::SendArgs>),
    /// Find notifications, newest first, by recipient, address, group, class, template, time, key and so on
    Find(Box<find::FindArgs>),
    /// Cancel a notification, or all that filters find
    Cancel(Box<cancel::CancelArgs>),
    /// Put a failed or parked delivery back in the queue, under the same send
    Redrive(act::RedriveArgs),
    /// Send a delivery's message again, as another message
    SendAgain(act::SendAgainArgs),
    /// Say what became of a delivery whose outcome is unknown, or that is parked
    Resolve(act::ResolveArgs),
    /// Show where a notification stands, or without an id how the server does
    Status(status::StatusArgs),
    /// Draw what happened to a notification, and why; as JSON the same as `status`
    Explain(explain::ExplainArgs),
    /// Check the configuration and show what counts, and where from
    CheckConfig,
    /// Look over configuration, store, disk, clock, providers and templates
    Doctor,
    /// Ask a server whether it is ready; for container health checks
    Health(health::HealthArgs),
    /// Create, list and revoke API keys
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Show what is held since the store was restored from a backup; release or cancel it
    Restored(restored::RestoredArgs),
    /// What waits until it is resumed: all, a channel, a provider, a class, a template or a group, of one tenant or of all
    #[command(subcommand)]
    Pauses(pauses::PausesCommand),
    /// What is sent again and again, at times of a zone, and when next
    #[command(subcommand)]
    Schedules(schedules::SchedulesCommand),
    /// What a recipient wants to hear, and a link to their own page
    #[command(subcommand)]
    Preferences(preferences::PreferencesCommand),
    /// Addresses that nothing, or nothing of a category, may go to
    #[command(subcommand)]
    Suppressions(suppressions::SuppressionsCommand),
    /// Check and try out templates
    #[command(subcommand)]
    Templates(templates::TemplatesCommand),
    /// Make the key for web push, and print its public half
    #[command(subcommand)]
    Vapid(vapid::VapidCommand),
    /// Start a server, send one of each template, repeat each ten ways, show what was caught
    Demo(demo::DemoArgs),
    /// Walk the path with a fault at every hop, with each guard and without, on servers of its own
    Drill(drill::DrillArgs),
    /// Print a completion script
    Completion { shell: clap_complete::Shell },
    /// Print the version
    Version(about::VersionArgs),
}

/// What every command gets.
struct Shell {
    sources: Sources,
    look: Look,
}

impl Shell {
    /// # Errors
    /// Every problem of the configuration, with exit code 78.
    fn config(&self) -> Result<Config, ConfigErrors> {
        Config::load(&self.sources)
    }

    /// The flag for the same configuration, as another command takes it.
    fn again(&self) -> String {
        let file = self.sources.file.as_ref();
        file.map(|path| format!(" --config {}", client::quoted(&path.to_string_lossy()))).unwrap_or_default()
    }
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let shell = Shell { sources: Sources::from_environment(cli.config), look: Look::new(cli.output) };
    match run(&shell, cli.command) {
        Ok(exit) => exit.into(),
        Err(error) => {
            if shell.look.format == Format::Json
                && let Err(unread) = terminal::print_json(&exit::as_json(&error))
            {
                eprintln!("belfry: {unread}");
            }
            eprintln!("belfry: {error:#}");
            code_of(&error).into()
        }
    }
}

fn run(shell: &Shell, command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Completion { shell: kind } => {
            let mut script = Vec::new();
            clap_complete::generate(kind, &mut Cli::command(), "belfry", &mut script);
            terminal::print(&String::from_utf8(script)?)?;
            Ok(Exit::Ok)
        }
        Command::Version(args) => about::run(shell, args),
        Command::CheckConfig => check_config::run(shell),
        Command::Templates(command) => templates::run(shell, &command),
        Command::Vapid(command) => vapid::run(shell, &command),
        Command::Serve(args) => runtime()?.block_on(serve::run(shell, &args)),
        Command::Send(args) => runtime()?.block_on(send::run(shell, &args)),
        Command::Find(args) => runtime()?.block_on(find::run(shell, &args)),
        Command::Cancel(args) => runtime()?.block_on(cancel::run(shell, &args)),
        Command::Redrive(args) => runtime()?.block_on(act::redrive(shell, &args)),
        Command::SendAgain(args) => runtime()?.block_on(act::send_again(shell, &args)),
        Command::Resolve(args) => runtime()?.block_on(act::resolve(shell, &args)),
        Command::Status(args) => runtime()?.block_on(status::run(shell, &args)),
        Command::Explain(args) => runtime()?.block_on(explain::run(shell, &args)),
        Command::Doctor => runtime()?.block_on(doctor::run(shell)),
        Command::Health(args) => runtime()?.block_on(health::run(shell, &args)),
        Command::Keys(command) => runtime()?.block_on(keys::run(shell, command)),
        Command::Restored(args) => runtime()?.block_on(restored::run(shell, &args)),
        Command::Schedules(command) => runtime()?.block_on(schedules::run(shell, &command)),
        Command::Preferences(command) => runtime()?.block_on(preferences::run(shell, &command)),
        Command::Pauses(command) => runtime()?.block_on(pauses::run(shell, &command)),
        Command::Suppressions(command) => runtime()?.block_on(suppressions::run(shell, &command)),
        Command::Drill(args) => runtime()?.block_on(drill::run(shell, &args)),
        Command::Demo(args) => runtime()?.block_on(demo::run(shell, &args)),
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_hold_together() {
        Cli::command().debug_assert();
    }
}
