//! The store on Redis: one machine, Sentinel or Cluster, shared by several nodes.

pub mod link;
pub mod script;
