//! All that filters find. Broken off anywhere, the same command finishes it: nothing is cancelled twice.

use std::io::{IsTerminal as _, stderr, stdin};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::super::Shell;
use super::super::client::{Answer, Client};
use super::super::exit::{Exit, Failure};
use super::super::export::Export;
use super::super::filters::flag_of;
use super::super::progress::Progress;
use super::super::terminal::{Format, print, print_json};
use super::super::view::Page;
use super::{CancelArgs, Tally};

const ALL: &str = "/v1/cancellations";
const NOTIFICATIONS: &str = "notifications";
/// What a pause can be of, the narrowest first.
const PAUSABLE: [&str; 3] = ["group", "template", "class"];

#[derive(Deserialize)]
struct CancellationPage {
    #[serde(flatten)]
    tally: Tally,
    next_cursor: Option<String>,
    corrected_run: CorrectedRun,
}

#[derive(Deserialize)]
struct CorrectedRun {
    code: String,
    text: String,
}

/// A pause as its call answers.
#[derive(Deserialize)]
struct Pause {
    id: String,
    #[serde(default)]
    lets_through: Vec<String>,
}

/// The way through all pages.
struct Walk<'a> {
    client: &'a Client,
    filter: &'a Map<String, Value>,
    why: Option<&'a str>,
    dry_run: bool,
    /// Listened for once nobody is asked any more: who is asked is to be able to break it off as ever.
    interrupted: Option<Signal>,
}

/// How far a walk came.
#[derive(Default)]
struct Done {
    all: Tally,
    /// Of the page that comes next.
    cursor: Option<String>,
    corrected_run: Option<CorrectedRun>,
}

pub async fn run(shell: &Shell, args: &CancelArgs, filter: &Map<String, Value>) -> anyhow::Result<Exit> {
    if !args.dry_run && args.why.is_none() {
        return Err(Failure::new(Exit::Usage, "--why: say why; it stands in the timelines").into());
    }
    let client = Client::discover(&args.server, &shell.config()?)?;
    let export = args.export.as_deref().map(Export::to).transpose()?;
    let pause = if args.pause { Some(paused(&client, args, filter).await?) } else { None };
    let why = args.why.as_deref();
    let mut walk = Walk { client: &client, filter, why, dry_run: true, interrupted: None };
    let mut expected = None;
    if !args.dry_run && !args.yes && stdin().is_terminal() && stderr().is_terminal() {
        let counted = walk.page_by_page(args.cursor.clone(), None).await?;
        eprint!("{}Cancel? [y/N] ", counted.all.words(true));
        if !said_yes()? {
            let pause = if pause.is_some() { "; the pause stands" } else { "" };
            return Err(Failure::new(Exit::Failed, format!("nothing was cancelled{pause}")).into());
        }
        expected = Some(counted.all.notifications);
    }
    walk.dry_run = args.dry_run;
    walk.interrupted = Some(signal(SignalKind::interrupt())?);
    let done = walk.page_by_page(args.cursor.clone(), expected).await?;
    let exported = match export {
        Some(export) => Some(walk.exported(export).await.map_err(|failure| {
            let text =
                format!("{failure}\nNothing was exported. It is done all the same: {}", done.all.words(args.dry_run));
            Failure { text, ..failure }
        })?),
        None => None,
    };
    report(shell, args, &done, (pause.as_ref(), exported))
}

fn report(
    shell: &Shell,
    args: &CancelArgs,
    done: &Done,
    (pause, exported): (Option<&Pause>, Option<u64>),
) -> anyhow::Result<Exit> {
    let corrected = done.corrected_run.as_ref().filter(|_| !args.dry_run && done.all.cancelled > 0);
    if shell.look.format == Format::Json {
        let mut members = done.all.members(args.dry_run);
        if let Some(CorrectedRun { code, text }) = corrected {
            members["corrected_run"] = json!({ "code": code, "text": text });
        }
        if let Some(pause) = pause {
            members["paused"] = pause.id.as_str().into();
        }
        if let Some(rows) = exported {
            members["exported"] = rows.into();
        }
        print_json(&members)?;
        return Ok(Exit::Ok);
    }
    let mut text = done.all.words(args.dry_run);
    if let Some(CorrectedRun { text: sentence, .. }) = corrected {
        text.push_str(&format!("{sentence}\n"));
    }
    if let (Some(rows), Some(path)) = (exported, &args.export) {
        let rows = if rows == 1 { "1 delivery that".into() } else { format!("{rows} deliveries that") };
        text.push_str(&format!("{rows} may have reached somebody: {}\n", path.display()));
    }
    if let Some(pause) = pause {
        let again = format!("{}{}", shell.again(), args.server.again());
        text.push_str(&format!("The pause stands; lift it with: belfry pauses resume {}{again}\n", pause.id));
    }
    print(&text)?;
    Ok(Exit::Ok)
}

impl Walk<'_> {
    /// Goes on to the last page; `expected` is how many notifications there should be.
    ///
    /// # Errors
    /// It says how far it came and how to go on.
    async fn page_by_page(&mut self, from: Option<String>, expected: Option<usize>) -> Result<Done, Failure> {
        let mut done = Done { cursor: from, ..Done::default() };
        let mut progress = Progress::of(NOTIFICATIONS, expected);
        loop {
            let page = self.page(done.cursor.as_deref()).await;
            let page = page.and_then(|answer| answer.read::<CancellationPage>("a cancellation"));
            let page = match page {
                Ok(page) => page,
                Err(failure) => {
                    progress.end();
                    return Err(self.broken_off(&done, failure));
                }
            };
            done.all.add(&page.tally);
            done.corrected_run = Some(page.corrected_run);
            done.cursor = page.next_cursor;
            let Some(cursor) = &done.cursor else { break };
            let place = if self.dry_run { None } else { Some(format!("; go on from here with --cursor {cursor}")) };
            progress.step(done.all.notifications, place.as_deref());
        }
        progress.end();
        Ok(done)
    }

    async fn page(&mut self, cursor: Option<&str>) -> Result<Answer, Failure> {
        let mut body = json!({ "filter": self.filter, "dry_run": self.dry_run });
        for (member, value) in [("why", self.why), ("cursor", cursor)] {
            if let Some(value) = value {
                body[member] = value.into();
            }
        }
        self.post(ALL, &body).await
    }

    async fn post(&mut self, path: &str, body: &Value) -> Result<Answer, Failure> {
        let (client, body) = (self.client, body.to_string());
        let interrupted = async {
            match &mut self.interrupted {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // What the call under way does meanwhile is found done when the command is given again.
            _ = interrupted => Err(Failure::new(Exit::Failed, "interrupted")),
            answer = client.patiently(|| client.post(path, None, body.clone())) => answer?.ok_by_flags(&flag_of),
        }
    }

    fn broken_off(&self, done: &Done, failure: Failure) -> Failure {
        // A count has done nothing: whoever went on from its end would leave out all before.
        let to_tell = !self.dry_run && done.all.notifications > 0;
        let Some(cursor) = done.cursor.as_ref().filter(|_| to_tell) else { return failure };
        let text = format!(
            "{failure}\nUntil then: {}The same command finishes it; with --cursor {cursor} it goes on from there.",
            done.all.words(self.dry_run)
        );
        Failure { text, ..failure }
    }

    /// Who may have got it, as it stands now. Returns how many rows there are.
    async fn exported(&mut self, mut export: Export) -> Result<u64, Failure> {
        let mut progress = Progress::of(NOTIFICATIONS, None);
        let (mut body, mut seen) = (Value::from(self.filter.clone()), 0);
        body["limit"] = 100.into();
        loop {
            let page: Page = self.post("/v1/notifications/search", &body).await?.read("a page of notifications")?;
            for one in page.found() {
                export.add(one)?;
            }
            seen += page.found().len();
            let Some(cursor) = page.next_cursor else { break };
            body["cursor"] = cursor.into();
            progress.step(seen, None);
        }
        progress.end();
        export.complete()
    }
}

/// Pauses the narrowest of what the filters name.
async fn paused(client: &Client, args: &CancelArgs, filter: &Map<String, Value>) -> Result<Pause, Failure> {
    let target = PAUSABLE.iter().find_map(|what| Some((*what, filter.get(*what)?)));
    let Some((what, name)) = target else {
        return Err(Failure::new(Exit::Usage, "--pause: needs --group, --template or --class"));
    };
    let body = json!({ "what": what, "name": name, "why": args.why });
    let answer = client.post("/v1/pauses", None, body.to_string()).await?.ok_by_flags(&flag_of)?;
    let pause: Pause = answer.read("a pause")?;
    let goes_on = match pause.lets_through.as_slice() {
        [] => String::new(),
        classes => format!(", but for {}", classes.join(", ")),
    };
    eprintln!("paused: {what} {}{goes_on} ({})", name.as_str().unwrap_or_default(), pause.id);
    Ok(pause)
}

fn said_yes() -> Result<bool, Failure> {
    let mut line = String::new();
    stdin().read_line(&mut line).map_err(|error| Failure::new(Exit::Failed, format!("standard input: {error}")))?;
    Ok(["y", "yes"].contains(&line.trim().to_lowercase().as_str()))
}
