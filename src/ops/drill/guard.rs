//! What keeps one intent to one effect, each of which a drill can do without.

use serde::{Serialize, Serializer};

/// One guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    IdempotencyKey,
    Unique,
    SharedRecord,
    DurableFirst,
    LeaseLapses,
    LeaseGate,
    Fence,
    SpentMark,
    LapseIsUnknown,
    TimeOutIsUnknown,
    StableKey,
    CollapseId,
}

impl Guard {
    pub const ALL: [Self; 12] = [
        Self::IdempotencyKey,
        Self::Unique,
        Self::SharedRecord,
        Self::DurableFirst,
        Self::LeaseLapses,
        Self::LeaseGate,
        Self::Fence,
        Self::SpentMark,
        Self::LapseIsUnknown,
        Self::TimeOutIsUnknown,
        Self::StableKey,
        Self::CollapseId,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::IdempotencyKey => "Idempotency-Key",
            Self::Unique => "unique",
            Self::SharedRecord => "the record is the key table",
            Self::DurableFirst => "durable before 202",
            Self::LeaseLapses => "leases lapse",
            Self::LeaseGate => "no call without a lease",
            Self::Fence => "fence",
            Self::SpentMark => "spent mark",
            Self::LapseIsUnknown => "spent and lapsed is unknown",
            Self::TimeOutIsUnknown => "a time-out is unknown",
            Self::StableKey => "one key for all attempts",
            Self::CollapseId => "one collapse id",
        }
    }

    /// What is done instead, where it is off.
    #[must_use]
    pub const fn off(self) -> &'static str {
        match self {
            Self::IdempotencyKey => "every try has a key of its own",
            Self::Unique => "nothing but the key says what the intent is",
            Self::SharedRecord => "every node remembers keys by itself",
            Self::DurableFirst => "202 first, written a little later",
            Self::LeaseLapses => "a claim is its worker's for good",
            Self::LeaseGate => "the call is made whatever the lease",
            Self::Fence => "who writes last wins",
            Self::SpentMark => "the call is made without having been recorded",
            Self::LapseIsUnknown => "a lapsed claim is put back, spent or not",
            Self::TimeOutIsUnknown => "silence is taken for \"not sent\"",
            Self::StableKey => "each attempt makes a key of its own",
            Self::CollapseId => "each attempt makes a collapse id of its own",
        }
    }
}

impl Serialize for Guard {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(self.name())
    }
}
