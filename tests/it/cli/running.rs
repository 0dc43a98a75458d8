//! A server as a child of the test.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::belfry;
use crate::peers::until::until;

/// Long enough for a machine that does ten other things.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Running {
    child: Child,
    /// What `serve --output json` told.
    pub told: Value,
}

impl Running {
    pub fn start(dir: &Path, args: &[&str], env: &[(&str, &str)]) -> Self {
        let args = [&["serve", "--output", "json"][..], args].concat();
        let mut child = belfry(dir, &args, env).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let (line, lines) = sync_channel(1);
        std::thread::spawn(move || {
            let mut text = String::new();
            out.read_line(&mut text).unwrap();
            line.send(text).ok();
        });
        let text = lines.recv_timeout(PATIENCE).unwrap();
        let told = serde_json::from_str(&text).unwrap_or_else(|_| {
            child.kill().unwrap();
            let mut err = String::new();
            child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
            panic!("told {text:?}, then {err}")
        });
        Self { child, told }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.told["address"].as_str().unwrap())
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end and returns what was logged, too.
    pub fn ended(mut self) -> (ExitStatus, String) {
        let status = until("the server ends", PATIENCE, || self.child.try_wait().unwrap());
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (status, log)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already ended in the good case.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
