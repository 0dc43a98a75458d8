//! One real server on a free loopback port, in a folder of its own. A shell watches over it: when
//! the test binary ends, however it ends, the pipe it reads closes, and it takes the server with it.

use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use redis::{Connection, FromRedisValue};
use rustix::process::{Pid, Signal};

use crate::peers::signal;
use crate::peers::until::until;

/// How long anything about a server may take before a test gives up.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Another program may take the port between its choice and the server's start.
const TRIES: usize = 5;

const WATCHDOG: &str = "\
folder=$1; shift
\"$@\" >>\"$folder/log\" 2>&1 </dev/null &
echo $!
read -r word
kill -9 $! 2>/dev/null
wait
[ \"$word\" = keep ] || rm -rf \"$folder\"";

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// `redis-server`, or another one that takes its configuration file.
    pub program: String,
    /// Behind the program's name and the configuration file.
    pub arguments: Vec<String>,
    /// Lines of its configuration, over nothing persisted and no protection.
    pub lines: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// Whether its clock can be stepped.
    pub steppable: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            program: "redis-server".into(),
            arguments: Vec::new(),
            lines: ["bind 127.0.0.1", "save \"\"", "appendonly no", "protected-mode no", "repl-diskless-sync-delay 0"]
                .map(str::to_owned)
                .to_vec(),
            environment: Vec::new(),
            steppable: false,
        }
    }
}

impl Options {
    /// With a clock of its own, for [`Server::step_clock`]. For [`super::valkey`] only: libfaketime and the
    /// jemalloc of Debian's Redis call each other without end.
    #[must_use]
    pub fn steppable(self) -> Self {
        Self { steppable: true, ..self }
    }

    /// With `line` at the end of its configuration, where it overrides what stood before.
    #[must_use]
    pub fn with(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }
}

pub struct Server {
    folder: tempfile::TempDir,
    options: Options,
    port: u16,
    running: Option<Running>,
}

struct Running {
    watchdog: Child,
    /// Closed, it ends the server.
    leash: Option<ChildStdin>,
    pid: Pid,
}

impl Server {
    /// Starts it and waits until it answers.
    pub fn start(options: Options) -> Self {
        for _ in 0..TRIES {
            let [port] = free_ports();
            let mut server =
                Self { folder: tempfile::tempdir().unwrap(), options: options.clone(), port, running: None };
            if server.try_start() {
                return server;
            }
        }
        panic!("{} does not start: no port stayed free", options.program);
    }

    /// Nothing persisted, nothing limited.
    pub fn plain() -> Self {
        Self::start(Options::default())
    }

    /// Starts it again where it was, with what it had on disk.
    pub fn start_again(&mut self) {
        assert!(self.running.is_none(), "it runs");
        assert!(self.try_start(), "it does not start again; it said: {}", self.log());
    }

    fn try_start(&mut self) -> bool {
        let config = self.folder.path().join("server.conf");
        if !config.exists() {
            let start = format!("port {}\ndir {}\n", self.port, self.folder.path().display());
            fs::write(&config, start + &self.options.lines.join("\n") + "\n").unwrap();
        }
        let mut watchdog = Command::new("sh");
        if self.options.steppable {
            self.step_clock(0);
            watchdog
                .env("LD_PRELOAD", fake_clock())
                .env("FAKETIME_TIMESTAMP_FILE", self.folder.path().join("clock"))
                .envs([("FAKETIME_NO_CACHE", "1"), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")]);
        }
        let mut watchdog = watchdog
            .args(["-c", WATCHDOG, "watchdog"])
            .arg(self.folder.path())
            .arg(&self.options.program)
            .arg(&config)
            .args(&self.options.arguments)
            .envs(self.options.environment.clone())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut pid = String::new();
        BufReader::new(watchdog.stdout.take().unwrap()).read_line(&mut pid).unwrap();
        let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        let leash = watchdog.stdin.take();
        self.running = Some(Running { watchdog, leash, pid });
        let answers = until("the server answers or ends", PATIENCE, || match self.try_ask::<String>(&["PING"]) {
            Ok(_) => Some(true),
            Err(error) if error.code() == Some("LOADING") => None,
            // A replica that has not synchronised, one that wants a password: it is there.
            Err(error) if error.code().is_some() => Some(true),
            Err(_) => (!lives(pid)).then_some(false),
        });
        // Whoever else has the port may answer as well.
        let ours = answers && lives(pid);
        if !ours {
            assert!(self.log().contains("in use"), "{} does not start; it said: {}", self.options.program, self.log());
            self.running = None;
        }
        ours
    }

    pub const fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub fn connection(&self) -> Connection {
        self.try_connection().unwrap()
    }

    fn try_connection(&self) -> redis::RedisResult<Connection> {
        let client = redis::Client::open(self.url())?;
        let connection = client.get_connection_with_timeout(Duration::from_secs(1))?;
        connection.set_read_timeout(Some(PATIENCE))?;
        Ok(connection)
    }

    /// One command on a connection of its own.
    #[track_caller]
    pub fn ask<T: FromRedisValue>(&self, words: &[&str]) -> T {
        self.try_ask(words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// Where words are no text.
    pub fn ask_bytes<T: FromRedisValue>(&self, words: &[&[u8]]) -> T {
        let mut command = redis::Cmd::new();
        command.arg(words);
        command.query(&mut self.try_connection().unwrap()).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    pub fn try_ask<T: FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query(&mut self.try_connection()?)
    }

    /// Sets its wall clock so many seconds off ours, at once; its monotonic clock goes on.
    pub fn step_clock(&self, off: i64) {
        let (file, fresh) = (self.folder.path().join("clock"), self.folder.path().join("clock.new"));
        fs::write(&fresh, format!("{off:+}\n")).unwrap();
        fs::rename(fresh, file).unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        signal::send(self.running.as_ref().expect("it runs").pid, signal);
    }

    /// `kill -9`, and its end. What it had on disk stays.
    pub fn kill(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        running.leash.take().expect("held until now").write_all(b"keep\n").unwrap();
        // The shell kills it and waits for its end.
        running.watchdog.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Debian's libfaketime, on whatever machine.
fn fake_clock() -> String {
    let folders = fs::read_dir("/usr/lib").unwrap().map(|entry| entry.unwrap().path());
    let library = folders.map(|folder| folder.join("faketime/libfaketime.so.1")).find(|library| library.exists());
    library.expect("libfaketime (Debian: faketime)").to_str().unwrap().to_owned()
}

/// Whether it runs: a zombie does not.
fn lives(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next()).is_some_and(|state| !"ZX".contains(state))
}

/// Held all at once, so that they differ; given back before they are used.
pub fn free_ports<const N: usize>() -> [u16; N] {
    let held: [TcpListener; N] = std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    held.map(|one| one.local_addr().unwrap().port())
}

#[test]
fn a_server_keeps_what_it_has_on_disk_over_a_kill_and_leaves_nothing_when_dropped() {
    let mut server = Server::start(Options::default().with("appendonly yes").with("appendfsync always"));
    let () = server.ask(&["SET", "kept", "1"]);
    server.kill();
    server.start_again();
    assert_eq!(server.ask::<String>(&["GET", "kept"]), "1");
    let folder = server.folder().to_owned();
    let pid = server.running.as_ref().unwrap().pid;
    drop(server);
    assert!(!lives(pid));
    assert!(!folder.exists());
}

#[test]
fn a_server_s_clock_can_be_stepped_both_ways() {
    let Some(options) = super::valkey::valkey() else { return };
    let server = Server::start(options.steppable());
    let time = || {
        let [seconds, _]: [i64; 2] = server.ask(&["TIME"]);
        seconds
    };
    let now = time();
    server.step_clock(3_600);
    // It looks at its clock once a turn of its loop.
    until("it is an hour later", PATIENCE, || (time() >= now + 3_600).then_some(()));
    server.step_clock(-3_600);
    until("it is an hour earlier", PATIENCE, || (time() < now).then_some(()));
}

#[test]
fn the_shell_ends_a_server_that_nobody_drops() {
    let mut server = Server::plain();
    let running = server.running.as_mut().unwrap();
    let pid = running.pid;
    // What the end of the test binary does.
    running.leash = None;
    running.watchdog.wait().unwrap();
    assert!(!lives(pid));
    assert!(!server.folder().exists());
    server.running = None;
}
