//! Peers that tests talk to.
