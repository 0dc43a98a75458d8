//! Servers that all tests of the binary share, each under keys of its own. Never dropped: the shell
//! beside each ends it when the binary ends.

use std::sync::OnceLock;

use super::server::Server;

/// The URL of one plain server.
pub fn shared() -> String {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(Server::plain).url()
}

#[test]
fn the_shared_server_is_one() {
    assert_eq!(shared(), shared());
}
