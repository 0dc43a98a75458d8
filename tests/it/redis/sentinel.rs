//! A primary with replicas, and sentinels that watch it.

use super::server::{Options, PATIENCE, Server};
use crate::peers::until::until;

/// The name under which the primary is watched.
pub const NAME: &str = "shop";

pub struct Sentinels {
    /// The first is the primary to begin with.
    pub servers: Vec<Server>,
    pub sentinels: Vec<Server>,
}

impl Sentinels {
    /// With so many replicas and sentinels, of which more than half must agree.
    pub fn start(replicas: usize, sentinels: usize) -> Self {
        let primary = Server::plain();
        let mut servers = vec![primary];
        for _ in 0..replicas {
            let replica = Options::default().with(&format!("replicaof 127.0.0.1 {}", servers[0].port()));
            servers.push(Server::start(replica));
        }
        until("the replicas are in step", PATIENCE, || {
            let info: String = servers[0].ask(&["INFO", "replication"]);
            (info.matches("state=online").count() == replicas).then_some(())
        });
        let quorum = sentinels / 2 + 1;
        let sentinels: Vec<Server> =
            (0..sentinels).map(|_| Server::start(watching(servers[0].port(), quorum))).collect();
        let started = Self { servers, sentinels };
        let others = started.sentinels.len() - 1;
        until("the sentinels know everybody", PATIENCE, || {
            let knows = |sentinel: &Server| {
                // One that has just started on a busy machine may take its time.
                let fields: Vec<String> = sentinel.try_ask(&["SENTINEL", "MASTER", NAME]).unwrap_or_default();
                let field = |name: &str| fields.iter().skip_while(|field| *field != name).nth(1).cloned();
                field("num-slaves") == Some(replicas.to_string())
                    && field("num-other-sentinels") == Some(others.to_string())
            };
            started.sentinels.iter().all(knows).then_some(())
        });
        started
    }

    pub fn url(&self) -> String {
        let hosts: Vec<String> = self.sentinels.iter().map(Server::address).collect();
        format!("redis+sentinel://{}/{NAME}", hosts.join(","))
    }

    /// The port of the primary, as the first sentinel has it.
    pub fn primary_port(&self) -> u16 {
        let address: Vec<String> = self.sentinels[0].ask(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]);
        address[1].parse().unwrap()
    }
}

fn watching(port: u16, quorum: usize) -> Options {
    Options {
        program: "redis-sentinel".into(),
        lines: vec![
            "bind 127.0.0.1".into(),
            "protected-mode no".into(),
            format!("sentinel monitor {NAME} 127.0.0.1 {port} {quorum}"),
            format!("sentinel down-after-milliseconds {NAME} 500"),
            format!("sentinel failover-timeout {NAME} 3000"),
        ],
        ..Options::default()
    }
}
