//! The built program, from outside.

mod asking;
mod cancelling;
mod keys;
mod looking;
mod pausing;
mod preferring;
mod reloading;
mod restored;
mod roles;
mod running;
mod scheduling;
mod serving;
mod settings;
mod starting;
mod suppressing;
mod terminal;
mod usage;
mod vapid;

use std::path::Path;
use std::process::{Command, Output};

/// How a command ended and what it said.
#[derive(Debug)]
struct Done {
    code: i32,
    out: String,
    err: String,
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The program in `dir`, with nothing of this machine's environment.
fn belfry(dir: &Path, args: &[&str], env: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_belfry"));
    command.current_dir(dir).env_clear().args(args).envs(env.iter().copied());
    command
}

fn run(dir: &Path, args: &[&str], env: &[(&str, &str)]) -> Done {
    belfry(dir, args, env).output().unwrap().into()
}
