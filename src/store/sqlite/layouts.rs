//! Stores that an older Belfry wrote.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use belfry_domain::notification::Fingerprint;
use belfry_domain::suppression::SuppressionKind;
use belfry_domain::timeline::Hop;
use belfry_domain::{ChannelKind, KeyKind, Notification, NotificationId, UnixMs, child_key};

use super::core::Core;
use super::store::Shell;
use super::tests::{StoppedClock, files, open};
use super::threads::SqliteStore;
use super::writer::Answered;
use crate::ports::admin::Installation;
use crate::ports::caps::{Caps, Room, TakeAsk, Taken};
use crate::ports::deliveries::{Deliveries, NewNotification, Owner};
use crate::ports::recipients::{Profile, Recipient, Recipients};
use crate::ports::search::{NamedRecipient, Query};
use crate::ports::suppressions::{Put, Suppressed, Suppressions};

/// What each layout brought, taken away again.
const BROUGHT: [(i64, &str); 10] = [
    (3, "DROP TABLE profiles; DROP TABLE devices; DROP TABLE dead_tokens;"),
    (4, "DROP INDEX by_recipient; ALTER TABLE notifications DROP COLUMN recipient;"),
    (5, "DROP TABLE suppressions;"),
    (6, "DROP TABLE cap_places;"),
    (7, "DROP TABLE preferences;"),
    (8, "DROP TABLE pauses;"),
    (9, "DROP TABLE attached; DROP TABLE attachments;"),
    (10, "DROP TABLE schedules;"),
    (11, "DROP TABLE gathered; DROP TABLE gather_slots;"),
    (12, "DROP TABLE broadcasts; DROP TABLE said; DROP TABLE audience_rows;"),
];

/// Makes a closed store one of an older layout.
pub(super) fn back_to(path: &Path, layout: i64) -> rusqlite::Connection {
    let conn = rusqlite::Connection::open(path).unwrap();
    for (_, taken) in BROUGHT.iter().filter(|(since, _)| *since > layout) {
        conn.execute_batch(taken).unwrap();
    }
    conn.pragma_update(None, "user_version", layout).unwrap();
    conn
}

#[tokio::test]
async fn a_store_of_the_first_layout_is_carried_over() {
    let (place, store) = open();
    store.keep_template("before", &files("files")).await.unwrap();
    store.close().await;
    let path = place.path().join("belfry.db");
    let conn = back_to(&path, 1);
    let delivery = r#"{"lease_ms":7000,"spent":true}"#;
    conn.execute_batch(&format!(
        "ALTER TABLE deliveries DROP COLUMN lease_ms; ALTER TABLE deliveries DROP COLUMN spent;
         INSERT INTO deliveries (id, siblings, lane, tenant, address, state, alone, rev, body)
         VALUES (x'00', 1, 1, 't', 1, 'sending', 0, 1, '{delivery}')"
    ))
    .unwrap();
    drop(conn);
    let store = SqliteStore::open(&path, Arc::new(StoppedClock)).unwrap();
    let carried = |core: &mut Core, _| {
        let sql = "SELECT lease_ms, spent FROM deliveries";
        Ok(core.conn.query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?)))?)
    };
    assert_eq!(store.shell.write(Answered::OnDisk, carried).await.unwrap(), (7_000, true));
    // What layout 2 did not have is there and works.
    let owner = Owner { tenant: "t".into(), environment: "live".into() };
    store.put_profile(&owner, "ann", &Profile::default()).await.unwrap();
    assert_eq!(store.recipient(&owner, "ann").await.unwrap(), Some(Recipient::default()));
}

/// Of layout 3, which found nothing by its recipient.
#[tokio::test]
async fn what_layout_3_accepted_is_there_and_what_comes_after_it_is_found_by_its_recipient() {
    let (place, store) = open();
    store.accept(vec![intent("before", None)]).await.unwrap();
    store.close().await;
    let path = place.path().join("belfry.db");
    drop(back_to(&path, 3));
    let store = SqliteStore::open(&path, Arc::new(StoppedClock)).unwrap();
    store.accept(vec![intent("after", Some("ann"))]).await.unwrap();
    let owner = Owner { tenant: "t".into(), environment: "live".into() };
    let query = Query::of(owner);
    let recipient = NamedRecipient { name: "ann".into(), hash: "ab".repeat(16) };
    let named = Query { recipient: Some(recipient), ..query.clone() };
    let found = async |query| store.search(query).await.unwrap().records.len();
    assert_eq!((found(query).await, found(named).await), (2, 1));
}

/// Of layout 4, which suppressed nothing.
#[tokio::test]
async fn a_store_of_layout_4_keeps_what_it_has_and_suppresses_from_then_on() {
    let (place, store) = open();
    let owner = Owner { tenant: "t".into(), environment: "live".into() };
    store.put_profile(&owner, "ann", &Profile::default()).await.unwrap();
    store.close().await;
    let path = place.path().join("belfry.db");
    drop(back_to(&path, 4));
    let store = SqliteStore::open(&path, Arc::new(StoppedClock)).unwrap();
    assert_eq!(store.recipient(&owner, "ann").await.unwrap(), Some(Recipient::default()));
    let entry = Suppressed {
        channel: ChannelKind::Email,
        address_hash: "ab".repeat(16),
        address_mask: "a…@example.com".into(),
        kind: SuppressionKind::Manual,
        category: None,
        sender: None,
        since: UnixMs(1),
        until: None,
        origin: "key_1".into(),
        note: None,
    };
    assert_eq!(store.put(&owner, &entry).await.unwrap(), Put::Kept(Box::new(entry.clone())));
    store.close().await;
    // As it stands in the file.
    let store = SqliteStore::open(&path, Arc::new(StoppedClock)).unwrap();
    assert_eq!(store.find(vec![entry.addressee(&owner)]).await, [Ok(vec![entry])]);
}

/// Of layout 5, which kept no caps.
#[tokio::test]
async fn a_store_of_layout_5_keeps_caps_from_then_on() {
    let (place, store) = open();
    store.keep_template("before", &files("files")).await.unwrap();
    store.close().await;
    let path = place.path().join("belfry.db");
    drop(back_to(&path, 5));
    let store = SqliteStore::open(&path, Arc::new(StoppedClock)).unwrap();
    assert_eq!(store.template("before").await.unwrap(), Some(files("files")));
    let room = Room { ledger: child_key(KeyKind::Cap, &[b"cap"]), limit: 1, window: Duration::from_secs(60) };
    let ask = |call: &[u8]| {
        let reservation = child_key(KeyKind::Take, &[call]);
        vec![TakeAsk { rooms: vec![room], reservation, longest: Duration::ZERO }]
    };
    assert_eq!(store.take(ask(b"one")).await.unwrap(), [Taken::All]);
    assert_ne!(store.take(ask(b"two")).await.unwrap(), [Taken::All]);
}

pub(super) fn intent(key: &str, recipient: Option<&str>) -> NewNotification {
    let notification = Notification {
        id: NotificationId::http("t", "live", "keys", key),
        tenant: "t".into(),
        environment: "live".into(),
        class: "receipt".into(),
        created_at: UnixMs(1),
        remembered_until: UnixMs(2),
        via: Hop::Http,
        template: None,
        scope: None,
        reference: None,
        group: None,
        collapse: None,
        send_at: None,
        expires_at: UnixMs(2),
        traceparent: None,
        metadata: None,
        fingerprint: Fingerprint { whole: "0f".repeat(32), parts: BTreeMap::new() },
        keep_content_ms: 1,
        recipient: recipient.map(str::to_owned),
        left_out: Vec::new(),
        digest: None,
        gathered: Vec::new(),
    };
    let recipient_hash = recipient.map(|_| "ab".repeat(16));
    let (deliveries, collapse_groups) = (Vec::new(), Vec::new());
    NewNotification {
        notification,
        deliveries,
        inputs: "{}".into(),
        attached: Vec::new(),
        recipient_hash,
        collapse_groups,
    }
}
