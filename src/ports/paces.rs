//! Shares of the providers' paces. A pace belongs to the installation, and every node that calls goes by
//! a share of it; the store sees to it that all shares together are never more than the whole.

use async_trait::async_trait;
pub use belfry_domain::share::{SHARE_LEASE, ShareAsk};

use super::StoreError;

/// Most paces in one call.
pub const MOST_PACES: usize = 128;

#[async_trait]
pub trait Paces: Send + Sync + 'static {
    /// How many parts of each pace this node may go by, in the order of the questions, for
    /// [`SHARE_LEASE`] from before it asked. `node`: drawn anew at every start. `number` grows with every
    /// call of a node; what an earlier one asks counts for nothing once a later one has been heard. By the store's clock: where that steps
    /// forward, or a server loses the shares, more than the whole may be out for one lease.
    async fn shares(&self, node: &str, number: u64, asks: Vec<ShareAsk>) -> Result<Vec<u32>, StoreError>;
}
