//! Removes an installation that was only made for a while, key by key; others are not touched.

use super::answers;
use super::codec::Result;
use super::keys::Names;
use super::link::{Call, Link, Need};
use super::script::Script;

/// Everything under keys that begin with `prefix`, in installations of up to `shards` shards.
///
/// # Errors
/// [`crate::ports::StoreError`]: some of it may be left.
pub async fn wipe(link: &Link, prefix: &str, shards: u16) -> Result<()> {
    let script = Script::new("wipe", &[include_str!("lua/wipe.lua")]);
    let names = Names::new(prefix.to_owned(), shards);
    let of_shards = (0..shards).map(|shard| (names.sequence(shard), format!("{{{shard}}}")));
    let others = [(names.installation("nodes"), "{i}".to_owned()), (names.schedules(b"due"), "{s}".to_owned())];
    for (key, tag) in of_shards.chain(others) {
        let pattern = format!("{}*:{tag}:*", literal(prefix));
        let mut cursor = b"0".to_vec();
        loop {
            let args = vec![cursor, pattern.clone().into_bytes()];
            let call = Call { script: &script, keys: vec![key.clone()], args, need: Need::Done, generation: None };
            cursor = answers::bytes(link.run(call).await?)?;
            if cursor == b"0" {
                break;
            }
        }
    }
    Ok(())
}

/// The text with nothing in it that a pattern means something by.
fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '\\' | '^') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}
