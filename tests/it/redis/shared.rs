//! Servers that all tests of the binary share, each under keys of its own. Never dropped: the shell
//! beside each ends it when the binary ends.

use std::sync::OnceLock;

use super::cluster::Cluster;
use super::server::Server;

/// The URL of one plain server.
pub fn shared() -> String {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(Server::plain).url()
}

/// The URL of a Cluster of three.
pub fn shared_cluster() -> String {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(Cluster::start).url()
}

/// The URL of a server of Valkey with an append-only file, where there is one.
pub fn shared_valkey() -> Option<String> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let start = || Some(Server::start(super::valkey::valkey()?.with("appendonly yes")));
    SERVER.get_or_init(start).as_ref().map(Server::url)
}

#[test]
fn the_shared_server_is_one() {
    assert_eq!(shared(), shared());
    assert_eq!(shared_cluster(), shared_cluster());
}
