//! Which server has which keys, found out and kept up to date.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::dial::Dialer;
use super::errors::{Remedy, Trouble};
use super::node::{Node, Server};
use super::settings::{Address, LinkSettings, Topology};
use super::slot::{SLOTS, slot_of};
use crate::ports::reminders::Reminders;

/// Between two looks when nothing gave cause for one.
const EVERY: Duration = Duration::from_secs(1);
/// Between two looks however much cause there is.
const AT_MOST_EVERY: Duration = Duration::from_millis(100);
/// One look, all servers asked included.
const LOOK: Duration = Duration::from_millis(1_200);

/// What is known now.
#[derive(Clone, Default)]
pub struct Known {
    pub nodes: Vec<Arc<Node>>,
    /// Of a Cluster: by slot the place in `nodes`, [`NOBODY`] where none serves it.
    pub slots: Option<Arc<[u16]>>,
}

pub const NOBODY: u16 = u16::MAX;

impl Known {
    /// Who has `key`.
    #[must_use]
    pub fn holder(&self, key: &[u8]) -> Option<Arc<Node>> {
        let place = match &self.slots {
            None => 0,
            Some(slots) => *slots.get(usize::from(slot_of(key)))?,
        };
        self.nodes.get(usize::from(place)).cloned()
    }

    /// A hash tag that lies at the node in `place`: any where there are no slots.
    #[must_use]
    pub fn tag_at(&self, place: usize) -> Option<Vec<u8>> {
        let Some(slots) = &self.slots else { return Some(b"0".to_vec()) };
        let lies_there = |tag: &String| usize::from(slots[usize::from(slot_of(tag.as_bytes()))]) == place;
        // A node without slots has none; a thousand nodes with few slots each still find theirs.
        (0..1_000_000_u32)
            .map(|number| number.to_string())
            .take(usize::from(SLOTS) * 16)
            .find(lies_there)
            .map(String::into_bytes)
    }
}

pub struct Map {
    pub settings: LinkSettings,
    dialer: Arc<Dialer>,
    known: RwLock<Known>,
    looking: Mutex<()>,
    doubt: Notify,
    /// Raised whenever another server than before has any of the keys.
    generation: Arc<AtomicU64>,
}

impl Map {
    /// # Errors
    /// The file of roots cannot be used: why.
    pub fn new(settings: LinkSettings) -> Result<Self, String> {
        let dialer = Arc::new(Dialer::new(&settings.target, settings.ca_file.as_deref())?);
        let map = Self {
            settings,
            dialer,
            known: RwLock::default(),
            looking: Mutex::default(),
            doubt: Notify::new(),
            generation: Arc::default(),
        };
        if let Topology::Single(address) = &map.settings.target.topology {
            map.set(Known { nodes: vec![map.node(address.clone())], slots: None });
        }
        Ok(map)
    }

    pub fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    pub fn node(&self, address: Address) -> Arc<Node> {
        Arc::new(Node::new(Server {
            address,
            dialer: self.dialer.clone(),
            durability: self.settings.durability,
            must_lead: matches!(self.settings.target.topology, Topology::Sentinel { .. }),
            prefix: self.settings.prefix.clone(),
            generation: self.generation.clone(),
            run: std::sync::Mutex::default(),
        }))
    }

    #[must_use]
    pub fn known(&self) -> Known {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set(&self, known: Known) {
        let mut now = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let there = |address: &Address| now.nodes.iter().any(|node| node.server.address == *address);
        if !now.nodes.is_empty() && !known.nodes.iter().all(|node| there(&node.server.address)) {
            // Before any call can reach it: what another server has may be older.
            self.generation.fetch_add(1, Ordering::SeqCst);
        }
        *now = known;
    }

    pub fn servers(&self) -> usize {
        self.known().nodes.len()
    }

    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// Who has `key`, looked for where that is not known.
    ///
    /// # Errors
    /// [`Trouble::NoServer`]: nobody, or nobody says.
    pub async fn holder(&self, key: &[u8], until: Instant) -> Result<Arc<Node>, Trouble> {
        if let Some(node) = self.known_holder(key) {
            return Ok(node);
        }
        let _one = timeout_at(until, self.looking.lock()).await.map_err(|_| Trouble::Late)?;
        if let Some(node) = self.known_holder(key) {
            return Ok(node);
        }
        self.look(until.min(Instant::now() + LOOK)).await?;
        self.known_holder(key).ok_or(Trouble::NoServer)
    }

    fn known_holder(&self, key: &[u8]) -> Option<Arc<Node>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).holder(key)
    }

    /// All primaries, looked for where none is known.
    ///
    /// # Errors
    /// [`Trouble::NoServer`]: none is.
    pub async fn primaries(&self, until: Instant) -> Result<Known, Trouble> {
        if self.known().nodes.is_empty() {
            let _one = timeout_at(until, self.looking.lock()).await.map_err(|_| Trouble::Late)?;
            self.look(until.min(Instant::now() + LOOK)).await?;
        }
        let known = self.known();
        if known.nodes.is_empty() { Err(Trouble::NoServer) } else { Ok(known) }
    }

    async fn look(&self, until: Instant) -> Result<(), Trouble> {
        match &self.settings.target.topology {
            Topology::Single(_) => Ok(()),
            Topology::Sentinel { sentinels, primary } => super::sentinel::look(self, sentinels, primary, until).await,
            Topology::Cluster(seeds) => super::cluster::look(self, seeds, until).await,
        }
    }

    /// The server itself said who has `slot` now.
    pub fn moved(&self, slot: u16, to: &str, said_by: &Node) {
        self.doubt.notify_one();
        let said = match to.strip_prefix(':') {
            // Without a host it is the one that was asked, at another port.
            Some(port) => port.parse().ok().map(|port| Address { port, ..said_by.server.address.clone() }),
            None => Address::parse(to, 6_379),
        };
        let (Some(address), mut known) = (said, self.known()) else { return };
        let Some(slots) = &known.slots else { return };
        let mut slots = slots.to_vec();
        let place = known.nodes.iter().position(|node| node.server.address == address).unwrap_or_else(|| {
            known.nodes.push(self.node(address));
            known.nodes.len() - 1
        });
        if let (Some(entry), Ok(place)) = (slots.get_mut(usize::from(slot)), u16::try_from(place)) {
            *entry = place;
        }
        known.slots = Some(slots.into());
        self.set(known);
    }

    /// Does for the calls to come what `trouble` asks for.
    pub fn note(&self, trouble: &Trouble, node: &Node) {
        match trouble {
            // It says itself that it is not the one: its sockets are no use, however healthy.
            Trouble::ReadOnly | Trouble::PrimaryDown | Trouble::Unblocked | Trouble::NotPrimary => node.leave(),
            _ => {}
        }
        if matches!(trouble.remedy(), Remedy::FindPrimary | Remedy::RefreshSlots) {
            self.doubt.notify_one();
        }
    }

    /// Looks again and again, at once where a call gave cause.
    pub async fn watch(self: Arc<Self>) {
        let (first, mut told) = (Instant::now(), Reminders::default());
        loop {
            let begun = Instant::now();
            {
                let _one = self.looking.lock().await;
                if let Err(trouble) = self.look(Instant::now() + LOOK).await
                    && told.is_news(trouble.to_string(), begun.duration_since(first))
                {
                    tracing::warn!(code = trouble.code(), "the Redis primaries are not known: {trouble}");
                }
            }
            sleep_until(begun + AT_MOST_EVERY).await;
            tokio::select! {
                biased;
                () = self.doubt.notified() => {}
                () = sleep_until(begun + EVERY) => {}
            }
        }
    }
}
