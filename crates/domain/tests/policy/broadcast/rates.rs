//! [`belfry_domain::broadcast::Rate`].

use std::time::Duration;

use belfry_domain::broadcast::{Allowance, NoRate, Rate};
use proptest::prelude::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn numbers_that_make_no_rate_are_named() {
    let key = |rows, per| Rate::new(rows, per).map_err(|NoRate { key, .. }| key);
    for bad in [0, 1_000_001] {
        assert_eq!(key(bad, ms(1_000)), Err("rows"));
    }
    for bad in [ms(999), ms(86_400_001), Duration::from_micros(1_000_001)] {
        assert_eq!(key(1, bad), Err("per"));
    }
    assert!(Rate::new(1, ms(1_000)).is_ok() && Rate::new(1_000_000, ms(86_400_000)).is_ok());
}

#[test]
fn rows_go_evenly_and_a_rest_is_not_made_up_for() {
    let mut allowed = Allowance::new(Rate::new(10, ms(1_000)).unwrap(), ms(5_000));
    assert_eq!(allowed.rows(ms(4_999)), 0);
    assert_eq!(allowed.rows(ms(5_000)), 1, "whoever takes over begins with one");
    allowed.went(1, ms(5_000));
    assert_eq!((allowed.rows(ms(5_099)), allowed.rows(ms(5_100)), allowed.next()), (0, 1, ms(5_100)));
    assert_eq!(allowed.rows(ms(5_350)), 3);
    allowed.went(3, ms(5_350));
    assert_eq!(allowed.next(), ms(5_400));
    // An hour later there is a second's worth.
    assert_eq!(allowed.rows(ms(3_600_000)), 11);
    allowed.went(11, ms(3_600_000));
    assert_eq!(allowed.rows(ms(3_600_000)), 0);
    assert_eq!((allowed.next(), allowed.room_for(3)), (ms(3_600_100), ms(3_600_300)));
}

proptest! {
    /// However it is asked, in no stretch there are more than the rate, a saved second and one row.
    #[test]
    fn never_more_than_the_rate(rows in 1..5_000_u32, per in 1_000..100_000_u64, waits in prop::collection::vec(0..3_000_u64, 1..200)) {
        let rate = Rate::new(rows, ms(per)).unwrap();
        let mut allowed = Allowance::new(rate, ms(0));
        let (mut now, mut went) = (0, Vec::new());
        for wait in waits {
            now += wait;
            let next = allowed.rows(ms(now));
            if next > 0 {
                allowed.went(next, ms(now));
            }
            went.push((now, next));
        }
        for from in 0..went.len() {
            let mut sum = 0;
            for (at, next) in &went[from..] {
                sum += next;
                let most = (u128::from(at - went[from].0) + 1_000) * u128::from(rows) / u128::from(per) + 2;
                prop_assert!(u128::from(sum) <= most, "{sum} of {most} in {} ms", at - went[from].0);
            }
        }
    }
}
