//! How often a key may call. The limit is each node's own: what one node counts, no other knows of. A key is
//! counted once it is known to be valid, so that tokens which somebody makes up take no room here.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use belfry_domain::Pace;
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::ports::clock::{Boot, Clock};

/// Reads the limit that counts at this moment; `None`: there is none.
pub type LimitNow = Arc<dyn Fn() -> Option<Pace> + Send + Sync>;

/// After so many calls, the keys whose burst is whole again are forgotten: they are as good as new.
const FORGET_AFTER: u32 = 1024;

/// draft-ietf-httpapi-ratelimit-headers-12.
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STANDING: HeaderName = HeaderName::from_static("ratelimit");

struct Ticks(Arc<dyn Clock>);

impl governor::clock::Clock for Ticks {
    type Instant = Boot;

    fn now(&self) -> Boot {
        self.0.boot()
    }
}

type Buckets = RateLimiter<String, HashMapStateStore<String>, Ticks, StateInformationMiddleware>;

/// Counts by whatever the limit is now.
pub struct Limiter {
    limit: LimitNow,
    clock: Arc<dyn Clock>,
    counted: Mutex<Option<Arc<Counted>>>,
}

/// What each key has spent of one limit.
struct Counted {
    limit: Pace,
    buckets: Buckets,
    calls: AtomicU32,
}

/// What a key has left, for the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    burst: u32,
    /// In which the whole burst is saved up; seconds.
    window: u64,
    left: u32,
    /// Until there is one more, at the most; seconds.
    more_in: u64,
}

/// Why a call is not taken. It has cost nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMuch {
    /// It fits after so many seconds.
    Now { standing: Standing, retry_after: u64 },
    /// It costs more than can ever be saved up.
    Ever { most: u32 },
}

impl Limiter {
    #[must_use]
    pub fn new(limit: LimitNow, clock: Arc<dyn Clock>) -> Self {
        Self { limit, clock, counted: Mutex::default() }
    }

    /// Spends `cost` of what the key has; all of it or nothing. `None` where there is no limit.
    ///
    /// # Errors
    /// [`TooMuch`].
    pub fn spend(&self, key: &str, cost: u32) -> Result<Option<Standing>, TooMuch> {
        let (Some(counted), Some(cost)) = (self.counted(), NonZeroU32::new(cost)) else { return Ok(None) };
        counted.forget_rested();
        let spent = counted.buckets.check_key_n(&key.to_owned(), cost);
        match spent {
            Ok(Ok(state)) => Ok(Some(counted.standing(state.remaining_burst_capacity(), counted.period()))),
            Ok(Err(not_until)) => Err(counted.later(cost.get(), not_until.wait_time_from(self.clock.boot()))),
            Err(_) => Err(TooMuch::Ever { most: counted.limit.burst() }),
        }
    }

    /// Another limit begins with every key's burst whole.
    fn counted(&self) -> Option<Arc<Counted>> {
        let limit = (self.limit)();
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.as_ref().map(|counted| counted.limit) != limit {
            *counted = limit.map(|limit| Arc::new(Counted::new(limit, self.clock.clone())));
        }
        counted.clone()
    }
}

impl Counted {
    fn new(limit: Pace, clock: Arc<dyn Clock>) -> Self {
        // Neither a burst of 0 nor a period below a microsecond makes a pace.
        let burst = NonZeroU32::new(limit.burst()).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::with_period(period(&limit)).unwrap_or(Quota::per_second(burst)).allow_burst(burst);
        let buckets = RateLimiter::hashmap_with_clock(quota, Ticks(clock));
        Self { limit, buckets: buckets.with_middleware(), calls: AtomicU32::new(0) }
    }

    fn period(&self) -> Duration {
        period(&self.limit)
    }

    fn forget_rested(&self) {
        if self.calls.fetch_add(1, Ordering::Relaxed) % FORGET_AFTER == FORGET_AFTER - 1 {
            self.buckets.retain_recent();
        }
    }

    fn standing(&self, left: u32, more_in: Duration) -> Standing {
        let burst = self.limit.burst();
        Standing { burst, window: seconds(self.period() * burst), left, more_in: seconds(more_in) }
    }

    /// `wait`: until `cost` fits.
    fn later(&self, cost: u32, wait: Duration) -> TooMuch {
        let period = self.period();
        let missing = wait.as_nanos().div_ceil(period.as_nanos()).max(1);
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        let more_in = wait.saturating_sub(period * (missing - 1));
        TooMuch::Now { standing: self.standing(cost.saturating_sub(missing), more_in), retry_after: seconds(wait) }
    }
}

/// Between two calls that are made steadily.
fn period(limit: &Pace) -> Duration {
    limit.per() / limit.rate()
}

/// Rounded up: whoever waits so long has waited enough.
fn seconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000_000)).unwrap_or(u64::MAX).max(1)
}

impl Standing {
    pub fn write(&self, headers: &mut HeaderMap) {
        let Self { burst, window, left, more_in } = self;
        let fields = [
            (POLICY, format!("\"default\";q={burst};w={window}")),
            (STANDING, format!("\"default\";r={left};t={more_in}")),
        ];
        headers.extend(fields.into_iter().filter_map(|(name, text)| Some((name, HeaderValue::try_from(text).ok()?))));
    }
}

/// Where a request's standing is left for the layer that writes the headers.
#[derive(Clone, Debug, Default)]
pub struct Slip(Arc<Mutex<Option<Standing>>>);

impl Slip {
    pub fn note(&self, standing: Option<Standing>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = standing;
    }

    #[must_use]
    pub fn noted(&self) -> Option<Standing> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use belfry_domain::UnixMs;

    use super::*;

    /// Stands still until it is set.
    #[derive(Default)]
    struct Set(Mutex<Duration>);

    #[async_trait]
    impl Clock for Set {
        fn now(&self) -> UnixMs {
            UnixMs(0)
        }

        fn boot(&self) -> Boot {
            *self.0.lock().unwrap()
        }

        async fn sleep_until(&self, _: Boot) {}
    }

    struct Bench {
        clock: Arc<Set>,
        limit: Arc<Mutex<Option<Pace>>>,
        limiter: Limiter,
    }

    fn bench(rate: u32, per: u64, burst: u32) -> Bench {
        let clock = Arc::new(Set::default());
        let pace = Pace::new(rate, Duration::from_secs(per), Some(burst)).unwrap();
        let limit = Arc::new(Mutex::new(Some(pace)));
        let now = limit.clone();
        let limiter = Limiter::new(Arc::new(move || *now.lock().unwrap()), clock.clone());
        Bench { clock, limit, limiter }
    }

    impl Bench {
        fn at(&self, ms: u64) -> &Self {
            *self.clock.0.lock().unwrap() = Duration::from_millis(ms);
            self
        }

        /// What is left and when there is more; where it is refused, after how long it fits too.
        fn spend(&self, key: &str, cost: u32) -> (u32, u64, Option<u64>) {
            match self.limiter.spend(key, cost) {
                Ok(standing) => standing.map(|one| (one.left, one.more_in, None)).expect("there is a limit"),
                Err(TooMuch::Now { standing, retry_after }) => (standing.left, standing.more_in, Some(retry_after)),
                Err(TooMuch::Ever { most }) => panic!("{most}"),
            }
        }
    }

    #[test]
    fn what_is_spent_comes_back_at_the_rate_and_a_refusal_costs_nothing() {
        let bench = bench(1, 10, 3);
        let expected = [
            (0, 1, (2, 10, None)),
            (0, 2, (0, 10, None)),
            (0, 1, (0, 10, Some(10))),
            (9_999, 1, (0, 1, Some(1))),
            (10_000, 1, (0, 10, None)),
            (25_000, 3, (1, 5, Some(15))),
            (25_000, 3, (1, 5, Some(15))),
            (40_000, 3, (0, 10, None)),
            (999_000, 1, (2, 10, None)),
        ];
        for (at, cost, told) in expected {
            assert_eq!(bench.at(at).spend("a", cost), told, "{cost} at {at}");
        }
    }

    #[test]
    fn keys_do_not_spend_each_others_and_what_never_fits_is_told_apart() {
        let bench = bench(1, 60, 2);
        assert_eq!((bench.spend("a", 2), bench.spend("b", 1)), ((0, 60, None), (1, 60, None)));
        assert_eq!(bench.limiter.spend("b", 3), Err(TooMuch::Ever { most: 2 }));
        assert_eq!(bench.spend("b", 1), (0, 60, None));
    }

    #[test]
    fn another_limit_begins_anew_and_none_counts_nothing() {
        let bench = bench(1, 60, 1);
        bench.spend("a", 1);
        assert_eq!(bench.spend("a", 1), (0, 60, Some(60)));
        *bench.limit.lock().unwrap() = Some(Pace::new(1, Duration::from_secs(60), Some(5)).unwrap());
        assert_eq!(bench.spend("a", 1), (4, 60, None));
        *bench.limit.lock().unwrap() = None;
        assert_eq!(bench.limiter.spend("a", 1_000), Ok(None));
    }

    #[test]
    fn keys_that_have_rested_are_forgotten() {
        let bench = bench(1, 1, 1);
        for key in 0..FORGET_AFTER - 1 {
            bench.spend(&key.to_string(), 1);
        }
        let kept = bench.limiter.counted().unwrap();
        assert_eq!(kept.buckets.len(), 1023);
        bench.at(5_000).spend("last", 1);
        assert_eq!(kept.buckets.len(), 1, "only the one that has just called");
    }

    #[test]
    fn the_fields_are_structured_and_in_whole_seconds() {
        let mut headers = HeaderMap::new();
        bench(100, 1, 250).limiter.spend("a", 1).unwrap().unwrap().write(&mut headers);
        assert_eq!(headers["ratelimit-policy"], "\"default\";q=250;w=3");
        assert_eq!(headers["ratelimit"], "\"default\";r=249;t=1");
    }
}
