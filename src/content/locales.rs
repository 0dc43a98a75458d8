//! Which languages stand in for one that is not there.

use std::collections::{BTreeMap, BTreeSet};

/// What stands in for a language besides what it is a kind of, in the order of trying.
pub type Fallback = BTreeMap<String, Vec<String>>;

/// `wanted` and what stands in for it, the nearest first: itself, what it is said to fall back to,
/// then the same for what it is a kind of (`de-AT`, then `de`). All in lower case.
#[must_use]
pub fn chain(wanted: &str, fallback: &Fallback) -> Vec<String> {
    let mut chain = Vec::new();
    follow(&wanted.replace('_', "-").to_ascii_lowercase(), fallback, &mut chain);
    chain
}

fn follow(tag: &str, fallback: &Fallback, chain: &mut Vec<String>) {
    if tag.is_empty() || chain.iter().any(|known| known == tag) {
        return;
    }
    chain.push(tag.to_owned());
    let said = fallback.iter().filter(|(name, _)| name.eq_ignore_ascii_case(tag)).flat_map(|(_, all)| all);
    said.for_each(|next| follow(&next.to_ascii_lowercase(), fallback, chain));
    follow(tag.rsplit_once('-').map_or("", |(shorter, _)| shorter), fallback, chain);
}

/// A language that is said to fall back to itself, over however many others.
#[must_use]
pub fn circle(fallback: &Fallback) -> Option<&str> {
    fallback.keys().map(String::as_str).find(|start| {
        let mut seen = BTreeSet::new();
        let mut next = vec![start.to_ascii_lowercase()];
        while let Some(tag) = next.pop() {
            let said = fallback.iter().filter(|(name, _)| name.eq_ignore_ascii_case(&tag)).flat_map(|(_, all)| all);
            for one in said.map(|one| one.to_ascii_lowercase()) {
                if one.eq_ignore_ascii_case(start) {
                    return true;
                }
                if seen.insert(one.clone()) {
                    next.push(one);
                }
            }
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fallback(all: &[(&str, &[&str])]) -> Fallback {
        all.iter().map(|(name, all)| ((*name).to_owned(), all.iter().map(|one| (*one).to_owned()).collect())).collect()
    }

    #[test]
    fn the_nearest_comes_first() {
        let said = fallback(&[("gsw", &["de-CH", "fr"]), ("pt-BR", &["pt-PT"]), ("fr", &["en-GB"])]);
        assert_eq!(chain("gsw_CH", &said), ["gsw-ch", "gsw", "de-ch", "de", "fr", "en-gb", "en"]);
        assert_eq!(chain("PT-br", &said), ["pt-br", "pt-pt", "pt"]);
        assert_eq!(chain("sv", &said), ["sv"]);
        assert_eq!(chain("", &said), Vec::<String>::new());
    }

    #[test]
    fn circles_are_seen() {
        assert_eq!(circle(&fallback(&[("a", &["b"]), ("b", &["c"]), ("c", &["d"])])), None);
        assert_eq!(circle(&fallback(&[("x", &["A"]), ("a", &["b"]), ("B", &["c", "a"])])), Some("B"));
        assert_eq!(circle(&fallback(&[("de", &["de"])])), Some("de"));
        // A kind of a language may stand in for it, and it for its kinds.
        let kinds = fallback(&[("de", &["de-AT"])]);
        assert_eq!(circle(&kinds), None);
        assert_eq!(chain("de-CH", &kinds), ["de-ch", "de", "de-at"]);
    }
}
