//! Every error a server has for us, provoked on a real one, bare and inside a script, and what it is
//! taken for. The texts are kept beside this file, so that the table stands where no server does.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpStream;
use std::thread;

use belfry::ports::StoreError;
use belfry::store::redis::link::{Remedy, Trouble, classify, slot_of};
use redis::Connection;

use super::cluster::Cluster;
use super::server::{Options, PATIENCE, Server};
use super::valkey::valkey;
use crate::peers::until::until;

const TEXTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/redis/error_texts.txt");
const SET: &str = "return redis.call('SET', KEYS[1], ARGV[1])";
/// Checked by the server before the script runs.
const FLAGGED: &str = "#!lua\nreturn redis.call('SET', KEYS[1], ARGV[1])";

/// `CODE<tab>text`.
fn rows() -> Vec<(String, String)> {
    let text = fs::read_to_string(TEXTS).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split_once('\t').unwrap());
    rows.map(|(code, text)| (code.to_owned(), text.to_owned())).collect()
}

#[test]
fn case_58_every_error_is_known_bare_and_inside_a_script() {
    for (code, text) in rows() {
        assert_eq!(classify(&text).code(), code, "{text}");
        assert_eq!(classify(&format!("-{text}")).code(), code, "{text}");
    }
    let codes: BTreeSet<String> = rows().into_iter().map(|(code, _)| code).collect();
    for code in [
        "NOSCRIPT",
        "OOM",
        "READONLY",
        "LOADING",
        "BUSY",
        "MISCONF",
        "CLUSTERDOWN",
        "MOVED",
        "ASK",
        "TRYAGAIN",
        "CROSSSLOT",
        "NOREPLICAS",
        "MASTERDOWN",
        "NOAUTH",
        "WRONGPASS",
        "NOPERM",
        "UNBLOCKED",
        "MAXCLIENTS",
    ] {
        assert!(codes.contains(code), "{code} has no text");
    }
}

#[test]
fn each_has_its_remedy() {
    for (text, remedy) in [
        ("NOSCRIPT No matching script.", Remedy::LoadScript),
        ("READONLY You can't write against a read only replica.", Remedy::FindPrimary),
        ("UNBLOCKED force unblock", Remedy::FindPrimary),
        ("MOVED 12182 127.0.0.1:7001", Remedy::RefreshSlots),
        ("ASK 12182 127.0.0.1:7001", Remedy::ShardUnavailable),
        ("TRYAGAIN Multiple keys request during rehashing of slot", Remedy::ShardUnavailable),
        ("LOADING Redis is loading the dataset in memory", Remedy::ServerUnavailable),
        ("OOM command not allowed", Remedy::Operator),
        ("WHATEVER comes", Remedy::Operator),
    ] {
        assert_eq!(classify(text).remedy(), remedy, "{text}");
    }
    assert_eq!(classify("MOVED 12182 10.0.0.1:7001"), Trouble::Moved { slot: 12_182, to: "10.0.0.1:7001".into() });
}

#[test]
fn nothing_of_a_text_but_its_code_and_our_own_words_goes_further() {
    for text in [
        "WRONGTYPE of ann@example.com",
        "ERR value ann@example.com is not an integer",
        "ann@example.com",
        "READONLY ann@example.com",
        "ERR user_script:1: bad ann@example.com script: 1234, on @user_script:1.",
        "MOVED ann@example.com",
    ] {
        let said = StoreError::from(classify(text)).to_string();
        assert!(!said.contains("ann") && said.contains(classify(text).code()), "{said}");
    }
    let own = "ERR user_script:1: BELFRYPAST the shard is at 3, seen was 5 script: 12ab, on @user_script:1.";
    assert_eq!(classify(own), Trouble::Ours("BELFRYPAST the shard is at 3, seen was 5".into()));
    assert_eq!(classify(own).code(), "BELFRYPAST");
}

/// A server and the errors that came from it.
struct Provoked {
    server: Server,
    connection: Connection,
    hash: String,
}

impl Provoked {
    fn new(options: Options) -> Self {
        let options = options.with("enable-debug-command yes").with("loading-process-events-interval-bytes 1024");
        let server = Server::start(options.with("busy-reply-threshold 1"));
        let mut connection = server.connection();
        let hash = redis::cmd("SCRIPT").arg("LOAD").arg(SET).query(&mut connection).unwrap();
        Self { server, connection, hash }
    }

    /// What the server answers to `words` is `code`, and its text is in the table.
    fn is(&mut self, code: &str, words: &[&str]) {
        expect(code, &mut self.connection, words);
    }

    /// The same bare, by hash, and before the script begins.
    fn is_everywhere(&mut self, code: &str) {
        let hash = self.hash.clone();
        self.is(code, &["SET", "key", "1"]);
        self.is(code, &["EVALSHA", &hash, "1", "key", "1"]);
        self.is(code, &["EVAL", FLAGGED, "1", "key", "1"]);
        self.is(code, &["EVAL", "return redis.pcall('SET', KEYS[1], '1')", "1", "key"]);
        self.is(code, &["EVAL", "error(redis.pcall('SET', KEYS[1], '1'))", "1", "key"]);
    }

    fn set(&mut self, name: &str, value: &str) {
        let () = redis::cmd("CONFIG").arg("SET").arg(name).arg(value).query(&mut self.connection).unwrap();
    }
}

#[track_caller]
fn expect(code: &str, connection: &mut Connection, words: &[&str]) {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    let error = command.query::<redis::Value>(connection).unwrap_err();
    let text = format!("{} {}", error.code().unwrap_or("ERR"), error.detail().unwrap_or_default());
    in_table(code, &text);
}

#[track_caller]
fn in_table(code: &str, text: &str) {
    assert_eq!(classify(text).code(), code, "{text}");
    let known = rows().iter().any(|(_, row)| plain(row) == plain(text));
    if !known && std::env::var_os("BELFRY_WRITE_SNAPSHOTS").is_some() {
        let mut file = fs::File::options().append(true).open(TEXTS).unwrap();
        return file.write_all(format!("{code}\t{text}\n").as_bytes()).unwrap();
    }
    assert!(known, "not in error_texts.txt:\n{code}\t{text}");
}

/// Without what differs from run to run: hashes and ports.
fn plain(text: &str) -> String {
    let varies = |word: &&str| word.len() > 40 && word.starts_with(|it: char| it.is_ascii_hexdigit());
    let words = text.split_whitespace().filter(|word| !varies(word) && !word.starts_with("127.0.0.1:"));
    words.collect::<Vec<_>>().join(" ")
}

fn provoke_on_one(options: Options) {
    let mut one = Provoked::new(options);
    one.is("NOSCRIPT", &["EVALSHA", "ffffffffffffffffffffffffffffffffffffffff", "0"]);
    one.set("maxmemory", "1");
    one.is_everywhere("OOM");
    one.set("maxmemory", "0");
    one.set("min-replicas-to-write", "1");
    one.is_everywhere("NOREPLICAS");
    one.set("min-replicas-to-write", "0");
    provoke_as_replica(&mut one);
    provoke_logins(&mut one);
    provoke_busy(&mut one);
    provoke_loading(&mut one);
    one.is("ERR", &["EVAL", "return nil + 1", "0"]);
    one.is("BELFRYPAST", &["EVAL", "return redis.error_reply('BELFRYPAST at 3, seen was 5')", "0"]);
    one.is("BELFRYPAST", &["EVAL", "error(redis.error_reply('BELFRYPAST at 3, seen was 5'))", "0"]);
    one.is("BELFRYPAST", &["EVAL", "error('BELFRYPAST at 3, seen was 5')", "0"]);
    // A folder where the file should be.
    let file = one.server.folder().join("dump.rdb");
    fs::remove_file(&file).unwrap();
    fs::create_dir(file).unwrap();
    one.set("save", "1 0");
    let () = one.server.ask(&["SET", "key", "1"]);
    // It may have begun by itself.
    one.server.try_ask::<String>(&["BGSAVE"]).ok();
    until("the save fails", PATIENCE, || one.server.try_ask::<String>(&["SET", "key", "1"]).is_err().then_some(()));
    one.is_everywhere("MISCONF");
    one.set("maxclients", "1");
    let stream = TcpStream::connect(one.server.address()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    in_table("MAXCLIENTS", line.trim_end().trim_start_matches('-'));
}

fn provoke_as_replica(one: &mut Provoked) {
    let waiting = thread::spawn({
        let mut connection = one.server.connection();
        move || expect("UNBLOCKED", &mut connection, &["WAIT", "1", "0"])
    });
    until("it waits", PATIENCE, || {
        one.server.ask::<String>(&["INFO", "clients"]).contains("blocked_clients:1").then_some(())
    });
    let () = one.server.ask(&["REPLICAOF", "127.0.0.1", "1"]);
    waiting.join().unwrap();
    one.is_everywhere("READONLY");
    one.set("replica-serve-stale-data", "no");
    one.is("MASTERDOWN", &["GET", "key"]);
    let hash = one.hash.clone();
    one.is("MASTERDOWN", &["EVALSHA", &hash, "1", "key", "1"]);
    let () = one.server.ask(&["REPLICAOF", "NO", "ONE"]);
}

fn provoke_logins(one: &mut Provoked) {
    let () = one.server.ask(&["ACL", "SETUSER", "u", "on", ">p", "~*", "+evalsha", "+eval", "+auth"]);
    one.is("WRONGPASS", &["AUTH", "u", "wrong"]);
    let mut part = one.server.connection();
    let () = redis::cmd("AUTH").arg("u").arg("p").query(&mut part).unwrap();
    expect("NOPERM", &mut part, &["SET", "key", "1"]);
    expect("NOPERM", &mut part, &["EVALSHA", &one.hash, "1", "key", "1"]);
    let mut stranger = one.server.connection();
    let () = one.server.ask(&["ACL", "SETUSER", "default", ">word"]);
    expect("NOAUTH", &mut one.server.connection(), &["EVALSHA", &one.hash, "1", "key", "1"]);
    let () = redis::cmd("ACL").arg("SETUSER").arg("default").arg("nopass").query(&mut stranger).unwrap();
}

fn provoke_busy(one: &mut Provoked) {
    let busy = thread::spawn({
        let mut connection = one.server.connection();
        move || expect("ERR", &mut connection, &["EVAL", "while true do end", "0"])
    });
    let mut other = one.server.connection();
    let is_busy = |connection: &mut Connection| {
        let error = redis::cmd("GET").arg("key").query::<redis::Value>(connection).err()?;
        (error.code() == Some("BUSY")).then_some(())
    };
    until("the script goes on and on", PATIENCE, || is_busy(&mut other));
    let hash = one.hash.clone();
    one.is("BUSY", &["EVALSHA", &hash, "1", "key", "1"]);
    let () = redis::cmd("SCRIPT").arg("KILL").query(&mut other).unwrap();
    busy.join().unwrap();
}

fn provoke_loading(one: &mut Provoked) {
    for number in 0..400 {
        let () = redis::cmd("SET").arg(number).arg("x".repeat(100)).query(&mut one.connection).unwrap();
    }
    one.set("key-load-delay", "2000");
    let loading = thread::spawn({
        let mut connection = one.server.connection();
        move || {
            let () = redis::cmd("DEBUG").arg("RELOAD").query(&mut connection).unwrap();
        }
    });
    until("it loads", PATIENCE, || {
        let error = one.server.try_ask::<redis::Value>(&["GET", "key"]).err()?;
        (error.code() == Some("LOADING")).then_some(())
    });
    let hash = one.hash.clone();
    one.is("LOADING", &["EVALSHA", &hash, "1", "key", "1"]);
    loading.join().unwrap();
}

#[test]
fn case_58_a_real_server_s_errors_are_in_the_table() {
    provoke_on_one(Options::default());
}

#[test]
fn case_58_a_newer_server_s_errors_are_in_the_table() {
    if let Some(options) = valkey() {
        provoke_on_one(options);
    }
}

#[test]
fn case_58_a_cluster_s_errors_are_in_the_table() {
    const ANY: &str = "return redis.call('SET', ARGV[1], '1')";
    let lone = Server::start(Options::default().with("cluster-enabled yes"));
    expect("CLUSTERDOWN", &mut lone.connection(), &["SET", "key", "1"]);
    expect("CLUSTERDOWN", &mut lone.connection(), &["EVAL", SET, "1", "key", "1"]);
    let cluster = Cluster::start();
    let slot = slot_of(b"{move}a");
    let (from, to) = (cluster.holder(slot), (cluster.holder(slot) + 1) % 3);
    let mut holder = cluster.servers[from].connection();
    let mut other = cluster.servers[to].connection();
    expect("MOVED", &mut other, &["SET", "{move}a", "1"]);
    expect("MOVED", &mut other, &["EVAL", SET, "1", "{move}a", "1"]);
    expect("CROSSSLOT", &mut holder, &["MSET", "{move}a", "1", "b", "2"]);
    expect("CROSSSLOT", &mut holder, &["EVAL", SET, "2", "{move}a", "b", "1"]);
    for key in ["{move}a", "{move}b"] {
        let () = cluster.servers[from].ask(&["SET", key, "1"]);
    }
    cluster.begin_move(slot, from, to);
    assert_eq!(cluster.move_keys(slot, from, to, 1), 1);
    let left: Vec<String> = cluster.servers[from].ask(&["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), "9"]);
    let moved = ["{move}a", "{move}b"].into_iter().find(|key| !left.contains(&(*key).to_owned())).unwrap();
    expect("ASK", &mut holder, &["GET", moved]);
    expect("ASK", &mut holder, &["EVAL", SET, "1", moved, "1"]);
    expect("TRYAGAIN", &mut holder, &["MGET", "{move}a", "{move}b"]);
    expect("TRYAGAIN", &mut holder, &["EVAL", SET, "2", "{move}a", "{move}b", "1"]);
    // A key that a script computes has moved from under it.
    expect("TRYAGAIN", &mut holder, &["EVAL", ANY, "1", &left[0], moved]);
}
