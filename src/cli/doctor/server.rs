//! The server that runs here, if one does: on this store, on a shared one, or on another.

use std::time::Duration;

use super::super::client::{Answer, Client, Patience, ServerArgs};
use super::super::exit::Failure;
use super::super::local::LocalDir;
use super::super::status::Readiness;
use super::{Check, HELD, Verdict, shown};
use crate::config::Config;

/// How long a program on this machine may take to take a connection.
const MOMENT: Duration = Duration::from_secs(1);

async fn asked(config: &Config) -> Result<(Client, Answer), Failure> {
    let client = Client::look_for(&ServerArgs::default(), config, Patience::Short)?;
    let answer = client.get("/readyz?verbose").await?;
    Ok((client, answer))
}

/// The server that holds the store.
pub(super) async fn of_the_store(config: &Config) -> Check {
    match asked(config).await {
        Ok((_, answer)) if holds(&answer) => Check::new("server", Verdict::Finding, HELD),
        Ok((client, answer)) if answer.status.is_success() => {
            let what = format!("ready at {}{}: it made a real write and read", client.base(), roles(&answer));
            Check::new("server", Verdict::Good, what)
        }
        Ok((client, answer)) => not_ready(&client, &answer),
        Err(failure) => {
            let what = format!("one holds {}, but does not answer: {failure}", shown(config));
            Check::new("server", Verdict::Finding, what)
        }
    }
}

/// Several nodes may share a Redis: one that is reached from here says what it does.
pub(super) async fn one_of_several(config: &Config) -> Check {
    match asked(config).await {
        Ok((client, answer)) if answer.status.is_success() => {
            Check::new("server", Verdict::Good, format!("ready at {}{}", client.base(), roles(&answer)))
        }
        Ok((client, answer)) => not_ready(&client, &answer),
        Err(_) => Check::new("server", Verdict::Note, "no node of this store answers on this machine"),
    }
}

fn not_ready(client: &Client, answer: &Answer) -> Check {
    let (base, status) = (client.base(), answer.status.as_u16());
    let why = match read(answer) {
        Some(it) if !it.why_not().is_empty() => it.why_not(),
        Some(_) | None => "it does not say why".into(),
    };
    Check::new("server", Verdict::Finding, format!("{base} answers {status}: not ready: {why}"))
}

fn read(answer: &Answer) -> Option<Readiness> {
    answer.read("what a server says about itself").ok()
}

/// ` as api, worker`; nothing of a server that does not say.
fn roles(answer: &Answer) -> String {
    match read(answer) {
        Some(it) if !it.roles.is_empty() => format!(" as {}", it.roles.join(", ")),
        Some(_) | None => String::new(),
    }
}

fn holds(answer: &Answer) -> bool {
    read(answer).is_some_and(|it| it.ready && it.holds())
}

/// Nobody has this store open. Somebody else may have the address, or run here on another store.
pub(super) async fn none_here(config: &Config) -> Check {
    if LocalDir::of(config).server().is_some()
        && let Ok((client, answer)) = asked(config).await
        && let Some(it) = read(&answer)
    {
        let stands = if it.ready { "ready" } else { "not ready" };
        let what = format!(
            "{stands} at {}{}, on another store than this configuration's: give the same --config to look at it",
            client.base(),
            roles(&answer)
        );
        return Check::new("server", Verdict::Note, what);
    }
    let listen = config.http.listen;
    let taken = listen.port() != 0 && std::net::TcpStream::connect_timeout(&listen, MOMENT).is_ok();
    let what = if taken {
        format!(
            "none runs on this store; another program answers at {listen}, so that a start here needs --port or \
             another http.listen"
        )
    } else {
        "none runs on this store".into()
    };
    Check::new("server", Verdict::Note, what)
}
