//! `check-config`: what counts and where it came from, or everything that is wrong.

use serde_json::json;

use super::Shell;
use super::exit::{Exit, Failure};
use super::terminal::{Colour, Format, print, print_json, table};
use crate::config::{Config, ConfigErrors, Origin, Shown};

pub fn run(shell: &Shell) -> anyhow::Result<Exit> {
    match (Config::load(&shell.sources), shell.look.format) {
        (Ok(config), Format::Table) => print(&drawn(shell, &config.shown()))?,
        (Ok(config), Format::Json) => print_json(&listed(&config.shown()))?,
        (Err(errors), Format::Table) => return Err(Failure::new(Exit::Configuration, errors.to_string()).into()),
        (Err(errors), Format::Json) => {
            print_json(&refused(&errors))?;
            return Ok(Exit::Configuration);
        }
    }
    Ok(Exit::Ok)
}

fn drawn(shell: &Shell, shown: &[Shown]) -> String {
    let origin = |one: &Shown| match &one.origin {
        Origin::Default => shell.look.paint(Colour::Faint, "default"),
        origin => shell.look.paint(Colour::Green, &origin.to_string()),
    };
    let rows: Vec<Vec<String>> =
        shown.iter().map(|one| vec![one.key.clone(), one.value.clone(), origin(one)]).collect();
    table(&shell.look, &["KEY", "VALUE", "FROM"], &rows)
}

fn listed(shown: &[Shown]) -> serde_json::Value {
    let one = |one: &Shown| json!({ "key": one.key, "value": one.value, "from": one.origin.to_string() });
    json!({ "ok": true, "settings": shown.iter().map(one).collect::<Vec<_>>() })
}

fn refused(errors: &ConfigErrors) -> serde_json::Value {
    let one = |problem: &crate::config::Problem| json!({ "key": problem.key, "problem": problem.what, "from": problem.origin.to_string() });
    json!({ "ok": false, "problems": errors.problems.iter().map(one).collect::<Vec<_>>() })
}
