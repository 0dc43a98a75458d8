//! The recipient's own device says that it showed the message. What it shows for this is a token
//! that stood in the payload: no API key ever gets onto a device.

use belfry_domain::delivery::StateName;
use belfry_domain::step::Rejected;
use belfry_domain::timeline::ReceiptKind;
use belfry_domain::{DeliveryId, Event, hex};

use super::accept::Intake;
use super::actions::Step;
use super::canonical::Secret;

use crate::ports::StoreError;

/// Bytes of the keyed hash in a token: far too many to guess.
const TOKEN_BYTES: usize = 16;

/// What became of *seen*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saw {
    /// It is on record, by this call or an earlier one.
    Noted,
    /// No such delivery, or another one's token: the two are never told apart.
    Absent,
    /// It came before the record of its own call: to be told again.
    Early,
    /// Nothing of this delivery can have been seen.
    NotNow(StateName),
}

/// The token that the payloads of a delivery carry, 32 hex digits.
#[must_use]
pub fn token(secret: &Secret, id: DeliveryId) -> String {
    hex(&secret.hash(&[b"seen", id.to_string().as_bytes()])[..TOKEN_BYTES])
}

impl Intake {
    /// The token that the payloads of a delivery carry, 32 hex digits.
    #[must_use]
    pub fn seen_token(&self, id: DeliveryId) -> String {
        token(self.secret(), id)
    }

    /// Notes that the delivery was seen. Safe to repeat; moves no state.
    ///
    /// # Errors
    /// [`StoreError`]: the same call again finishes it.
    pub async fn seen(&self, id: DeliveryId, token: &str) -> Result<Saw, StoreError> {
        // Before the store is asked: who guesses learns nothing, not even by the time it takes.
        if !same(token.as_bytes(), self.seen_token(id).as_bytes()) {
            return Ok(Saw::Absent);
        }
        let Some(delivery) = self.load(id).await? else { return Ok(Saw::Absent) };
        Ok(match self.carry_out(delivery, &Event::Receipt(ReceiptKind::Seen)).await? {
            Step::Written(_) | Step::Rejected(Rejected::Repeat, _) => Saw::Noted,
            Step::Rejected(Rejected::Early, _) => Saw::Early,
            Step::Rejected(_, delivery) => Saw::NotNow(delivery.state.name()),
            Step::Gone => Saw::Absent,
        })
    }
}

/// Whether they are equal, in a time that says nothing of where they differ.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
