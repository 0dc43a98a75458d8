//! What is decided before every call, on what was read after the claim.

use crate::delivery::{Delivery, Stop};
use crate::time::UnixMs;

/// Whether the call may be made now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Call,
    Expire,
    Stop(Stop),
}

/// Expiry first, then cancellation, then a newer version.
///
/// `newest_version` is the highest version accepted for the same collapse key and address, and
/// `own_version` the delivery's own. A delivery whose earlier call may have arrived is not
/// superseded: its outcome has to be cleared up under its own key.
#[must_use]
pub fn admit(delivery: &Delivery, own_version: Option<i64>, newest_version: Option<i64>, now: UnixMs) -> Verdict {
    if now >= delivery.expires_at {
        return Verdict::Expire;
    }
    if let Some(stop) = &delivery.stop {
        return Verdict::Stop(stop.clone());
    }
    match (own_version, newest_version) {
        (Some(own), Some(newest)) if newest > own && !delivery.this_send_may_have_arrived() => {
            Verdict::Stop(Stop::Supersede { by_version: newest })
        }
        _ => Verdict::Call,
    }
}
