//! What is known of the recipients that a request names: read before the request is, for reading it does
//! no I/O. A repeat is recognised whatever has become of them since.

use std::collections::{BTreeMap, BTreeSet};

use belfry_domain::device::{LeftOut, Standing};
use futures::StreamExt as _;
use futures::stream;

use super::accept::Intake;
use super::caller::Caller;
use super::json::Node;
use super::recipient::Recipient as Given;
use crate::content::inputs::Device;
use crate::ports::StoreError;
use crate::ports::recipients::Recipient;

/// Recipients asked for at once.
const AT_ONCE: usize = 32;

/// Who asks, and what is stored of those whom the request names.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    pub caller: &'a Caller,
    pub stored: &'a Stored,
}

/// By id; whoever is not stored is not in it.
#[derive(Debug, Default)]
pub struct Stored(BTreeMap<String, Recipient>);

/// Whether a request may name a recipient at all: most do not, and need not be read twice.
#[must_use]
pub fn may_name(bytes: &[u8]) -> bool {
    const NAME: &[u8] = b"\"recipient\"";
    // A name with escapes in it counts as well, by the only escape that can spell a letter: line ends are
    // escaped in nearly every text.
    bytes.windows(NAME.len()).any(|window| window == NAME) || bytes.windows(2).any(|pair| pair == b"\\u")
}

/// The recipient that a request names.
#[must_use]
pub fn named(request: &Node<'_>) -> Option<String> {
    let name = request.member("to")?.member("recipient")?.text()?;
    Some(name.to_owned())
}

impl Intake {
    /// Reads what is stored of `names`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn stored(&self, caller: &Caller, names: BTreeSet<String>) -> Result<Stored, StoreError> {
        let owner = caller.owner();
        let read = |name: String| {
            let owner = owner.clone();
            async move {
                let found = self.ports.recipients.recipient(&owner, &name).await?;
                Ok::<_, StoreError>(found.map(|found| (name, found)))
            }
        };
        let mut reads = stream::iter(names).map(read).buffer_unordered(AT_ONCE);
        let mut stored = BTreeMap::new();
        while let Some(found) = reads.next().await {
            stored.extend(found?);
        }
        Ok(Stored(stored))
    }
}

impl Stored {
    /// Fills in what the request leaves to the stored recipient: what it gives itself goes before. Answers the devices
    /// that are not among it because nothing may go to them.
    pub(super) fn fill(&self, given: &mut Given) -> Vec<LeftOut> {
        let Some(stored) = given.to.recipient.as_ref().and_then(|id| self.0.get(id)) else { return Vec::new() };
        let Recipient { profile, devices } = stored;
        let to = &mut given.to;
        to.email = to.email.take().or_else(|| profile.email.clone());
        to.phone = to.phone.take().or_else(|| profile.phone.clone());
        given.locale = given.locale.take().or_else(|| profile.locale.clone());
        given.time_zone = given.time_zone.take().or_else(|| profile.time_zone.clone());
        if !to.devices.is_empty() {
            return Vec::new();
        }
        let live = devices.iter().filter(|device| device.standing == Standing::Live);
        to.devices = live.map(device).collect();
        devices.iter().filter_map(|it| LeftOut::of(&it.id, it.kind, it.standing)).collect()
    }
}

fn device(stored: &crate::ports::recipients::Device) -> Device {
    Device {
        kind: stored.kind,
        token: stored.token.token.clone(),
        app: stored.app.clone(),
        environment: stored.environment.clone(),
        id: Some(stored.id.clone()),
    }
}
