//! What every store must do, written against the ports alone: one module per trait (the largest has
//! a folder), each test run on every store by [`on_every_store`].

mod api_keys;
mod deliveries;
mod file;
mod fixture;
mod harness;
mod installation;
mod outbox_messages;

/// Runs each named test on a fresh one of every store. A further store is one more module here.
macro_rules! on_every_store {
    ($($name:ident),+ $(,)?) => {
        mod in_memory {
            $(#[tokio::test] async fn $name() { super::$name(crate::contract::harness::in_memory()).await; })+
        }

        mod in_a_file {
            $(#[tokio::test] async fn $name() { super::$name(crate::contract::harness::in_a_file()).await; })+
        }
    };
}
pub(crate) use on_every_store;
