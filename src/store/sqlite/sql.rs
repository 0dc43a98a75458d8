//! Every statement, by name. In one place so that a test can ask SQLite for the plan of each: none
//! may walk a table that grows with what is remembered.

macro_rules! statements {
    ($($name:ident = $text:expr;)+) => {
        $(pub const $name: &str = $text;)+
        #[cfg(test)]
        pub const ALL: &[(&str, &str)] = &[$((stringify!($name), $text)),+];
    };
}

statements! {
    // Accept.
    NOTIFICATION_BY_ID = "SELECT seq FROM notifications WHERE id = ?1";
    COUNT_REPEAT = "UPDATE notifications SET repeats = repeats + 1 WHERE seq = ?1";
    TOMBSTONE_BY_ID = "SELECT fingerprint, state, remembered_until FROM tombstones WHERE id = ?1";
    ADD_NOTIFICATION = "INSERT INTO notifications (id, owner, class, state, reference, grp, remembered_until,
        keep_content_ms, ended_at, hold_until, content_due, recipient, body)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    ADD_DELIVERY = "INSERT INTO deliveries (seq, id, siblings, collapse, lane, tenant, address, lease_ms, state, alone,
        due_at, rev, spent, ended_at, receipt_until, body)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
    ADD_INPUTS = "INSERT INTO inputs (seq, template, body)
        VALUES (?1, (SELECT id FROM templates WHERE version = ?2), ?3)";
    RAISE_COLLAPSE = "INSERT INTO collapse_groups (grp, newest, kept_until) VALUES (?1, ?2, ?3)
        ON CONFLICT (grp) DO UPDATE SET newest = max(newest, excluded.newest),
            kept_until = max(kept_until, excluded.kept_until)
        RETURNING id";

    // Attachments.
    ATTACHMENT = "SELECT id FROM attachments WHERE digest = ?1";
    ADD_ATTACHMENT = "INSERT INTO attachments (digest, content) VALUES (?1, ?2)";
    ATTACH = "INSERT OR IGNORE INTO attached (holder, attachment) VALUES (?1, ?2)";
    ATTACHED_CONTENT = "SELECT content FROM attachments WHERE digest = ?1";
    ATTACHED_TO = "SELECT a.digest, a.content FROM attached h JOIN attachments a ON a.id = h.attachment
        WHERE h.holder = ?1";
    DETACH = "DELETE FROM attached WHERE holder = ?1 RETURNING attachment";
    DROP_ATTACHMENT = "DELETE FROM attachments WHERE id = ?1
        AND NOT EXISTS (SELECT 1 FROM attached WHERE attachment = ?1)";

    // Names as numbers, counters.
    LANE_ID = "SELECT id FROM lanes WHERE name = ?1";
    ADD_LANE = "INSERT INTO lanes (name) VALUES (?1)";
    OWNER_ID = "SELECT id FROM owners WHERE tenant = ?1 AND environment = ?2";
    ADD_OWNER = "INSERT INTO owners (tenant, environment) VALUES (?1, ?2)";
    COUNT_LANE = "UPDATE lanes SET waiting = waiting + ?2, sending = sending + ?3 WHERE id = ?1";
    COUNT = "UPDATE counts SET n = n + ?2 WHERE name = ?1";

    // Claim.
    FIRST_TENANT = "SELECT tenant, due_at FROM deliveries
        WHERE lane = ?1 AND alone = ?2 AND due_at IS NOT NULL ORDER BY tenant, due_at LIMIT 1";
    NEXT_TENANT = "SELECT tenant, due_at FROM deliveries
        WHERE lane = ?1 AND alone = ?2 AND tenant > ?3 AND due_at IS NOT NULL ORDER BY tenant, due_at LIMIT 1";
    DUE_OF_TENANT = "SELECT seq, due_at FROM deliveries
        WHERE lane = ?1 AND alone = ?2 AND tenant = ?3 AND due_at <= ?4 AND (due_at, seq) > (?5, ?6)
        ORDER BY due_at, seq LIMIT ?7";
    LONGEST_DUE = "SELECT tenant FROM deliveries
        WHERE lane = ?1 AND alone = ?2 AND due_at > ?5 AND due_at <= ?3 ORDER BY due_at, seq LIMIT ?4";
    NEXT_DUE = "SELECT due_at FROM deliveries
        WHERE lane = ?1 AND alone = ?2 AND due_at > ?3 ORDER BY due_at LIMIT 1";
    NEXT_DUE_OF_TENANT = "SELECT due_at FROM deliveries
        WHERE lane = ?1 AND alone = ?2 AND tenant = ?3 AND due_at > ?4 ORDER BY due_at LIMIT 1";
    CLAIMABLE = "SELECT d.state, d.rev, d.fence, d.spent, d.body, d.id, d.lane, d.lease_ms, n.body, i.body, g.newest
        FROM deliveries d JOIN notifications n ON n.seq = d.seq / 4096
        LEFT JOIN inputs i ON i.seq = n.seq LEFT JOIN collapse_groups g ON g.id = d.collapse
        WHERE d.seq = ?1";
    CLAIM_DELIVERY = "UPDATE deliveries SET state = 'sending', due_at = NULL, rev = rev + 1, fence = fence + 1
        WHERE seq = ?1";
    ADD_CLAIM = "INSERT INTO claims (id, delivery, fence, nonce, worker, lease_until, lease_ms, alone)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    CLAIMS_OF_NONCE = "SELECT delivery, fence, id FROM claims WHERE nonce = ?1 AND worker = ?2 ORDER BY delivery";
    RENEW = "UPDATE claims SET lease_until = CASE WHEN lease_until = ?4 + lease_ms
            THEN lease_until + 1 ELSE ?4 + lease_ms END
        WHERE id = ?1 AND fence = ?2 AND nonce = ?3";
    HELD = "SELECT id, fence, nonce, worker, lease_until, lease_ms, alone FROM claims ORDER BY lease_until LIMIT ?1";
    END_CLAIM = "DELETE FROM claims WHERE id = ?1";

    // Write.
    DELIVERY_BY_ID = "SELECT d.seq, d.siblings, d.lane, d.state, d.rev, d.fence, d.spent,
        d.done_fence, d.done_nonce, d.done_rev, c.fence, c.nonce, c.lease_until
        FROM deliveries d LEFT JOIN claims c ON c.id = d.id WHERE d.id = ?1";
    DELIVERY_BY_SEQ = "SELECT state, rev, fence, spent, body FROM deliveries WHERE seq = ?1";
    SPEND = "UPDATE deliveries SET spent = 1, rev = rev + 1 WHERE seq = ?1";
    PUT_DELIVERY = "UPDATE deliveries SET lane = ?2, state = ?3, alone = ?4, due_at = ?5, rev = ?6, spent = ?7,
        done_fence = ?8, done_nonce = ?9, done_rev = ?10, ended_at = ?11, receipt_until = ?12, body = ?13
        WHERE seq = ?1";
    STATES_OF = "SELECT state, ended_at FROM deliveries WHERE seq BETWEEN ?1 * 4096 AND ?1 * 4096 + 4095";
    PUT_ROLLUP = "UPDATE notifications SET state = ?2, ended_at = ?3,
        hold_until = CASE WHEN ?3 IS NOT NULL AND ?4 THEN remembered_until END,
        content_due = CASE WHEN NOT ?4 THEN ?3 + keep_content_ms END WHERE seq = ?1";

    // Read.
    NOTIFICATION = "SELECT id, owner, class, state, reference, grp, repeats, body FROM notifications WHERE seq = ?1";
    DELIVERIES_OF = "SELECT state, rev, fence, spent, body FROM deliveries WHERE seq BETWEEN ?1 * 4096
        AND ?1 * 4096 + 4095 ORDER BY seq";
    DELIVERY_SEQ = "SELECT seq FROM deliveries WHERE id = ?1";
    DELIVERY = "SELECT state, rev, fence, spent, body FROM deliveries WHERE id = ?1";
    INPUTS = "SELECT i.body FROM notifications n JOIN inputs i ON i.seq = n.seq WHERE n.id = ?1";
    RECEIPTS_OVERDUE = "SELECT state, rev, fence, spent, body FROM deliveries WHERE receipt_until <= ?1
        ORDER BY receipt_until LIMIT ?2";
    BY_OWNER = "SELECT seq FROM notifications WHERE owner = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3";
    BY_REFERENCE = "SELECT seq FROM notifications WHERE owner = ?1 AND reference = ?4 AND seq < ?2
        ORDER BY seq DESC LIMIT ?3";
    BY_GROUP = "SELECT seq FROM notifications WHERE owner = ?1 AND grp = ?4 AND seq < ?2
        ORDER BY seq DESC LIMIT ?3";
    BY_RARE_STATE = "SELECT seq FROM notifications WHERE owner = ?1 AND state = ?4
        AND state IN ('parked', 'unknown', 'failed', 'bounced') AND seq < ?2 ORDER BY seq DESC LIMIT ?3";
    BY_ADDRESS = "SELECT seq / 4096 FROM deliveries WHERE address = ?1 AND seq < ?2 * 4096
        ORDER BY seq DESC LIMIT ?3";
    BY_RECIPIENT = "SELECT seq FROM notifications WHERE recipient = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3";
    LANES = "SELECT id, name, waiting, sending FROM lanes ORDER BY name";
    DUE_UP_TO = "SELECT count(*) FROM (SELECT 1 FROM deliveries
        WHERE lane = ?1 AND alone = ?2 AND due_at <= ?3 AND due_at > ?5 LIMIT ?4)";
    HELD_BACK = "SELECT due_at, seq, state, rev, fence, spent, body FROM deliveries
        WHERE lane = ?1 AND alone = ?2 AND due_at <= ?3 AND (due_at, seq) > (?4, ?5) ORDER BY due_at, seq LIMIT ?6";
    LANE_IDS = "SELECT id FROM lanes WHERE id >= ?1 ORDER BY id";
    DUE_AFTER = "SELECT count(*) FROM (SELECT 1 FROM deliveries
        WHERE lane = ?1 AND alone = ?2 AND due_at > ?3 LIMIT ?4)";
    GET_COUNT = "SELECT n FROM counts WHERE name = ?1";
    OLDEST_UNKNOWN = "SELECT ended_at FROM deliveries WHERE state = 'unknown' ORDER BY ended_at LIMIT 1";

    // Purge.
    CONTENT_OVER = "SELECT seq FROM notifications WHERE content_due <= ?1 ORDER BY content_due LIMIT ?2";
    DROP_INPUTS = "DELETE FROM inputs WHERE seq = ?1";
    CONTENT_GONE = "UPDATE notifications SET content_due = NULL WHERE seq = ?1";
    HOLD_OVER = "SELECT seq FROM notifications WHERE hold_until <= ?1 ORDER BY hold_until LIMIT ?2";
    RELEASE_HOLD = "UPDATE notifications SET hold_until = NULL WHERE seq = ?1";
    RECORD_OVER = "SELECT seq, id, state, remembered_until, body FROM notifications
        WHERE ended_at <= ?1 AND hold_until IS NULL ORDER BY ended_at LIMIT ?2";
    DROP_DELIVERIES = "DELETE FROM deliveries WHERE seq BETWEEN ?1 * 4096 AND ?1 * 4096 + 4095";
    DROP_NOTIFICATION = "DELETE FROM notifications WHERE seq = ?1";
    ADD_TOMBSTONE = "INSERT OR REPLACE INTO tombstones (id, fingerprint, state, remembered_until)
        VALUES (?1, ?2, ?3, ?4)";
    TOMBSTONE_OVER = "SELECT seq FROM tombstones WHERE remembered_until <= ?1 ORDER BY remembered_until LIMIT ?2";
    DROP_TOMBSTONE = "DELETE FROM tombstones WHERE seq = ?1";
    COLLAPSE_OVER = "SELECT id FROM collapse_groups WHERE kept_until <= ?1 ORDER BY kept_until LIMIT ?2";
    DROP_COLLAPSE = "DELETE FROM collapse_groups WHERE id = ?1";
    TEMPLATE_OVER = "SELECT id FROM templates t WHERE kept_at <= ?1 AND session < ?2
        AND NOT EXISTS (SELECT 1 FROM inputs i WHERE i.template = t.id) ORDER BY kept_at LIMIT ?3";
    DROP_TEMPLATE = "DELETE FROM templates WHERE id = ?1";

    // API keys, installation, outbox.
    ADD_KEY = "INSERT INTO api_keys (id, hash, created_at, body) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO NOTHING";
    KEY_BY_HASH = "SELECT body FROM api_keys WHERE hash = ?1 ORDER BY seq LIMIT 1";
    KEY_BY_ID = "SELECT body FROM api_keys WHERE id = ?1";
    PUT_KEY = "UPDATE api_keys SET body = ?2 WHERE id = ?1";
    KEYS = "SELECT body FROM api_keys ORDER BY created_at, seq LIMIT 1000";
    GET_META = "SELECT value FROM meta WHERE key = ?1";
    ADD_META = "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO NOTHING";
    DROP_META = "DELETE FROM meta WHERE key = ?1 AND value = ?2";
    PUT_META = "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    KEEP_TEMPLATE = "INSERT INTO templates (version, files, kept_at, session) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (version) DO UPDATE SET files = excluded.files, kept_at = max(kept_at, excluded.kept_at),
            session = excluded.session
        RETURNING id";
    TEMPLATE = "SELECT id, files FROM templates WHERE version = ?1";
    ADD_OUTBOX = "INSERT INTO outbox (owner, recipient, body) VALUES (?1, ?2, ?3)";
    TRIM_OUTBOX = "DELETE FROM outbox WHERE seq IN (SELECT seq FROM outbox ORDER BY seq LIMIT ?1)";
    OUTBOX_ALL = "SELECT seq, body FROM outbox WHERE owner = ?1 AND seq > ?2 ORDER BY seq DESC LIMIT ?3";
    OUTBOX_TO = "SELECT seq, body FROM outbox WHERE owner = ?1 AND recipient = ?4 AND seq > ?2
        ORDER BY seq DESC LIMIT ?3";
    CLEAR_OUTBOX = "DELETE FROM outbox WHERE owner = ?1";
    CLEAR_OUTBOX_TO = "DELETE FROM outbox WHERE owner = ?1 AND recipient = ?2";

    // Recipients, devices, what was heard of tokens.
    PUT_PROFILE = "INSERT INTO profiles (owner, recipient, body) VALUES (?1, ?2, ?3)
        ON CONFLICT (owner, recipient) DO UPDATE SET body = excluded.body";
    PROFILE = "SELECT body FROM profiles WHERE owner = ?1 AND recipient = ?2";
    DROP_PROFILE = "DELETE FROM profiles WHERE owner = ?1 AND recipient = ?2";
    PUT_DEVICE = "INSERT INTO devices (owner, recipient, id, kind, app, token, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
        ON CONFLICT (owner, recipient, id) DO UPDATE SET kind = excluded.kind, app = excluded.app,
            token = excluded.token, body = excluded.body";
    TAKE_TOKEN = "DELETE FROM devices WHERE owner = ?1 AND token = ?2 AND kind = ?3 AND app IS ?4
        AND (recipient, id) <> (?5, ?6)";
    DEVICE = "SELECT body FROM devices WHERE owner = ?1 AND recipient = ?2 AND id = ?3";
    DEVICES = "SELECT body FROM devices WHERE owner = ?1 AND recipient = ?2 ORDER BY id";
    COUNT_DEVICES = "SELECT count(*) FROM devices WHERE owner = ?1 AND recipient = ?2";
    DROP_DEVICE = "DELETE FROM devices WHERE owner = ?1 AND recipient = ?2 AND id = ?3";
    DROP_DEVICES = "DELETE FROM devices WHERE owner = ?1 AND recipient = ?2";
    PUT_DEAD = "INSERT INTO dead_tokens (owner, id, place, heard_at, body) VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT (owner, id) DO UPDATE SET place = excluded.place, heard_at = excluded.heard_at,
            body = excluded.body WHERE excluded.place > place";
    DEAD = "SELECT place, body FROM dead_tokens WHERE owner = ?1 AND place > ?2 ORDER BY place LIMIT ?3";
    DROP_DEAD = "DELETE FROM dead_tokens WHERE owner = ?1 AND place = ?2";
    DROP_OLD_DEAD = "DELETE FROM dead_tokens WHERE seq IN
        (SELECT seq FROM dead_tokens WHERE heard_at < ?1 ORDER BY heard_at LIMIT ?2)";

    // Suppressions.
    PUT_SUPPRESSION = "INSERT INTO suppressions (owner, address, word, place, body) VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT (address, word) DO UPDATE SET place = excluded.place, body = excluded.body";
    SUPPRESSIONS_OF = "SELECT body FROM suppressions WHERE address = ?1";
    SUPPRESSION = "SELECT body FROM suppressions WHERE address = ?1 AND word = ?2";
    COUNT_SUPPRESSIONS = "SELECT count(*) FROM suppressions WHERE address = ?1";
    WORDS_OF = "SELECT word, body FROM suppressions WHERE address = ?1";
    DROP_SUPPRESSION = "DELETE FROM suppressions WHERE address = ?1 AND word = ?2";
    LIFT_SUPPRESSION = "DELETE FROM suppressions WHERE owner = ?1 AND address = ?2 AND word = ?3";
    SUPPRESSIONS = "SELECT place, body FROM suppressions WHERE owner = ?1 AND place < ?2
        ORDER BY place DESC LIMIT ?3";

    // Preferences.
    PREFERENCES_OF = "SELECT body FROM preferences WHERE person = ?1";
    PUT_PREFERENCES = "INSERT INTO preferences (person, body) VALUES (?1, ?2)
        ON CONFLICT (person) DO UPDATE SET body = excluded.body";
    DROP_PREFERENCES = "DELETE FROM preferences WHERE person = ?1";
    // Pauses.
    PUT_PAUSE = "INSERT INTO pauses (id, body) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET body = excluded.body";
    PAUSE = "SELECT body FROM pauses WHERE id = ?1";
    PAUSES = "SELECT body FROM pauses ORDER BY id LIMIT 1000";
    DROP_PAUSE = "DELETE FROM pauses WHERE id = ?1";

    // Schedules.
    SCHEDULE = "SELECT body FROM schedules WHERE owner = ?1 AND name = ?2";
    COUNT_SCHEDULES = "SELECT count(*) FROM schedules WHERE owner = ?1";
    PUT_SCHEDULE = "INSERT INTO schedules (owner, name, look_at, body) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (owner, name) DO UPDATE SET look_at = excluded.look_at, body = excluded.body";
    DROP_SCHEDULE = "DELETE FROM schedules WHERE owner = ?1 AND name = ?2";
    SCHEDULES = "SELECT name, body FROM schedules WHERE owner = ?1 AND name > ?2 ORDER BY name LIMIT ?3";
    DUE_SCHEDULES = "SELECT seq, body FROM schedules WHERE look_at <= ?1 ORDER BY look_at LIMIT ?2";
    LOOK_AGAIN = "UPDATE schedules SET look_at = ?2 WHERE seq = ?1";
    NEXT_LOOK = "SELECT look_at FROM schedules WHERE look_at > ?1 ORDER BY look_at LIMIT 1";

    // Broadcasts.
    COUNT_BROADCASTS = "SELECT count(*) FROM broadcasts WHERE owner = ?1";
    ADD_BROADCAST = "INSERT INTO broadcasts (owner, id, rev, active, body) VALUES (?1, ?2, ?3, ?4, ?5)";
    ADD_SAID = "INSERT INTO said (broadcast, body) VALUES (?1, ?2)";
    WRITE_BROADCAST = "UPDATE broadcasts SET rev = ?2, active = ?3, body = ?4 WHERE id = ?1 AND rev = ?2 - 1";
    DROP_BROADCAST = "DELETE FROM broadcasts WHERE id = ?1 AND rev = ?2 RETURNING seq";
    DROP_SAID = "DELETE FROM said WHERE broadcast = ?1";
    BROADCAST = "SELECT body FROM broadcasts WHERE id = ?1 AND owner = ?2";
    SAID_BY = "SELECT s.body FROM broadcasts b JOIN said s ON s.broadcast = b.seq WHERE b.id = ?1 AND b.owner = ?2";
    BROADCASTS = "SELECT body FROM broadcasts WHERE owner = ?1 ORDER BY seq DESC LIMIT 1000";
    ACTIVE_BROADCASTS = "SELECT seq, body FROM broadcasts WHERE active = 1 AND seq > ?1 ORDER BY seq LIMIT ?2";
    PUT_ROWS = "INSERT INTO audience_rows (broadcast, upload, chunk, body) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (broadcast, upload, chunk) DO UPDATE SET body = excluded.body";
    ROWS = "SELECT body FROM audience_rows WHERE broadcast = ?1 AND upload = ?2 AND chunk = ?3";
    CLEAR_ROWS = "DELETE FROM audience_rows WHERE broadcast = ?1 AND upload = ?2 AND chunk >= ?3 AND chunk < ?4";

    // Caps.
    PLACE = "SELECT latest FROM cap_places WHERE ledger = ?1 AND reservation = ?2";
    NTH_PLACE = "SELECT latest FROM cap_places WHERE ledger = ?1 AND latest > ?2 AND latest <= ?3
        ORDER BY latest DESC LIMIT 1 OFFSET ?4";
    FIRST_OPEN = "SELECT latest FROM cap_places WHERE ledger = ?1 AND latest > ?2 ORDER BY latest LIMIT 1";
    PUT_PLACE = "INSERT INTO cap_places (ledger, reservation, latest, gone_at) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (ledger, reservation) DO UPDATE SET latest = excluded.latest, gone_at = excluded.gone_at";
    COUNT_PLACE = "UPDATE cap_places SET gone_at = gone_at - (latest - ?3), latest = ?3
        WHERE ledger = ?1 AND reservation = ?2 AND latest > ?3";
    DROP_PLACE = "DELETE FROM cap_places WHERE ledger = ?1 AND reservation = ?2";
    DROP_GONE_PLACES = "DELETE FROM cap_places WHERE seq IN
        (SELECT seq FROM cap_places WHERE gone_at <= ?1 ORDER BY gone_at LIMIT ?2)";
    OPEN_SLOT = "SELECT until, items FROM gather_slots WHERE grp = ?1 AND open = 1";
    LAST_SLOT = "SELECT max(until) FROM gather_slots WHERE grp = ?1";
    CLOSE_SLOTS = "UPDATE gather_slots SET open = 0 WHERE grp = ?1 AND open = 1";
    PUT_SLOT = "INSERT INTO gather_slots (grp, until, due_at, open, items, tenant, environment)
        VALUES (?1, ?2, ?2, ?3, 0, ?4, ?5) ON CONFLICT (grp, until) DO UPDATE SET due_at = excluded.due_at";
    FILL_SLOT = "UPDATE gather_slots SET items = ?3, open = NOT ?4, due_at = iif(?4, ?5, due_at)
        WHERE grp = ?1 AND until = ?2";
    PUT_ITEM = "INSERT OR IGNORE INTO gathered (grp, until, item) VALUES (?1, ?2, ?3)";
    DROP_ITEM = "DELETE FROM gathered WHERE grp = ?1 AND until = ?2 AND item = ?3";
    DROP_EMPTY_SLOT = "DELETE FROM gather_slots WHERE grp = ?1 AND until = ?2
        AND NOT EXISTS (SELECT 1 FROM gathered WHERE grp = ?1 AND until = ?2)";
    PUT_OFF_SLOT = "UPDATE gather_slots SET due_at = ?3 WHERE grp = ?1 AND until = ?2";
    DUE_SLOTS = "SELECT grp, until, tenant, environment FROM gather_slots WHERE due_at <= ?1 ORDER BY due_at LIMIT ?2";
    NEXT_SLOT = "SELECT due_at FROM gather_slots WHERE due_at > ?1 ORDER BY due_at LIMIT 1";
    SLOT_ITEMS = "SELECT item FROM gathered WHERE grp = ?1 AND until = ?2 LIMIT ?3";
}

/// At opening: claims of the process before are known dead, because its lock is gone.
pub const LAPSE_ALL: &str = "UPDATE claims SET lease_until = min(lease_until, ?1), lease_ms = 0";

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::super::schema;
    use super::ALL;

    /// Small by nature, or asked for whole: keys (at most 1,000 listed in order), configured lanes, pauses (at most 256).
    const SMALL: &[&str] =
        &["SCAN lanes USING INDEX sqlite_autoindex_lanes_1", "SCAN api_keys USING INDEX api_key_ages", "SCAN pauses"];

    /// In the order of an index and cut by a LIMIT: walks no more than it answers.
    const IN_ORDER: &[(&str, &str)] = &[
        ("HELD", "SCAN claims USING INDEX claim_lapses"),
        ("OLDEST_UNKNOWN", "SCAN deliveries USING COVERING INDEX unknown_ages"),
        ("TRIM_OUTBOX", "SCAN outbox"),
    ];

    #[test]
    fn no_statement_walks_a_table() {
        let conn = Connection::open_in_memory().unwrap();
        schema::create(&conn).unwrap();
        schema::steady(&conn, 1).unwrap();
        for (name, sql) in ALL {
            let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let parameters: Vec<i64> = vec![1; statement.parameter_count()];
            let plan: Vec<String> = statement
                .query_map(rusqlite::params_from_iter(parameters), |row| row.get(3))
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
            for line in &plan {
                let allowed = SMALL.contains(&line.as_str())
                    || IN_ORDER.contains(&(*name, line.as_str()))
                    || (line.starts_with("SCAN") && line.contains("CONSTANT ROW"))
                    || line.as_str() == "SCAN (subquery-1)";
                assert!(allowed || !line.contains("SCAN"), "{name}: {plan:?}");
                assert!(!line.contains("TEMP B-TREE"), "{name} sorts: {plan:?}");
            }
        }
    }
}
