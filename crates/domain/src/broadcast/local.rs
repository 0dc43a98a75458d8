//! A local time: each recipient is told at a moment of their own.

use serde::{Deserialize, Serialize};

use crate::time::UnixMs;
use crate::zone::{LocalTime, Zone};

/// The same local time in every recipient's own zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalSend {
    /// As [`LocalTime`] is written.
    pub at: String,
    /// Of recipients whose own zone is not known.
    pub zone: String,
}

impl LocalSend {
    /// When that is for a recipient in `zone`. `None` where it names no moment.
    #[must_use]
    pub fn moment(&self, zone: Option<&str>) -> Option<UnixMs> {
        let local: LocalTime = self.at.parse().ok()?;
        let own = zone.and_then(|name| name.parse::<Zone>().ok());
        match own {
            Some(own) => own.at(local),
            None => self.zone.parse::<Zone>().ok()?.at(local),
        }
    }
}
