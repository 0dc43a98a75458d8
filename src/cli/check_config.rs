//! `check-config`: what counts and where it came from, or everything that is wrong: what this lets
//! through, `serve` takes.

use serde_json::json;

use super::Shell;
use super::exit::Exit;
use super::terminal::{Colour, Format, print, print_json, table};
use crate::app;
use crate::config::{Config, ConfigErrors, Note, Origin, Problem, Shown};

pub fn run(shell: &Shell) -> anyhow::Result<Exit> {
    let checked = shell.config().and_then(|config| app::check(&config).map(|()| config));
    match (checked, shell.look.format) {
        (Ok(config), Format::Table) => {
            print(&drawn(shell, &config.shown()))?;
            for Note { key, what, .. } in config.notes() {
                print(&format!("note: {key} {what}\n"))?;
            }
            for name in &config.unread {
                print(&format!("note: {name} is not read; keys are overridden by BELFRY__SECTION__KEY\n"))?;
            }
        }
        (Ok(config), Format::Json) => print_json(&listed(&config))?,
        (Err(errors), Format::Table) => return Err(errors.into()),
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
        shown.iter().map(|one| vec![one.key.clone(), one.value.to_string(), origin(one)]).collect();
    table(&shell.look, &["KEY", "VALUE", "FROM"], &rows)
}

fn listed(config: &Config) -> serde_json::Value {
    let one = |one: &Shown| json!({ "key": one.key, "value": one.value.json(), "from": one.origin.to_string() });
    let note = |note: &Note| json!({ "key": note.key, "what": note.what });
    json!({
        "ok": true,
        "settings": config.shown().iter().map(one).collect::<Vec<_>>(),
        "notes": config.notes().iter().map(note).collect::<Vec<_>>(),
        "unread_variables": config.unread,
    })
}

fn refused(errors: &ConfigErrors) -> serde_json::Value {
    let one =
        |problem: &Problem| json!({ "key": problem.key, "problem": problem.what, "from": problem.origin.to_string() });
    json!({ "ok": false, "problems": errors.problems.iter().map(one).collect::<Vec<_>>() })
}
