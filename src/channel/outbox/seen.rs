//! How often a send was seen, for the newest so many of them.

use std::collections::{HashMap, VecDeque};

use belfry_domain::Key;

/// Beyond it the oldest is forgotten, and would be refused anew.
const MOST: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Seen {
    counts: HashMap<Key, u32>,
    /// Oldest first.
    order: VecDeque<Key>,
}

impl Seen {
    /// How often this one has been seen, this time included.
    pub(super) fn count(&mut self, send: Key) -> u32 {
        if let Some(count) = self.counts.get_mut(&send) {
            *count = count.saturating_add(1);
            return *count;
        }
        if self.order.len() >= MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.counts.remove(&oldest);
        }
        self.order.push_back(send);
        self.counts.insert(send, 1);
        1
    }
}

#[cfg(test)]
mod tests {
    use belfry_domain::{KeyKind, child_key};

    use super::*;

    #[test]
    fn the_oldest_is_forgotten() {
        let mut seen = Seen::default();
        let key = |n: usize| child_key(KeyKind::Send, &[&n.to_be_bytes()]);
        for n in 0..=MOST {
            assert_eq!(seen.count(key(n)), 1);
        }
        assert_eq!((seen.count(key(1)), seen.count(key(MOST))), (2, 2));
        assert_eq!((seen.count(key(0)), seen.counts.len(), seen.order.len()), (1, MOST, MOST));
    }
}
