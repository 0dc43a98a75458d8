//! Broadcasts: what stands of each, what it says, and the rows of its audience. What becomes of one is
//! [`belfry_domain::broadcast`]'s; a store compares and writes.

use std::ops::Range;

use async_trait::async_trait;
use belfry_domain::BroadcastId;
use belfry_domain::broadcast::Broadcast;

use super::StoreError;
use super::deliveries::Owner;

/// Most broadcasts of one owner, those that are over included.
pub const MOST_BROADCASTS: usize = 256;
/// Most of those that somebody has to look after in one page.
pub const MOST_ACTIVE: u16 = 64;
/// Most chunks that are cleared away in one call.
pub const MOST_CLEARED: u32 = 128;
/// Largest chunk, in bytes.
pub const MOST_CHUNK_BYTES: usize = 192 * 1024;

/// What became of a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    New,
    /// One with its id is kept already: it, and what it says.
    Known(Box<Broadcast>, String),
    /// The owner has [`MOST_BROADCASTS`].
    TooMany,
}

/// Where a chunk of rows is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkAt {
    pub broadcast: BroadcastId,
    pub upload: u32,
    pub chunk: u32,
}

/// Some of those that somebody has to look after ([`Broadcast::is_active`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActivePage {
    pub broadcasts: Vec<Broadcast>,
    /// The store's own place after which to go on; opaque. Nothing: these were the last.
    pub next: Option<String>,
}

/// Whose it is.
#[must_use]
pub fn owner_of(broadcast: &Broadcast) -> Owner {
    Owner { tenant: broadcast.tenant.clone(), environment: broadcast.environment.clone() }
}

#[async_trait]
pub trait Broadcasts: Send + Sync + 'static {
    /// Keeps a new one, and what it says (opaque to the store). Durable before it returns; the same call again says
    /// [`Made::New`] again as long as nothing has changed.
    async fn create_broadcast(&self, new: &Broadcast, says: &str) -> Result<Made, StoreError>;

    /// Writes it over the one that stands, where that has the `rev` before. Whether it stands like this now. Durable before
    /// it returns; the same call again says the same as long as nobody else comes in between.
    async fn write_broadcast(&self, next: &Broadcast) -> Result<bool, StoreError>;

    /// Removes it where it stands like this, with what it says. Its rows have to be cleared away before. Whether it is gone.
    async fn remove_broadcast(&self, it: &Broadcast) -> Result<bool, StoreError>;

    /// A foreign one is `None` like an absent one. Sees all that was acknowledged before the call.
    async fn broadcast(&self, owner: &Owner, id: BroadcastId) -> Result<Option<Broadcast>, StoreError>;

    /// What it says, as it was created with.
    async fn said_by(&self, owner: &Owner, id: BroadcastId) -> Result<Option<String>, StoreError>;

    /// All of an owner's, the newest first.
    async fn broadcasts(&self, owner: &Owner) -> Result<Vec<Broadcast>, StoreError>;

    /// Up to `limit` (at most [`MOST_ACTIVE`]) of all owners' that somebody has to look after, each once where nothing
    /// moves meanwhile. A place that the store did not give out is the beginning. What cannot be read, or is in a part of
    /// the store that is away, is left out. For whoever walks them: a node that is astray in its clock is refused.
    async fn active_broadcasts(&self, after: Option<&str>, limit: u16) -> Result<ActivePage, StoreError>;

    /// Keeps a chunk of rows (at most [`MOST_CHUNK_BYTES`], opaque to the store) in place of one that is there. Durable
    /// before it returns.
    async fn put_rows(&self, at: ChunkAt, rows: &str) -> Result<(), StoreError>;

    async fn rows(&self, at: ChunkAt) -> Result<Option<String>, StoreError>;

    /// Clears away `chunks` of an upload, at most [`MOST_CLEARED`]; those that are not there as well.
    async fn clear_rows(&self, of: BroadcastId, upload: u32, chunks: Range<u32>) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use belfry_domain::UnixMs;
    use belfry_domain::broadcast::{
        Audience, Halt, Leftover, LocalSend, NewBroadcast, Plan, Rate, RowProblem, State, Upload, Walker,
    };

    use super::*;

    #[test]
    fn what_is_kept_is_read_back() {
        let rate = Rate::new(7, Duration::from_secs(60)).ok();
        let local = Some(LocalSend { at: "2026-12-24T09:00:00".into(), zone: "UTC".into() });
        let new = NewBroadcast {
            id: BroadcastId::http("acme", "live", "main", "launch"),
            tenant: "acme".into(),
            environment: "live".into(),
            name: "\"ä\" \u{1f514}".into(),
            class: "marketing".into(),
            by: "key_1".into(),
            plan: Plan { canary: Some(1), rate, starts_at: Some(UnixMs(1)), local },
        };
        let plain = Broadcast::new(new, UnixMs(7));
        let problem = RowProblem { line: 3, field: "email".into(), wrong: "is no address".into() };
        let mut full = Broadcast {
            audience: Some(Audience { upload: 2, chunks: 3, rows: 4, bad: 5 }),
            upload: Some(Upload { number: 3, reserved: 64 }),
            leftovers: vec![Leftover { upload: 1, chunks: 1 }],
            walker: Some(Walker { node: "node-1".into(), fence: 9 }),
            bad: vec![problem.clone()],
            refused: vec![RowProblem { field: String::new(), ..problem }],
            ..plain.clone()
        };
        let states = [
            State::Draft,
            State::Ready,
            State::Running,
            State::Paused(Halt::Canary),
            State::Done,
            State::Aborted(Halt::Asked),
        ];
        for state in states {
            full.state = state;
            for it in [&plain, &full] {
                let text = serde_json::to_string(it).unwrap();
                assert_eq!(serde_json::from_str::<Broadcast>(&text).unwrap(), *it, "{text}");
            }
        }
    }
}
