//! A Cluster of three primaries.

use super::server::{Options, PATIENCE, Server, free_ports};
use crate::peers::until::until;

const SLOTS: u16 = 16_384;

pub struct Cluster {
    pub servers: Vec<Server>,
}

impl Cluster {
    pub fn start() -> Self {
        let buses: [u16; 3] = free_ports();
        let servers: Vec<Server> = buses
            .iter()
            .map(|bus| {
                let options = Options::default()
                    .with("cluster-enabled yes")
                    .with("cluster-config-file nodes.conf")
                    .with("cluster-node-timeout 2000")
                    .with(&format!("cluster-port {bus}"));
                Server::start(options)
            })
            .collect();
        for (place, server) in (0..3_u16).zip(&servers) {
            let (first, end) = (place * (SLOTS / 3), if place == 2 { SLOTS } else { (place + 1) * (SLOTS / 3) });
            let () = server.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &(place + 1).to_string()]);
            let () = server.ask(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &(end - 1).to_string()]);
        }
        for (server, bus) in servers.iter().zip(buses).skip(1) {
            let () = servers[0].ask(&["CLUSTER", "MEET", "127.0.0.1", &server.port().to_string(), &bus.to_string()]);
        }
        let cluster = Self { servers };
        cluster.wait_until_whole();
        cluster
    }

    /// All of them see all slots served.
    pub fn wait_until_whole(&self) {
        until("the Cluster is whole", PATIENCE, || {
            let whole = |server: &Server| {
                let info: String = server.ask(&["CLUSTER", "INFO"]);
                info.contains("cluster_state:ok") && info.contains("cluster_slots_ok:16384")
            };
            self.servers.iter().all(whole).then_some(())
        });
    }

    pub fn url(&self) -> String {
        let hosts: Vec<String> = self.servers.iter().map(Server::address).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }

    /// The place of the server that has `slot`.
    pub fn holder(&self, slot: u16) -> usize {
        usize::from((slot / (SLOTS / 3)).min(2))
    }

    fn id(&self, place: usize) -> String {
        self.servers[place].ask(&["CLUSTER", "MYID"])
    }

    /// Opens the way for `slot`; its keys stay where they are.
    pub fn begin_move(&self, slot: u16, from: usize, to: usize) {
        let slot = slot.to_string();
        let () = self.servers[to].ask(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &self.id(from)]);
        let () = self.servers[from].ask(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &self.id(to)]);
    }

    /// Moves up to `most` keys; how many it were.
    pub fn move_keys(&self, slot: u16, from: usize, to: usize, most: usize) -> usize {
        let keys: Vec<Vec<u8>> =
            self.servers[from].ask(&["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), &most.to_string()]);
        if !keys.is_empty() {
            let mut migrate = redis::cmd("MIGRATE");
            migrate.arg("127.0.0.1").arg(self.servers[to].port()).arg(&["", "0", "5000", "KEYS"]).arg(&keys);
            let () = migrate.query(&mut self.servers[from].connection()).unwrap();
        }
        keys.len()
    }

    pub fn end_move(&self, slot: u16, from: usize, to: usize) {
        let (id, slot) = (self.id(to), slot.to_string());
        for place in [to, from] {
            let () = self.servers[place].ask(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]);
        }
    }
}
