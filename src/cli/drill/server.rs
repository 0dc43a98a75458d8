//! A Redis of the drill's own, that ends with it however it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use anyhow::Context;

use crate::cli::exit::{Exit, Failure};

/// Any of these, whichever is found first.
const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];
/// Another program may take the port between its choice and the server's start.
const TRIES: usize = 5;
const LOOKS: usize = 500;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Ends the server when the pipe that it reads closes: also after `kill -9`.
const WATCHDOG: &str = "\"$@\" >/dev/null 2>&1 </dev/null &\necho $!\nread -r _\nkill -9 $! 2>/dev/null\nwait";

pub struct OwnServer {
    watchdog: Child,
    leash: Option<ChildStdin>,
    address: SocketAddr,
}

impl OwnServer {
    /// # Errors
    /// There is no such program, or it does not start.
    pub async fn start(folder: &Path) -> anyhow::Result<Self> {
        let Some(program) = PROGRAMS.into_iter().find(|program| answers_to(program)) else {
            let what = "neither redis-server nor valkey-server is here. Install one (Debian: apt install \
                        redis-server), name one that runs with --redis URL, or drill on SQLite with --store sqlite";
            return Err(Failure::new(Exit::Failed, what).into());
        };
        for _ in 0..TRIES {
            if let Some(server) = Self::try_start(program, folder).await? {
                return Ok(server);
            }
        }
        anyhow::bail!("{program} does not start: no port stayed free")
    }

    async fn try_start(program: &str, folder: &Path) -> anyhow::Result<Option<Self>> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut watchdog = Command::new("sh")
            .args(["-c", WATCHDOG, "watchdog", program, "--bind", "127.0.0.1", "--port"])
            .arg(address.port().to_string())
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start a shell")?;
        let leash = watchdog.stdin.take();
        let mut pid = String::new();
        let out = watchdog.stdout.take().context("the shell has no output")?;
        BufReader::new(out).read_line(&mut pid)?;
        let server = Self { watchdog, leash, address };
        for _ in 0..LOOKS {
            if server.answers() {
                return Ok(Some(server));
            }
            if !Path::new("/proc").join(pid.trim()).exists() {
                return Ok(None);
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        Ok(None)
    }

    fn answers(&self) -> bool {
        let asked = || -> std::io::Result<[u8; 5]> {
            let mut stream = TcpStream::connect_timeout(&self.address, Duration::from_secs(1))?;
            stream.set_read_timeout(Some(Duration::from_secs(1)))?;
            stream.write_all(b"PING\r\n")?;
            let mut answer = [0; 5];
            stream.read_exact(&mut answer)?;
            Ok(answer)
        };
        asked().is_ok_and(|answer| &answer == b"+PONG")
    }

    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }
}

fn answers_to(program: &str) -> bool {
    let asked = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        drop(self.leash.take());
        // It ends by itself once its pipe is closed; an error here changes nothing about that.
        self.watchdog.wait().ok();
    }
}
