//! `vapid generate`, `vapid import` and `vapid public`: the key that browsers' subscriptions are bound to.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use serde_json::json;

use super::Shell;
use super::exit::{Exit, Failure};
use super::terminal::{Format, print, print_json};
use crate::app::vapid::{self, GeneratedKey};
use crate::text_file;

#[derive(Subcommand)]
pub enum VapidCommand {
    /// Make a key for web push, once: every subscription is bound to the key that it was made with
    Generate {
        /// The new file; one that is there already is never touched
        #[arg(long, value_name = "FILE", default_value = "vapid.pem")]
        out: PathBuf,
    },
    /// Take over a key that was made elsewhere, so that its subscriptions stay
    Import {
        /// `{"publicKey": "…", "privateKey": "…"}`, as npm's web-push writes it
        #[arg(value_name = "JSON_FILE")]
        from: PathBuf,
        /// The new file; one that is there already is never touched
        #[arg(long, value_name = "FILE", default_value = "vapid.pem")]
        out: PathBuf,
    },
    /// Print a key's public half, which browsers subscribe with (applicationServerKey)
    Public {
        /// A file that `vapid generate` made
        file: PathBuf,
    },
}

pub fn run(shell: &Shell, command: &VapidCommand) -> anyhow::Result<Exit> {
    match command {
        VapidCommand::Generate { out } => written(shell, &vapid::generate(), out),
        VapidCommand::Import { from, out } => written(shell, &imported(from)?, out),
        VapidCommand::Public { file } => public(shell, file),
    }
}

/// As npm's web-push writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Foreign {
    public_key: String,
    private_key: String,
}

fn imported(from: &Path) -> anyhow::Result<GeneratedKey> {
    let refused = |why: String| Failure::new(Exit::Usage, format!("{} {why}", from.display()));
    let text = text_file::read(from, text_file::SMALL).map_err(|error| refused(format!("cannot be read: {error}")))?;
    // Nothing of the file is quoted: it holds a secret.
    let shape = "holds no {\"publicKey\": \"…\", \"privateKey\": \"…\"}";
    let key: Foreign = serde_json::from_str(&text).map_err(|_| refused(shape.to_owned()))?;
    let unfit = "holds no P-256 key: 32 and 65 bytes in base64url that belong together";
    Ok(vapid::import(&key.private_key, &key.public_key).map_err(|_| refused(unfit.to_owned()))?)
}

fn written(shell: &Shell, key: &GeneratedKey, out: &Path) -> anyhow::Result<Exit> {
    // Whoever loses a key loses every subscription made with it.
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(out);
    let written = made.and_then(|mut file| {
        file.write_all(key.pem.expose_secret().as_bytes())?;
        file.sync_all()
    });
    if let Err(error) = written {
        let text = match error.kind() {
            ErrorKind::AlreadyExists => format!(
                "{} is there already; subscriptions made with its key would be lost. `belfry vapid public` prints its \
                 public half; --out names another file",
                out.display()
            ),
            _ => format!("{} cannot be written: {error}", out.display()),
        };
        return Err(Failure::new(Exit::Usage, text).into());
    }
    match shell.look.format {
        Format::Json => print_json(&json!({ "file": out, "public_key": key.public }))?,
        Format::Table => print(&format!(
            "Wrote {file}. Keep it and back it up: without it no subscription made with it can be sent to.\n\n\
             The public half, for pushManager.subscribe({{ applicationServerKey }}):\n\n  {public}\n\n\
             In the configuration:\n\n  [providers.web]\n  kind = \"web_push\"\n  vapid_key_file = \"{file}\"\n  \
             subject = \"mailto:ops@example.com\"\n\n  [channels.web_push]\n  providers = [\"web\"]\n",
            file = out.display(),
            public = key.public
        ))?,
    }
    Ok(Exit::Ok)
}

fn public(shell: &Shell, file: &Path) -> anyhow::Result<Exit> {
    let refused = |why: String| Failure::new(Exit::Usage, format!("{} {why}", file.display()));
    let pem = text_file::read(file, text_file::SMALL).map_err(|error| refused(format!("cannot be read: {error}")))?;
    let public = vapid::public_of(&pem).map_err(|error| refused(error.to_string()))?;
    match shell.look.format {
        Format::Json => print_json(&json!({ "file": file, "public_key": public }))?,
        Format::Table => print(&format!("{public}\n"))?,
    }
    Ok(Exit::Ok)
}
