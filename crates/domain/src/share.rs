//! How the nodes of an installation split a provider's pace. A node holds some of its parts for a while
//! and asks again before that has passed; the parts of a node that is gone become free. All that nodes
//! may go by at any moment is never more than all parts, whichever questions and answers are lost.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::UnixMs;

/// How long an answer counts; a node asks several times as often.
pub const SHARE_LEASE: Duration = Duration::from_secs(4);

/// One node's question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareAsk {
    /// The provider whose pace it is.
    pub pace: String,
    /// Into how many parts the pace is split; 0: this node wants none (any more).
    pub parts: u32,
    /// How many of them the node goes by while it asks, and until it has the answer.
    pub using: u32,
}

/// Who holds what of one pace.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    nodes: BTreeMap<String, Held>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    /// Of the node's question: an earlier one that comes late changes nothing.
    number: u64,
    held: u32,
    parts: u32,
    until: UnixMs,
}

impl Shares {
    /// Answers how many parts the node may go by from now on, for [`SHARE_LEASE`] from before it asked.
    /// `number` grows with every question of a node.
    ///
    /// What a node is to give up counts as held until it says that it goes by less.
    pub fn ask(&mut self, now: UnixMs, node: &str, number: u64, ask: &ShareAsk) -> u32 {
        if self.nodes.get(node).is_some_and(|held| held.number >= number) {
            return 0;
        }
        self.nodes.retain(|name, held| name == node || held.until > now);
        self.nodes.remove(node);
        if ask.parts == 0 {
            return 0;
        }
        let count = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX).saturating_add(1);
        let before = self.nodes.keys().take_while(|name| name.as_str() < node).count();
        let one_more = u32::try_from(before).unwrap_or(u32::MAX) < ask.parts % count;
        let fair = ask.parts / count + u32::from(one_more);
        let taken: u64 = self.nodes.values().map(|held| held.of(ask.parts)).sum();
        let free = u64::from(ask.parts).saturating_sub(taken);
        let granted = fair.min(u32::try_from(free).unwrap_or(u32::MAX));
        let held = Held { number, held: granted.max(ask.using), parts: ask.parts, until: now.plus(SHARE_LEASE) };
        self.nodes.insert(node.to_owned(), held);
        granted
    }
}

impl Held {
    /// In parts of another size: while a new pace goes round, nodes split it differently.
    fn of(&self, parts: u32) -> u64 {
        (u64::from(self.held) * u64::from(parts)).div_ceil(u64::from(self.parts))
    }
}
