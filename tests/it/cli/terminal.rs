//! The program on a terminal: what it draws there, and a person who types.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::belfry;
use crate::peers::until::until;

/// Long enough for a machine that does ten other things.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Terminal {
    child: Child,
    keyboard: File,
    shown: Receiver<Vec<u8>>,
    text: String,
}

impl Terminal {
    pub fn start(dir: &Path, args: &[&str]) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
        let screen = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let mut command = belfry(dir, args, &[]);
        command.stdin(screen.try_clone().unwrap()).stdout(screen.try_clone().unwrap()).stderr(screen);
        let child = command.spawn().unwrap();
        // It holds the screen open: reading ends once the program has ended.
        drop(command);
        let keyboard = File::from(controller);
        let mut reader = keyboard.try_clone().unwrap();
        let (show, shown) = sync_channel(1_024);
        std::thread::spawn(move || {
            let mut part = [0; 4_096];
            // Once nobody has the screen open any more, reading is an error.
            while let Ok(length @ 1..) = reader.read(&mut part) {
                if show.send(part[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, keyboard, shown, text: String::new() }
    }

    /// Reads on until the words stand there.
    pub fn until_shown(&mut self, words: &str) {
        while !self.text.contains(words) {
            let part = self.shown.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no {words:?} in {:?}", self.text));
            self.text.push_str(&String::from_utf8_lossy(&part));
        }
    }

    pub fn typed(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Waits for the end and returns all that was shown.
    pub fn ended(mut self) -> (ExitStatus, String) {
        let status = until("the program ends", PATIENCE, || self.child.try_wait().unwrap());
        while let Ok(part) = self.shown.recv_timeout(PATIENCE) {
            self.text.push_str(&String::from_utf8_lossy(&part));
        }
        (status, self.text)
    }
}
