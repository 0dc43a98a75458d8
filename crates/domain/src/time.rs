//! Instants. The domain never reads a clock: instants come in as arguments.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A wall-clock instant in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMs(pub i64);

impl UnixMs {
    /// Later by `by`; saturates at the end of time instead of wrapping.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(millis(by)))
    }

    /// Earlier by `by`; saturates.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(millis(by)))
    }

    /// How long ago `earlier` was; zero where `earlier` lies ahead (a clock that stepped back).
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

fn millis(by: Duration) -> i64 {
    i64::try_from(by.as_millis()).unwrap_or(i64::MAX)
}

/// Durations as whole milliseconds in stored and configured values.
pub mod duration_ms {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(value: &Duration, out: S) -> Result<S::Ok, S::Error> {
        u64::try_from(value.as_millis()).unwrap_or(u64::MAX).serialize(out)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
        u64::deserialize(input).map(Duration::from_millis)
    }
}
