//! `keys`: API keys, straight in the store. A running server holds it alone; then this says so.

use belfry_domain::UnixMs;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::Shell;
use super::exit::{Exit, Failure};
use super::terminal::{Colour, Format, print, print_json, table};
use crate::app::probe::{NoStore, open_store};
use crate::http::keys::{RANDOM_BYTES, hash, mint, public_id};
use crate::machine::{MachineClock, MachineDice};
use crate::ports::StoreError;
use crate::ports::admin::{ApiKey, ApiKeys, Can};
use crate::ports::clock::{Clock, Dice};

#[derive(Subcommand)]
pub enum KeysCommand {
    /// Make a key; it is shown once
    Create(CreateArgs),
    /// Show every key, without the keys themselves
    List,
    /// Make a key useless from now on
    Revoke {
        /// Its public name: key_…
        id: String,
    },
}

#[derive(Args)]
pub struct CreateArgs {
    #[arg(long, default_value = "default")]
    tenant: String,
    /// The environment: "test" always goes to the outbox
    #[arg(long = "env", default_value = "live")]
    environment: String,
    /// What it may do
    #[arg(long, value_enum, value_delimiter = ',', default_value = "send,read")]
    can: Vec<CanArg>,
    /// Callers with the same namespace share their Idempotency-Keys
    #[arg(long, default_value = "main")]
    namespace: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum CanArg {
    Send,
    Read,
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

pub async fn run(shell: &Shell, command: KeysCommand) -> anyhow::Result<Exit> {
    let config = shell.config()?;
    if let KeysCommand::Create(args) = &command {
        args.check()?;
    }
    let stores = open_store(&config).map_err(no_store)?;
    let done = carry_out(shell, command, stores.api_keys.as_ref()).await;
    stores.close().await;
    done
}

async fn carry_out(shell: &Shell, command: KeysCommand, keys: &dyn ApiKeys) -> anyhow::Result<Exit> {
    match command {
        KeysCommand::Create(args) => {
            let (secret, key) = args.key();
            keys.create(key.clone()).await.map_err(failed)?;
            created(shell, &secret, &key)
        }
        KeysCommand::List => listed(shell, &keys.list().await.map_err(failed)?),
        KeysCommand::Revoke { id } => {
            if !keys.revoke(&id, MachineClock.now()).await.map_err(failed)? {
                return Err(Failure::new(Exit::Failed, "there is no such key").into());
            }
            match shell.look.format {
                Format::Json => print_json(&json!({ "id": id, "revoked": true }))?,
                Format::Table => print("revoked\n")?,
            }
            Ok(Exit::Ok)
        }
    }
}

fn no_store(error: NoStore) -> Failure {
    match error {
        NoStore::Held => Failure::new(Exit::RetryLater, format!("{error}: stop it first, then give the command again")),
        NoStore::Absent | NoStore::Broken(_) => Failure::new(Exit::Failed, error.to_string()),
    }
}

fn failed(error: StoreError) -> Failure {
    let exit = match error {
        StoreError::Unavailable(_) => Exit::RetryLater,
        StoreError::Corrupt(_) => Exit::Failed,
    };
    Failure::new(exit, error.to_string())
}

impl CreateArgs {
    /// Names become parts of keys and of derived ids.
    fn check(&self) -> Result<(), Failure> {
        for (flag, name) in [("--tenant", &self.tenant), ("--env", &self.environment), ("--namespace", &self.namespace)]
        {
            let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
            if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) {
                let what = format!("{flag}: expected up to 64 lower-case letters, digits, \"-\" and \"_\"");
                return Err(Failure::new(Exit::Usage, what));
            }
        }
        Ok(())
    }

    fn key(&self) -> (String, ApiKey) {
        let mut random = [0; RANDOM_BYTES];
        for chunk in random.chunks_mut(8) {
            chunk.copy_from_slice(&MachineDice.roll().to_be_bytes());
        }
        let secret = mint(&self.environment, random);
        let hash = hash(&secret);
        let mut can: Vec<Can> = self.can.iter().copied().map(Can::from).collect();
        can.sort();
        can.dedup();
        let key = ApiKey {
            id: public_id(&hash),
            name: None,
            tenant: self.tenant.clone(),
            environment: self.environment.clone(),
            namespace: self.namespace.clone(),
            can,
            hash,
            operator: false,
            created_at: MachineClock.now(),
            revoked_at: None,
        };
        (secret, key)
    }
}

fn created(shell: &Shell, secret: &str, key: &ApiKey) -> anyhow::Result<Exit> {
    match shell.look.format {
        Format::Json => print_json(&json!({ "id": key.id, "key": secret }))?,
        Format::Table => print(&format!(
            "{}\n{} for tenant {}, environment {}. It is shown this once.\n",
            shell.look.paint(Colour::Bold, secret),
            key.id,
            key.tenant,
            key.environment
        ))?,
    }
    Ok(Exit::Ok)
}

fn listed(shell: &Shell, keys: &[ApiKey]) -> anyhow::Result<Exit> {
    let may = |key: &ApiKey| key.can.iter().map(|can| name(*can)).collect::<Vec<_>>().join(",");
    let when = |at: UnixMs| jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| "?".into(), |at| at.to_string());
    if shell.look.format == Format::Json {
        let one = |key: &ApiKey| {
            json!({
                "id": key.id, "tenant": key.tenant, "environment": key.environment, "namespace": key.namespace,
                "can": key.can, "created_at": when(key.created_at), "revoked_at": key.revoked_at.map(when),
            })
        };
        print_json(&json!({ "data": keys.iter().map(one).collect::<Vec<_>>() }))?;
        return Ok(Exit::Ok);
    }
    let rows: Vec<Vec<String>> = keys
        .iter()
        .map(|key| {
            vec![
                key.id.clone(),
                key.tenant.clone(),
                key.environment.clone(),
                key.namespace.clone(),
                may(key),
                when(key.created_at),
                key.revoked_at.map_or_else(String::new, |at| format!("revoked {}", when(at))),
            ]
        })
        .collect();
    print(&table(&shell.look, &["ID", "TENANT", "ENV", "NAMESPACE", "CAN", "CREATED", ""], &rows))?;
    Ok(Exit::Ok)
}

const fn name(can: Can) -> &'static str {
    match can {
        Can::Send => "send",
        Can::Read => "read",
        Can::Admin => "admin",
    }
}
