//! Names of keys. All keys of a shard have its tag in braces, so that a Cluster keeps them together.

use belfry_domain::{BroadcastId, DeliveryId, Key, NotificationId};
use sha2::{Digest, Sha256};

use crate::ports::attachments::AttachedId;
use crate::ports::broadcasts::ChunkAt;

/// Names the keys of one installation.
#[derive(Clone, Debug)]
pub struct Names {
    prefix: String,
    shards: u16,
}

impl Names {
    #[must_use]
    pub const fn new(prefix: String, shards: u16) -> Self {
        Self { prefix, shards }
    }

    #[must_use]
    pub const fn shards(&self) -> u16 {
        self.shards
    }

    /// Where an id belongs: its first two bytes, which a delivery has from its notification.
    #[must_use]
    pub fn shard_of(&self, id: &Key) -> u16 {
        let [high, low, ..] = *id.as_bytes();
        u16::from_be_bytes([high, low]) % self.shards
    }

    /// Where a text belongs, evenly spread.
    #[must_use]
    pub fn shard_of_text(&self, text: &str) -> u16 {
        let hash = Sha256::digest(text.as_bytes());
        u16::from_be_bytes([hash[0], hash[1]]) % self.shards
    }

    /// The shard's sequence: the first key of every call, from whose name a script has all others.
    #[must_use]
    pub fn sequence(&self, shard: u16) -> Vec<u8> {
        self.in_shard(shard, b"seq")
    }

    #[must_use]
    pub fn notification(&self, id: NotificationId) -> Vec<u8> {
        self.record(b'n', &id.0)
    }

    #[must_use]
    pub fn delivery(&self, id: DeliveryId) -> Vec<u8> {
        self.record(b'd', &id.0)
    }

    /// A recipient, by a digest of its owner's and its own names.
    #[must_use]
    pub fn recipient(&self, digest: &[u8; 16]) -> Vec<u8> {
        self.by_digest(b"rcp", digest)
    }

    /// Who has a token, by a digest of owner, kind, app and token.
    #[must_use]
    pub fn token(&self, digest: &[u8; 16]) -> Vec<u8> {
        self.by_digest(b"tok", digest)
    }

    /// The content of an attachment, in the shard of those that name it.
    #[must_use]
    pub fn attached(&self, shard: u16, id: &AttachedId) -> Vec<u8> {
        self.in_shard(shard, &[b"att".as_slice(), id.as_bytes()].concat())
    }

    /// A cap's ledger.
    #[must_use]
    pub fn ledger(&self, ledger: &Key) -> Vec<u8> {
        self.in_shard(self.shard_of(ledger), &[b"cap", ledger.as_bytes().as_slice()].concat())
    }

    /// The list of an owner's dead tokens in a shard: its order, and what was heard.
    #[must_use]
    pub fn dead(&self, shard: u16, owner: &[u8; 16]) -> Vec<Vec<u8>> {
        let key = |name: &[u8]| self.in_shard(shard, &[name, owner].concat());
        vec![key(b"dead"), key(b"said")]
    }

    /// What is suppressed for an address.
    #[must_use]
    pub fn suppressed(&self, address: &Key) -> Vec<u8> {
        self.in_shard(self.shard_of(address), &[b"sup".as_slice(), address.as_bytes()].concat())
    }

    /// The list of an owner's suppressions in a shard.
    #[must_use]
    pub fn suppressions(&self, shard: u16, owner: &[u8; 16]) -> Vec<u8> {
        self.in_shard(shard, &[b"sups".as_slice(), owner].concat())
    }

    /// What a recipient wants.
    #[must_use]
    pub fn preferences(&self, person: &Key) -> Vec<u8> {
        self.in_shard(self.shard_of(person), &[b"pref".as_slice(), person.as_bytes()].concat())
    }

    /// The slots of what gathers, by when they are due; from whose name a script has all others.
    #[must_use]
    pub fn gathering(&self, shard: u16) -> Vec<u8> {
        self.in_shard(shard, b"gd")
    }

    /// An owner's broadcasts.
    #[must_use]
    pub fn broadcasts(&self, owner: &[u8; 16]) -> Vec<u8> {
        self.by_digest(b"bro", owner)
    }

    /// What a broadcast says, beside its owner's.
    #[must_use]
    pub fn said_by(&self, owner: &[u8; 16], id: BroadcastId) -> Vec<u8> {
        self.in_shard(self.shard_of_digest(owner), &[b"brs".as_slice(), owner, id.0.as_bytes()].concat())
    }

    /// The list of broadcasts in a shard that somebody has to look after.
    #[must_use]
    pub fn walks(&self, shard: u16) -> Vec<u8> {
        self.in_shard(shard, b"walks")
    }

    /// A chunk of an audience's rows.
    #[must_use]
    pub fn chunk(&self, at: ChunkAt) -> Vec<u8> {
        let numbers = [at.upload.to_be_bytes(), at.chunk.to_be_bytes()].concat();
        self.in_shard(self.shard_of_chunk(at), &[b"brw", at.broadcast.0.as_bytes().as_slice(), &numbers].concat())
    }

    /// Evenly spread over all of them.
    #[must_use]
    pub fn shard_of_chunk(&self, at: ChunkAt) -> u16 {
        let first = u32::from(self.shard_of(&at.broadcast.0));
        u16::try_from((first + at.chunk % u32::from(self.shards)) % u32::from(self.shards)).unwrap_or(0)
    }

    #[must_use]
    pub fn shard_of_digest(&self, digest: &[u8; 16]) -> u16 {
        u16::from_be_bytes([digest[0], digest[1]]) % self.shards
    }

    fn by_digest(&self, family: &[u8], digest: &[u8; 16]) -> Vec<u8> {
        self.in_shard(self.shard_of_digest(digest), &[family, digest].concat())
    }

    /// Where workers are told that something may be due.
    #[must_use]
    pub fn wake_channel(&self) -> String {
        format!("{}:wake", self.prefix)
    }

    /// What belongs to the whole installation.
    #[must_use]
    pub fn installation(&self, name: &str) -> Vec<u8> {
        format!("{}:{{i}}:{name}", self.prefix).into_bytes()
    }

    /// All schedules, in one slot: what is due is one order. They are few beside what they send.
    #[must_use]
    pub fn schedules(&self, name: &[u8]) -> Vec<u8> {
        let mut key = format!("{}:{{s}}:", self.prefix).into_bytes();
        key.extend(name);
        key
    }

    fn record(&self, kind: u8, id: &Key) -> Vec<u8> {
        let mut name = self.in_shard(self.shard_of(id), &[kind]);
        name.extend(id.as_bytes());
        name
    }

    fn in_shard(&self, shard: u16, name: &[u8]) -> Vec<u8> {
        let mut key = format!("{}:{{{shard}}}:", self.prefix).into_bytes();
        key.extend(name);
        key
    }
}
