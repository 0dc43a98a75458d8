//! Whose clock is wrong. Two clocks that differ cannot say which of them is; of three and more the most that agree are
//! taken to be right.

/// Clocks further apart than this (milliseconds) do not agree.
pub const APART_MS: i64 = 5_000;

/// How far `own` is ahead of the clocks that agree (milliseconds), where those are more than half of all and it is none of
/// them. All by one measure; `own` is not among the `others`.
#[must_use]
pub fn astray(own: i64, others: &[i64]) -> Option<i64> {
    let mut all: Vec<i64> = others.iter().copied().chain([own]).collect();
    all.sort_unstable();
    let agree = |from: usize| {
        let upto = all.partition_point(|clock| clock.saturating_sub(all[from]) <= APART_MS);
        &all[from..upto]
    };
    let most = (0..all.len()).map(agree).max_by_key(|agreed| agreed.len())?;
    let (first, last) = (*most.first()?, *most.last()?);
    let ahead = own.saturating_sub(own.clamp(first, last));
    (most.len() * 2 > all.len() && ahead.saturating_abs() > APART_MS).then_some(ahead)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: i64 = 3_600_000;

    #[test]
    fn case_70_the_clock_that_is_alone_is_the_wrong_one() {
        for (own, others, expected) in [
            // Alone with the store: nobody can tell.
            (HOUR, &[0][..], None),
            (0, &[], None),
            // Of three, the one that is alone.
            (HOUR, &[0, 0], Some(HOUR)),
            (-HOUR, &[0, 100], Some(-HOUR)),
            (0, &[HOUR, 0], None),
            // The store's own clock is off: the nodes go on.
            (HOUR, &[0, HOUR + 40], None),
            // Each says something else, or two say one thing and two another.
            (HOUR, &[0, -HOUR], None),
            (HOUR, &[HOUR, 0, 0], None),
            (HOUR, &[HOUR, 0, 0, 0], Some(HOUR)),
            (0, &[HOUR, HOUR, 0, 0], None),
            // As far apart as clocks may be.
            (APART_MS, &[0, 0], None),
            (APART_MS + 1, &[0, 0], Some(APART_MS + 1)),
            (APART_MS + 1, &[0, 200, 0], None),
            (i64::MAX, &[i64::MIN, i64::MIN], Some(i64::MAX)),
        ] {
            assert_eq!(astray(own, others), expected, "{own} {others:?}");
        }
    }

    proptest! {
        #[test]
        fn most_clocks_are_never_astray(clocks in prop::collection::vec(-20_000i64..20_000, 1..12)) {
            let without = |at: usize| [&clocks[..at], &clocks[at + 1..]].concat();
            let astray = (0..clocks.len()).filter(|at| astray(clocks[*at], &without(*at)).is_some()).count();
            prop_assert!(astray * 2 < clocks.len(), "{astray} of {clocks:?}");
        }
    }
}
