//! What people ask of a delivery, kept beside the key it was asked under: a repeat has to ask the
//! same, or it is another request that must not pass for done.

use serde::{Deserialize, Serialize};

use crate::key::Key;
use crate::timeline::Resolution;

/// What a person asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub enum Asked {
    /// The same send once more. `after_send` is the number that the person saw.
    Redrive { after_send: u32 },
    /// Another send.
    SendAgain { after_send: u32 },
    /// What became of an unknown or parked one; `why` is empty where nothing was said.
    Resolve { to: Resolution, why: String },
}

/// An action and the key that makes its repeat recognisable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    pub key: Key,
    #[serde(flatten)]
    pub asked: Asked,
}

impl Asked {
    /// As the API calls it.
    #[must_use]
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Redrive { .. } => "redrive",
            Self::SendAgain { .. } => "send-again",
            Self::Resolve { .. } => "resolve",
        }
    }

    /// JSON pointers into the request whose parts are other ones than in `other`; the whole request
    /// (the empty pointer) where it asks for something else altogether. Empty where both ask the same.
    #[must_use]
    pub fn differing(&self, other: &Self) -> &'static [&'static str] {
        const AFTER_SEND: &[&str] = &["/after_send"];
        match (self, other) {
            (Self::Redrive { after_send: one }, Self::Redrive { after_send: two })
            | (Self::SendAgain { after_send: one }, Self::SendAgain { after_send: two }) => {
                if one == two {
                    &[]
                } else {
                    AFTER_SEND
                }
            }
            (Self::Resolve { to: one, why: said }, Self::Resolve { to: two, why }) => match (one == two, said == why) {
                (true, true) => &[],
                (true, false) => &["/why"],
                (false, true) => &["/to"],
                (false, false) => &["/to", "/why"],
            },
            _ => &[""],
        }
    }
}
