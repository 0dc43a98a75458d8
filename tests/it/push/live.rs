//! A server with real providers' stand-ins behind it, asked over its API.

use std::time::Duration;

use belfry::app::{self, RunningApp, StartOptions};
use belfry::config::{Config, Sources};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::peers::until::until;

/// An operator's key.
const KEY: &str = "an-operators-key-of-0123456789-abcdef";
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Live {
    pub runtime: Runtime,
    app: Option<RunningApp>,
    pub dir: TempDir,
    /// The store, as keys before any section.
    store: String,
    client: reqwest::Client,
}

impl Live {
    /// Starts with nothing stored. `providers`: the sections that the test is about; `{dir}` stands for
    /// the folder that `files` are written to.
    pub fn start(runtime: Runtime, providers: &str, files: &[(&str, &str)]) -> Self {
        let mut live = Self::prepared(runtime, files);
        live.run(providers, true);
        live
    }

    /// The same on a file that outlives the process.
    pub fn start_kept(runtime: Runtime, providers: &str, files: &[(&str, &str)]) -> Self {
        let mut live = Self::prepared(runtime, files);
        live.run(providers, false);
        live
    }

    /// The same over a store of the test's own.
    pub fn start_over(runtime: Runtime, store: &str, providers: &str) -> Self {
        Self::start_with(runtime, Some(store), providers, |_| ())
    }

    /// The same with more in its folder; without a store of the test's own on a file.
    pub fn start_with(runtime: Runtime, store: Option<&str>, providers: &str, files: impl Fn(&TempDir)) -> Self {
        let mut live = Self::prepared(runtime, &[]);
        files(&live.dir);
        if let Some(store) = store {
            store.clone_into(&mut live.store);
        }
        live.run(providers, false);
        live
    }

    /// Ends the process and starts another one on the same file.
    pub fn restart(&mut self, providers: &str) {
        let before = self.app.take().unwrap();
        self.runtime.block_on(before.stop());
        self.run(providers, false);
    }

    fn prepared(runtime: Runtime, files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        drop(rustls::crypto::ring::default_provider().install_default());
        let store = "store.sqlite.path = \"{dir}/belfry.db\"\n".to_owned();
        Self { runtime, app: None, dir, store, client: reqwest::Client::new() }
    }

    fn run(&mut self, providers: &str, ephemeral: bool) {
        let config = self.config(providers);
        let options = StartOptions { ephemeral, port: Some(0), ..StartOptions::default() };
        self.app = Some(self.runtime.block_on(app::start(config, options)).unwrap());
    }

    fn sources(&self, providers: &str) -> Sources {
        let file = self.dir.path().join("belfry.toml");
        let text = format!("{}[engine]\npoll = \"20ms\"\n{providers}", self.store);
        std::fs::write(&file, text.replace("{dir}", &self.dir.path().to_string_lossy())).unwrap();
        Sources { file: Some(file), env: [("BELFRY_BOOTSTRAP_KEY".to_owned(), KEY.to_owned())].into() }
    }

    fn config(&self, providers: &str) -> Config {
        Config::load(&self.sources(providers)).unwrap()
    }

    fn app(&self) -> &RunningApp {
        self.app.as_ref().unwrap()
    }

    /// As SIGHUP does.
    pub fn reload(&self, providers: &str) {
        let sources = self.sources(providers);
        self.runtime.block_on(self.app().reload(move || Config::load(&sources))).unwrap();
    }

    pub fn asked(&self, method: &str, path: &str, key: Option<&str>, body: Option<&Value>) -> (u16, Value) {
        self.asked_by(KEY, method, path, (key, body))
    }

    /// The same with another API key.
    pub fn asked_by(
        &self,
        bearer: &str,
        method: &str,
        path: &str,
        (key, body): (Option<&str>, Option<&Value>),
    ) -> (u16, Value) {
        let url = format!("http://{}{path}", self.app().address);
        let mut request = self.client.request(method.parse().unwrap(), url).bearer_auth(bearer);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        self.runtime.block_on(async {
            let answer = request.send().await.unwrap();
            let status = answer.status().as_u16();
            let text = answer.text().await.unwrap();
            (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
        })
    }

    pub fn get(&self, path: &str) -> Value {
        let (status, body) = self.asked("GET", path, None, None);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    pub fn put(&self, path: &str, body: &Value) {
        let (status, told) = self.asked("PUT", path, None, Some(body));
        assert!(status < 300, "{path}: {status} {told}");
    }

    /// Accepts one; its id.
    pub fn send(&self, key: &str, body: &Value) -> String {
        let (status, told) = self.asked("POST", "/v1/notifications", Some(key), Some(body));
        assert_eq!(status, 202, "{told}");
        told["id"].as_str().unwrap().to_owned()
    }

    /// The notification once every delivery of it is `so`.
    pub fn once(&self, id: &str, what: &str, so: impl Fn(&Value) -> bool) -> Value {
        until(what, PATIENCE, || {
            let found = self.get(&format!("/v1/notifications/{id}"));
            found["deliveries"].as_array().unwrap().iter().all(&so).then_some(found)
        })
    }

    /// The notification once none of its deliveries waits or is being sent.
    pub fn ended(&self, id: &str) -> Value {
        let open = ["scheduled", "queued", "deferred", "sending"];
        self.once(id, "it ends", |one| !open.contains(&one["state"].as_str().unwrap()))
    }

    pub fn metrics(&self) -> String {
        let (_, text) = self.asked("GET", "/metrics", None, None);
        text.as_str().unwrap().to_owned()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(app) = self.app.take() {
            self.runtime.block_on(app.stop());
        }
    }
}
