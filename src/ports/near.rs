//! What a mistyped name was probably meant to be.

/// The known name that `given` was probably meant to be.
///
/// It differs in at most a third of the longer name's letters, or in one.
#[must_use]
pub fn near_match<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (distance(&given.to_lowercase(), name), name))
        .filter(|(far, name)| *far <= (given.len().max(name.len()) / 3).max(1))
        .min_by_key(|(far, _)| *far)
        .map(|(_, name)| name)
}

/// Letters changed, left out, added, or swapped with their neighbour (optimal string alignment).
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut table = vec![vec![0; right.len() + 1]; left.len() + 1];
    for (at, row) in table.iter_mut().enumerate() {
        row[0] = at;
    }
    table[0] = (0..=right.len()).collect();
    for a in 1..=left.len() {
        for b in 1..=right.len() {
            let replaced = table[a - 1][b - 1] + usize::from(left[a - 1] != right[b - 1]);
            let mut best = replaced.min(table[a - 1][b] + 1).min(table[a][b - 1] + 1);
            if a > 1 && b > 1 && left[a - 1] == right[b - 2] && left[a - 2] == right[b - 1] {
                best = best.min(table[a - 2][b - 2] + 1);
            }
            table[a][b] = best;
        }
    }
    table[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let known = ["listen", "public_url", "allow_remote"];
        for (given, expected) in [
            ("listne", Some("listen")),
            ("Listen", Some("listen")),
            ("publicurl", Some("public_url")),
            ("allow-remote", Some("allow_remote")),
            ("port", None),
            ("", None),
        ] {
            assert_eq!(near_match(given, known), expected, "{given}");
        }
    }
}
