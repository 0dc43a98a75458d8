//! What every store must do, written against the ports alone: one module per trait (the largest has
//! a folder), each test run on every store by [`on_every_store`].

pub(crate) mod api_keys;
pub(crate) mod broadcasts;
mod caps;
mod deliveries;
mod file;
pub(crate) mod fixture;
mod gatherings;
pub(crate) mod harness;
mod holds;
mod installation;
pub(crate) mod outbox_messages;
mod paces;
pub(crate) mod pauses;
mod preferences;
pub(crate) mod recipients;
pub(crate) mod schedules;
pub(crate) mod suppressions;

/// Runs each named test on a fresh one of every store. A further store is one more module here.
macro_rules! on_every_store {
    ($($name:ident),+ $(,)?) => {
        mod in_memory {
            $(#[tokio::test] async fn $name() { super::$name(crate::contract::harness::in_memory()).await; })+
        }

        mod in_a_file {
            $(#[tokio::test] async fn $name() { super::$name(crate::contract::harness::in_a_file()).await; })+
        }

        mod in_redis {
            $(#[tokio::test] async fn $name() { super::$name(crate::contract::harness::in_redis()).await; })+
        }

        mod in_a_cluster {
            $(#[tokio::test] async fn $name() { super::$name(crate::contract::harness::in_a_cluster()).await; })+
        }

        mod on_valkey_s_disk {
            $(#[tokio::test] async fn $name() {
                if let Some(harness) = crate::contract::harness::on_valkey_s_disk() {
                    super::$name(harness).await;
                }
            })+
        }
    };
}

/// The same for tests of an order: what is spread over several shards has one in each of them.
macro_rules! on_every_store_of_one_shard {
    ($($name:ident),+ $(,)?) => {
        mod in_memory {
            $(#[tokio::test] async fn $name() { super::$name(crate::contract::harness::in_memory()).await; })+
        }

        mod in_a_file {
            $(#[tokio::test] async fn $name() { super::$name(crate::contract::harness::in_a_file()).await; })+
        }

        mod in_one_shard {
            $(#[tokio::test] async fn $name() { super::$name(crate::contract::harness::in_one_shard()).await; })+
        }
    };
}
pub(crate) use {on_every_store, on_every_store_of_one_shard};
