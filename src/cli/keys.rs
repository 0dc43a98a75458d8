//! `keys`: API keys. Over the API while a server holds the store, straight in the store otherwise.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::Shell;
use super::client::{Client, ServerArgs};
use super::exit::{Exit, Failure};
use super::terminal::{Colour, Format, print, print_json, table};
use super::way::{Way, failed};
use crate::app::Stores;
use crate::config::{Config, near_match};
use crate::http::keys::{LIVE, MOST_NAME, NewKey, RANDOM_BYTES, TEST, refused_environment, refused_name};
use crate::http::keys_api::{CreatedKey, KeyList, KeyView};
use crate::machine::{MachineClock, MachineDice};
use crate::ports::admin::Can;
use crate::ports::clock::{Clock, Dice};

/// Of a key made straight in the store, where there is no key that asks.
const TENANT: &str = "default";
const NAMESPACE: &str = "main";

#[derive(Subcommand)]
pub enum KeysCommand {
    /// Make a key; it is shown once
    Create(CreateArgs),
    /// Show every key, without the keys themselves
    List {
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Make a key useless from now on
    Revoke {
        /// Its public name: key_…
        id: String,
        #[command(flatten)]
        server: ServerArgs,
    },
}

#[derive(Args)]
pub struct CreateArgs {
    /// What you call it, for lists
    #[arg(long)]
    name: Option<String>,
    /// Whose it is; absent: "default", over the API the tenant of the key that asks
    #[arg(long)]
    tenant: Option<String>,
    /// "live", "test" (always to the outbox), or a configured one; absent: "live", over the API that
    /// of the key that asks
    #[arg(long = "env", value_name = "ENVIRONMENT")]
    environment: Option<String>,
    /// What it may do
    #[arg(long, value_enum, value_delimiter = ',', default_value = "send,read")]
    can: Vec<CanArg>,
    /// Callers with the same namespace share their Idempotency-Keys; absent: "main", over the API
    /// that of the key that asks
    #[arg(long)]
    namespace: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum CanArg {
    /// Send and cancel, empty the outbox
    Send,
    /// Read, list and search, look into the outbox
    Read,
    /// Redrive, send again and resolve; make and revoke keys
    Admin,
}

impl From<CanArg> for Can {
    fn from(can: CanArg) -> Self {
        match can {
            CanArg::Send => Self::Send,
            CanArg::Read => Self::Read,
            CanArg::Admin => Self::Admin,
        }
    }
}

impl KeysCommand {
    const fn server(&self) -> &ServerArgs {
        match self {
            Self::Create(args) => &args.server,
            Self::List { server } | Self::Revoke { server, .. } => server,
        }
    }
}

pub async fn run(shell: &Shell, command: KeysCommand) -> anyhow::Result<Exit> {
    let config = shell.config()?;
    if let KeysCommand::Create(args) = &command {
        args.check()?;
    }
    match Way::to_the_store(&config, command.server(), "keys go").await? {
        Way::Api(client) => over_the_api(shell, &command, &client).await,
        Way::Store(stores) => {
            let done = in_the_store(shell, &command, &config, &stores).await;
            stores.close().await;
            done
        }
    }
}

async fn over_the_api(shell: &Shell, command: &KeysCommand, client: &Client) -> anyhow::Result<Exit> {
    match command {
        KeysCommand::Create(args) => {
            let answer = client.post("/v1/keys", None, args.asked().to_string()).await?;
            let made: CreatedKey = answer.ok_by_flags(&flag_of)?.read("an API key")?;
            created(shell, &made, None)
        }
        KeysCommand::List { .. } => {
            let all: KeyList = client.get("/v1/keys").await?.ok()?.read("a list of API keys")?;
            listed(shell, &all)
        }
        KeysCommand::Revoke { id, .. } => {
            let id = checked_id(id)?;
            let answer = client.delete(&format!("/v1/keys/{id}")).await?.ok()?;
            let already = answer.replayed;
            revoked(shell, &answer.read("an API key")?, already)
        }
    }
}

async fn in_the_store(shell: &Shell, command: &KeysCommand, config: &Config, stores: &Stores) -> anyhow::Result<Exit> {
    let keys = stores.api_keys.as_ref();
    match command {
        KeysCommand::Create(args) => {
            let (secret, key) = args.new_key(config)?.made(random(), MachineClock.now());
            keys.create(key.clone()).await.map_err(failed)?;
            created(shell, &CreatedKey { key: secret, about: KeyView::new(&key) }, Some(config))
        }
        KeysCommand::List { .. } => {
            let all = keys.list().await.map_err(failed)?;
            listed(shell, &KeyList::of(&all))
        }
        KeysCommand::Revoke { id, .. } => {
            let gone = || Failure::new(Exit::Failed, "there is no such key");
            let id = checked_id(id)?;
            let before = keys.by_id(id).await.map_err(failed)?.ok_or_else(gone)?;
            keys.revoke(id, MachineClock.now()).await.map_err(failed)?;
            let now = keys.by_id(id).await.map_err(failed)?.ok_or_else(gone)?;
            revoked(shell, &KeyView::new(&now), before.revoked_at.is_some())
        }
    }
}

/// It becomes part of a URL.
fn checked_id(id: &str) -> Result<&str, Failure> {
    let fits = id.strip_prefix("key_").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()));
    if fits { Ok(id) } else { Err(Failure::new(Exit::Usage, "expected a key's public name: key_…, see `keys list`")) }
}

fn random() -> [u8; RANDOM_BYTES] {
    let mut random = [0; RANDOM_BYTES];
    for part in random.chunks_mut(8) {
        let roll = MachineDice.roll().to_be_bytes();
        part.copy_from_slice(&roll[..part.len()]);
    }
    random
}

/// The flag that a field of the request came from.
fn flag_of(pointer: &str) -> Option<String> {
    let flag = match pointer {
        "/name" => "--name",
        "/tenant" => "--tenant",
        "/environment" => "--env",
        "/namespace" => "--namespace",
        _ if pointer.starts_with("/can") => "--can",
        _ => return None,
    };
    Some(flag.into())
}

impl CreateArgs {
    fn check(&self) -> Result<(), Failure> {
        let names = [("--tenant", &self.tenant), ("--env", &self.environment), ("--namespace", &self.namespace)];
        for (flag, name) in names {
            if let Some(why) = name.as_deref().and_then(refused_name) {
                return Err(Failure::new(Exit::Usage, format!("{flag}: {why}")));
            }
        }
        let fits = |name: &String| (1..=MOST_NAME).contains(&name.chars().count()) && !name.contains(char::is_control);
        if self.name.as_ref().is_some_and(|name| !fits(name)) {
            return Err(Failure::new(Exit::Usage, format!("--name: must be one line of 1 to {MOST_NAME} characters")));
        }
        Ok(())
    }

    fn can(&self) -> Vec<Can> {
        self.can.iter().copied().map(Can::from).collect()
    }

    /// The request; what was not given is left to the key that asks.
    fn asked(&self) -> Value {
        let mut body = json!({ "can": self.can() });
        let given = [
            ("name", &self.name),
            ("tenant", &self.tenant),
            ("environment", &self.environment),
            ("namespace", &self.namespace),
        ];
        for (member, value) in given {
            if let Some(value) = value {
                body[member] = value.as_str().into();
            }
        }
        body
    }

    fn new_key(&self, config: &Config) -> Result<NewKey, Failure> {
        let or = |given: &Option<String>, default: &str| given.clone().unwrap_or_else(|| default.to_owned());
        let environment = or(&self.environment, LIVE);
        let configured: Vec<String> = config.environments.keys().cloned().collect();
        if let Some(why) = refused_environment(&environment, &configured) {
            let known = configured.iter().map(String::as_str).chain([LIVE, TEST]);
            let near =
                near_match(&environment, known).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            return Err(Failure::new(Exit::Usage, format!("--env: {environment} {why}{near}")));
        }
        Ok(NewKey {
            name: self.name.clone(),
            tenant: or(&self.tenant, TENANT),
            environment,
            namespace: or(&self.namespace, NAMESPACE),
            can: self.can(),
        })
    }
}

/// `config`: the installation's own, where it is known.
fn created(shell: &Shell, made: &CreatedKey, config: Option<&Config>) -> anyhow::Result<Exit> {
    if shell.look.format == Format::Json {
        print_json(made)?;
        return Ok(Exit::Ok);
    }
    let about = &made.about;
    let name = about.name.as_ref().map(|name| format!(" \"{name}\"")).unwrap_or_default();
    let sends = about.can.contains(&Can::Send);
    let goes = if sends { format!(" {}", where_to(&about.environment, config)) } else { String::new() };
    let may: Vec<&str> = about.can.iter().map(|can| words(*can)).collect();
    print(&format!(
        "{}\n\n{}{name}, for tenant {}, environment {}, namespace {}. It is shown this once.\nIt may {}.{}\n",
        shell.look.paint(Colour::Bold, &made.key),
        about.id,
        about.tenant,
        about.environment,
        about.namespace,
        may.join("; "),
        goes,
    ))?;
    Ok(Exit::Ok)
}

const fn words(can: Can) -> &'static str {
    match can {
        Can::Send => "send and cancel",
        Can::Read => "read, list and search",
        Can::Admin => "redrive, send again, resolve, make and revoke keys",
    }
}

fn where_to(environment: &str, config: Option<&Config>) -> String {
    let allow = config.and_then(|config| config.environments.get(environment)).map(|one| &one.allow);
    match allow {
        _ if environment == TEST => "What it sends always goes to the outbox.".into(),
        Some(None) => format!("What it sends goes to the outbox: see [environments.{environment}]."),
        Some(Some(_)) => format!("What it sends goes to whom [environments.{environment}] allows, else to the outbox."),
        None if environment == LIVE => "What it sends really goes out.".into(),
        None => format!("Where what it sends may go stands in [environments.{environment}]."),
    }
}

fn revoked(shell: &Shell, key: &KeyView, already: bool) -> anyhow::Result<Exit> {
    let at = key.revoked_at.clone().unwrap_or_default();
    match shell.look.format {
        Format::Json => print_json(&json!({ "id": key.id, "revoked": true, "revoked_at": at, "already": already }))?,
        Format::Table if already => print(&format!("{} had been revoked already, at {at}\n", key.id))?,
        Format::Table => print(&format!("{} is revoked: it lets nobody in any more\n", key.id))?,
    }
    Ok(Exit::Ok)
}

fn listed(shell: &Shell, keys: &KeyList) -> anyhow::Result<Exit> {
    if shell.look.format == Format::Json {
        print_json(keys)?;
        return Ok(Exit::Ok);
    }
    let row = |key: &KeyView| {
        let can: Vec<&str> = key.can.iter().map(|can| can.name()).collect();
        let state = match (&key.revoked_at, key.operator) {
            (Some(at), _) => format!("revoked {at}"),
            (None, true) => "the operator's".into(),
            (None, false) => String::new(),
        };
        vec![
            key.id.clone(),
            key.name.clone().unwrap_or_default(),
            key.tenant.clone(),
            key.environment.clone(),
            key.namespace.clone(),
            can.join(","),
            key.created_at.clone(),
            state,
        ]
    };
    let rows: Vec<Vec<String>> = keys.keys().iter().map(row).collect();
    print(&table(&shell.look, &["ID", "NAME", "TENANT", "ENV", "NAMESPACE", "CAN", "CREATED", "STATE"], &rows))?;
    Ok(Exit::Ok)
}
