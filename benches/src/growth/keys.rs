//! What a Redis server holds, key by key.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::redis_server::RedisServer;
use crate::stores::is_search_index;

const PER_TRIP: usize = 5_000;
/// Fifteen days, in milliseconds.
const EXPIRY: usize = 15 * 86_400_000;

/// Bytes by what keys are for.
pub(super) struct Kinds {
    /// By their names without whatever numbers them.
    pub by_name: BTreeMap<String, f64>,
    /// In keys that only search needs.
    pub search: f64,
}

/// One plain key with an expiry for each: what one would remember keys with otherwise.
pub(super) async fn plain(server: &RedisServer, count: usize) -> Result<()> {
    let mut connection = server.connect().await?;
    for from in (0..count).step_by(PER_TRIP) {
        let mut trip = redis::pipe();
        for number in from..count.min(from + PER_TRIP) {
            trip.cmd("SET").arg(format!("seen:{number:024x}")).arg(1).arg("PX").arg(EXPIRY).ignore();
        }
        trip.query_async::<()>(&mut connection).await?;
    }
    Ok(())
}

pub(super) async fn kinds(server: &RedisServer) -> Result<Kinds> {
    let mut connection = server.connect().await?;
    let mut kinds = Kinds { by_name: BTreeMap::new(), search: 0.0 };
    let mut cursor = 0_u64;
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("COUNT").arg(PER_TRIP);
        let (next, keys): (u64, Vec<Vec<u8>>) = scan.query_async(&mut connection).await?;
        let mut trip = redis::pipe();
        for key in &keys {
            trip.cmd("MEMORY").arg("USAGE").arg(key).arg("SAMPLES").arg(0);
        }
        // A key that expired meanwhile has no size.
        let sizes: Vec<Option<f64>> =
            if keys.is_empty() { Vec::new() } else { trip.query_async(&mut connection).await? };
        for (key, bytes) in keys.iter().zip(sizes) {
            let bytes = bytes.unwrap_or_default();
            *kinds.by_name.entry(nameless(key)).or_default() += bytes;
            if is_search_index(key) {
                kinds.search += bytes;
            }
        }
        cursor = next;
        if cursor == 0 {
            return Ok(kinds);
        }
    }
}

/// A key's name with `#` for every word that has a digit in it; of one that is no text, the first
/// letter after its shard.
fn nameless(key: &[u8]) -> String {
    let after_tag = key.windows(2).position(|two| two == b"}:").map_or(0, |at| at + 2);
    let (shard, name) = key.split_at(after_tag);
    if !name.iter().all(u8::is_ascii_graphic) {
        let first = name.first().filter(|letter| letter.is_ascii_alphabetic()).copied().map_or('#', char::from);
        return format!("{}{first}#", without_numbers(shard));
    }
    without_numbers(key)
}

fn without_numbers(key: &[u8]) -> String {
    let text = String::from_utf8_lossy(key);
    let mut name = String::new();
    for word in text.split_inclusive(|letter: char| !letter.is_alphanumeric()) {
        let stem = word.trim_end_matches(|letter: char| !letter.is_alphanumeric());
        let named = stem.chars().all(|letter| letter.is_ascii_alphabetic());
        name.push_str(if named { stem } else { "#" });
        name.push_str(&word[stem.len()..]);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis_server::{Persistence, RedisServer};

    #[tokio::test(flavor = "multi_thread")]
    async fn a_server_of_ours_tells_what_plain_keys_cost_and_reads_them_back() {
        let mut server = RedisServer::start(Persistence::Nothing).await.unwrap();
        let empty = server.told().await.unwrap();
        plain(&server, 100_000).await.unwrap();
        let full = server.told().await.unwrap();
        let each = (full.kept - empty.kept) / 100_000.0;
        assert!((80.0..200.0).contains(&each), "{each} bytes for a key");
        assert!(full.busy > empty.busy);
        let kinds = kinds(&server).await.unwrap();
        assert_eq!(kinds.by_name.keys().collect::<Vec<_>>(), ["seen:#"]);
        assert!(kinds.by_name["seen:#"] > 50.0 * 100_000.0);
        assert!(server.reload().await.unwrap().as_secs_f64() > 0.0);
        let again = server.told().await.unwrap();
        assert!(again.kept > 80.0 * 100_000.0, "{again:?}");
        server.empty().await.unwrap();
        assert!(server.told().await.unwrap().kept < again.kept / 2.0);
        server.stop().await.unwrap();
    }

    #[test]
    fn names_lose_their_numbers() {
        for (key, name) in [
            (&b"blf:{3}:rec:5f0c1a"[..], "blf:{#}:rec:#"),
            (b"seen:000000000000000000000001", "seen:#"),
            (b"blf:due:main/high", "blf:due:main/high"),
            (b"blf:{12}:d\xff\x01-\x02", "blf:{#}:d#"),
            (b"blf:{2}:x17:40", "blf:{#}:#:#"),
        ] {
            assert_eq!(nameless(key), name);
        }
    }
}
