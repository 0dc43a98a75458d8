//! Broadcasts: the life of one, and how fast it goes.

mod life;
mod rates;

use belfry_domain::broadcast::{Audience, Broadcast, Counts, Cursor, NewBroadcast, Plan, Walked};
use belfry_domain::{BroadcastId, UnixMs};

pub(super) const NOW: UnixMs = UnixMs(1_800_000_000_000);

pub(super) fn draft(plan: Plan) -> Broadcast {
    let new = NewBroadcast {
        id: BroadcastId::http("acme", "live", "main", "launch"),
        tenant: "acme".into(),
        environment: "live".into(),
        name: "launch".into(),
        class: "marketing".into(),
        by: "key_1".into(),
        plan,
    };
    Broadcast::new(new, NOW)
}

/// Of `chunks` chunks of ten rows each.
pub(super) fn audience(upload: u32, chunks: u32) -> Audience {
    Audience { upload, chunks, rows: u64::from(chunks) * 10, bad: 0 }
}

pub(super) fn ready(plan: Plan, chunks: u32) -> Broadcast {
    let begun = draft(plan).begin_upload(NOW).unwrap();
    begun.seal(audience(1, chunks), Vec::new(), NOW).unwrap()
}

pub(super) fn running(plan: Plan, chunks: u32) -> Broadcast {
    ready(plan, chunks).start(NOW).unwrap().taken("node-1")
}

/// So many accepted rows, up to there.
pub(super) fn step(rows: u64, chunk: u32, row: u32) -> Walked {
    let counts = Counts { walked: rows, accepted: rows, ..Counts::default() };
    Walked { counts, refused: Vec::new(), to: Cursor { chunk, row } }
}
