//! The tables, and what made each layout of the one before.

/// All of a fresh database, in their order.
pub const ALL: &[&str] = &[
    TABLES,
    RECIPIENTS,
    BY_RECIPIENT,
    SUPPRESSIONS,
    CAPS,
    PREFERENCES,
    PAUSES,
    ATTACHMENTS,
    SCHEDULES,
    GATHERINGS,
    BROADCASTS,
];

/// What a database of an older layout lacks.
pub struct Upgrade {
    pub to: i64,
    pub changes: &'static [&'static str],
}

pub const UPGRADES: &[Upgrade] = &[
    Upgrade { to: 2, changes: &[TO_2] },
    Upgrade { to: 3, changes: &[RECIPIENTS] },
    // What was accepted before named its recipient in its content only, and is not found by it.
    Upgrade { to: 4, changes: &["ALTER TABLE notifications ADD COLUMN recipient INTEGER;", BY_RECIPIENT] },
    Upgrade { to: 5, changes: &[SUPPRESSIONS] },
    Upgrade { to: 6, changes: &[CAPS] },
    Upgrade { to: 7, changes: &[PREFERENCES] },
    Upgrade { to: 8, changes: &[PAUSES] },
    // What was accepted before holds its attachments itself.
    Upgrade { to: 9, changes: &[ATTACHMENTS] },
    Upgrade { to: 10, changes: &[SCHEDULES] },
    Upgrade { to: 11, changes: &[GATHERINGS] },
    Upgrade { to: 12, changes: &[BROADCASTS] },
];

const TABLES: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
-- Kept in the same transaction as the rows they count.
CREATE TABLE lanes (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  waiting INTEGER NOT NULL DEFAULT 0,
  sending INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE counts (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counts VALUES ('unknown', 0), ('parked', 0), ('outbox', 0);
CREATE TABLE owners (
  id INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  environment TEXT NOT NULL,
  UNIQUE (tenant, environment)
);

CREATE TABLE notifications (
  seq INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  owner INTEGER NOT NULL,
  class TEXT NOT NULL,
  -- As of the latest write that was not a claim: what reads as waiting may be sending.
  state TEXT NOT NULL,
  reference TEXT,
  grp TEXT,
  remembered_until INTEGER NOT NULL,
  keep_content_ms INTEGER NOT NULL,
  repeats INTEGER NOT NULL DEFAULT 0,
  -- Set once all deliveries ended.
  ended_at INTEGER,
  -- Failed and parked records stay while their window is open.
  hold_until INTEGER,
  content_due INTEGER,
  -- Keyed hash of the one that it names, where it names one: the first eight bytes.
  recipient INTEGER,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX notification_ids ON notifications (id);
CREATE INDEX by_owner ON notifications (owner);
CREATE INDEX by_reference ON notifications (owner, reference) WHERE reference IS NOT NULL;
CREATE INDEX by_group ON notifications (owner, grp) WHERE grp IS NOT NULL;
CREATE INDEX by_rare_state ON notifications (owner, state)
  WHERE state IN ('parked', 'unknown', 'failed', 'bounced');
CREATE INDEX content_ages ON notifications (content_due) WHERE content_due IS NOT NULL;
CREATE INDEX record_ages ON notifications (ended_at) WHERE ended_at IS NOT NULL AND hold_until IS NULL;
CREATE INDEX hold_ages ON notifications (hold_until) WHERE hold_until IS NOT NULL;

-- seq = the notification's seq * 4096 + place within it.
CREATE TABLE deliveries (
  seq INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  siblings INTEGER NOT NULL,
  collapse INTEGER,
  lane INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  address INTEGER NOT NULL,
  lease_ms INTEGER NOT NULL,
  -- Four columns that a claim and a spend write alone; they overrule what the body says.
  state TEXT NOT NULL,
  alone INTEGER NOT NULL,
  -- Only while it waits.
  due_at INTEGER,
  rev INTEGER NOT NULL,
  -- Of the latest claim; survives its end, so that it only grows.
  fence INTEGER NOT NULL DEFAULT 0,
  spent INTEGER NOT NULL,
  -- The latest settle: a repeat of it after a lost reply is told Done, not Stale.
  done_fence INTEGER NOT NULL DEFAULT 0,
  done_nonce INTEGER NOT NULL DEFAULT 0,
  done_rev INTEGER NOT NULL DEFAULT 0,
  ended_at INTEGER,
  receipt_until INTEGER,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX delivery_ids ON deliveries (id);
CREATE INDEX due_turns ON deliveries (lane, alone, tenant, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX due_order ON deliveries (lane, alone, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX receipt_ages ON deliveries (receipt_until) WHERE receipt_until IS NOT NULL;
CREATE INDEX unknown_ages ON deliveries (ended_at) WHERE state = 'unknown';
CREATE INDEX by_address ON deliveries (address);

-- Small and hot: a renewal rewrites a row of 60 bytes and no record.
CREATE TABLE claims (
  id BLOB PRIMARY KEY,
  delivery INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  nonce INTEGER NOT NULL,
  worker TEXT NOT NULL,
  lease_until INTEGER NOT NULL,
  lease_ms INTEGER NOT NULL,
  alone INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX claim_lapses ON claims (lease_until);
CREATE INDEX claim_nonces ON claims (nonce, delivery);

-- Frozen content, under the notification's seq; purged before it.
CREATE TABLE inputs (seq INTEGER PRIMARY KEY, template INTEGER, body TEXT NOT NULL);
CREATE INDEX inputs_by_template ON inputs (template) WHERE template IS NOT NULL;

CREATE TABLE tombstones (
  seq INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  fingerprint NOT NULL,
  state TEXT NOT NULL,
  remembered_until INTEGER NOT NULL
);
CREATE UNIQUE INDEX tombstone_ids ON tombstones (id);
CREATE INDEX tombstone_ages ON tombstones (remembered_until);

CREATE TABLE collapse_groups (
  id INTEGER PRIMARY KEY,
  grp TEXT NOT NULL UNIQUE,
  newest INTEGER NOT NULL,
  kept_until INTEGER NOT NULL
);
CREATE INDEX collapse_ages ON collapse_groups (kept_until);

CREATE TABLE templates (
  id INTEGER PRIMARY KEY,
  version TEXT NOT NULL UNIQUE,
  files TEXT NOT NULL,
  kept_at INTEGER NOT NULL,
  -- Number of the opening that last asked to keep it.
  session INTEGER NOT NULL
);
CREATE INDEX template_ages ON templates (kept_at);

CREATE TABLE api_keys (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  hash TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX api_key_hashes ON api_keys (hash);
CREATE INDEX api_key_ages ON api_keys (created_at);

-- AUTOINCREMENT: a number never comes back, not even after the newest message was cleared.
CREATE TABLE outbox (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  owner INTEGER NOT NULL,
  recipient TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX outbox_by_owner ON outbox (owner);
CREATE INDEX outbox_by_recipient ON outbox (owner, recipient);
";

/// Stored recipients.
const RECIPIENTS: &str = "
CREATE TABLE profiles (
  seq INTEGER PRIMARY KEY,
  owner INTEGER NOT NULL,
  recipient TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX profile_names ON profiles (owner, recipient);

CREATE TABLE devices (
  seq INTEGER PRIMARY KEY,
  owner INTEGER NOT NULL,
  recipient TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  app TEXT,
  -- Keyed hash of the current one.
  token TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX device_names ON devices (owner, recipient, id);
CREATE INDEX device_tokens ON devices (owner, token);

CREATE TABLE dead_tokens (
  seq INTEGER PRIMARY KEY,
  owner INTEGER NOT NULL,
  id TEXT NOT NULL,
  -- The moment in 15 digits, then the id: the order of the list.
  place TEXT NOT NULL,
  heard_at INTEGER NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX dead_names ON dead_tokens (owner, id);
CREATE INDEX dead_places ON dead_tokens (owner, place);
CREATE INDEX dead_ages ON dead_tokens (heard_at);
";

/// Places in the ledgers of caps.
const CAPS: &str = "
CREATE TABLE cap_places (
  seq INTEGER PRIMARY KEY,
  ledger BLOB NOT NULL,
  reservation BLOB NOT NULL,
  -- The latest moment at which its call may have reached somebody.
  latest INTEGER NOT NULL,
  -- When it counts no more, by the window at its take.
  gone_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX cap_reservations ON cap_places (ledger, reservation);
CREATE INDEX cap_moments ON cap_places (ledger, latest);
CREATE INDEX cap_ages ON cap_places (gone_at);
";

const BY_RECIPIENT: &str = "CREATE INDEX by_recipient ON notifications (recipient) WHERE recipient IS NOT NULL;";

const SUPPRESSIONS: &str = "
CREATE TABLE suppressions (
  seq INTEGER PRIMARY KEY,
  owner INTEGER NOT NULL,
  -- The two halves of its id, of which the first says the owner as well.
  address BLOB NOT NULL,
  word BLOB NOT NULL,
  -- Since when in 15 digits, then the id: the order of the list.
  place TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX suppression_ids ON suppressions (address, word);
CREATE INDEX suppression_places ON suppressions (owner, place);
";

/// What recipients want; by [`Person::key`](crate::ports::preferences::Person::key), which says the owner as well.
const PREFERENCES: &str = "
CREATE TABLE preferences (
  seq INTEGER PRIMARY KEY,
  person BLOB NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX preference_people ON preferences (person);
";

/// Few: they are read whole.
const PAUSES: &str = "CREATE TABLE pauses (id BLOB PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;";

/// Contents of attachments, each once, and what they are kept for. Who holds one stands apart: to count that beside a
/// content would write all of it anew.
const ATTACHMENTS: &str = "
CREATE TABLE attachments (id INTEGER PRIMARY KEY, digest BLOB NOT NULL, content BLOB NOT NULL);
CREATE UNIQUE INDEX attachment_digests ON attachments (digest);
-- The holder is the seq of inputs, or below zero the id of a template.
CREATE TABLE attached (holder INTEGER NOT NULL, attachment INTEGER NOT NULL, PRIMARY KEY (holder, attachment))
  WITHOUT ROWID;
CREATE INDEX attachment_holders ON attached (attachment);
";

/// What is sent again and again.
const SCHEDULES: &str = "
CREATE TABLE schedules (
  seq INTEGER PRIMARY KEY,
  owner INTEGER NOT NULL,
  name TEXT NOT NULL,
  -- When somebody has to look at it, where that ever is.
  look_at INTEGER,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX schedule_names ON schedules (owner, name);
CREATE INDEX schedule_looks ON schedules (look_at) WHERE look_at IS NOT NULL;
";

/// What gathers: the slots, and which deliveries wait in each.
const GATHERINGS: &str = "
CREATE TABLE gather_slots (
  grp BLOB NOT NULL,
  until INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  -- Takes items still; at most one of a group does.
  open INTEGER NOT NULL,
  items INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  environment TEXT NOT NULL,
  PRIMARY KEY (grp, until)
) WITHOUT ROWID;
CREATE INDEX gather_due ON gather_slots (due_at);
CREATE TABLE gathered (grp BLOB NOT NULL, until INTEGER NOT NULL, item BLOB NOT NULL, PRIMARY KEY (grp, until, item))
  WITHOUT ROWID;
";

/// Broadcasts and their audiences. What one says, and its rows, stand apart: a step of its walk writes neither anew.
const BROADCASTS: &str = "
CREATE TABLE broadcasts (
  seq INTEGER PRIMARY KEY,
  owner INTEGER NOT NULL,
  id BLOB NOT NULL,
  rev INTEGER NOT NULL,
  -- Somebody has to look after it.
  active INTEGER NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX broadcast_ids ON broadcasts (id);
CREATE INDEX broadcast_owners ON broadcasts (owner);
CREATE INDEX active_broadcasts ON broadcasts (active) WHERE active = 1;
CREATE TABLE said (broadcast INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE audience_rows (
  seq INTEGER PRIMARY KEY,
  broadcast BLOB NOT NULL,
  upload INTEGER NOT NULL,
  chunk INTEGER NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX audience_chunks ON audience_rows (broadcast, upload, chunk);
";

/// Layout 1 kept in the body what a claim needs and a spend changes, and of actions their keys alone.
const TO_2: &str = "
ALTER TABLE deliveries ADD COLUMN lease_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE deliveries ADD COLUMN spent INTEGER NOT NULL DEFAULT 0;
UPDATE deliveries SET lease_ms = json_extract(body, '$.lease_ms'), spent = json_extract(body, '$.spent'),
  body = json_remove(body, '$.actions');
";
