//! Against a look at the zone's clock minute by minute.

use std::collections::BTreeSet;

use belfry_domain::UnixMs;
use belfry_domain::schedule::{Missed, Rhythm};
use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan};
use proptest::prelude::*;

use super::text;

/// Zones with changes at midnight, of half an hour, of a day, backwards in winter, and with none.
const ZONES: [&str; 16] = [
    "America/New_York",
    "Europe/London",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "Pacific/Chatham",
    "America/Asuncion",
    "America/Sao_Paulo",
    "America/Santiago",
    "America/Havana",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Asia/Beirut",
    "Asia/Pyongyang",
    "Australia/Lord_Howe",
    "Europe/Dublin",
    "Antarctica/Troll",
];
const MINUTE: i64 = 60_000;

/// One field: as it is written, and the numbers that it stands for.
#[derive(Clone, Debug)]
struct Field {
    text: String,
    numbers: BTreeSet<u32>,
}

fn field((smallest, largest): (u32, u32)) -> impl Strategy<Value = Field> {
    let all = Field { text: "*".into(), numbers: (smallest..=largest).collect() };
    let some = prop::collection::btree_set(smallest..=largest, 1..5).prop_map(|numbers| {
        let text = numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        Field { text, numbers }
    });
    let stepped =
        (smallest..largest).prop_flat_map(move |from| (Just(from), 1..=largest - from)).prop_map(move |(from, by)| {
            let numbers = (from..=largest).step_by(by as usize).collect();
            Field { text: format!("{from}-{largest}/{by}"), numbers }
        });
    prop_oneof![2 => Just(all), 2 => some, 1 => stepped]
}

#[derive(Debug)]
struct World {
    rhythm: Rhythm,
    zone: TimeZone,
    fields: [Field; 5],
    now: UnixMs,
}

impl World {
    /// Whether the expression names the minute.
    fn names(&self, local: DateTime) -> bool {
        let [minute, hour, day, month, weekday] = &self.fields;
        let has = |field: &Field, number: i8| field.numbers.contains(&u32::try_from(number).unwrap());
        let of_day = has(day, local.day());
        let of_weekday = has(weekday, local.date().weekday().to_sunday_zero_offset());
        let star = |field: &Field| field.text == "*";
        let days = if star(day) || star(weekday) { of_day && of_weekday } else { of_day || of_weekday };
        has(minute, local.minute()) && has(hour, local.hour()) && has(month, local.month()) && days
    }

    fn shown(&self, at: UnixMs) -> DateTime {
        self.zone.to_datetime(Timestamp::from_millisecond(at.0).unwrap())
    }

    /// Every moment within `days` after now at which there is a slot.
    fn slots(&self, days: i64) -> Vec<UnixMs> {
        let every_hour = self.fields[1].numbers.len() == 24;
        // What was the latest to be shown: from before any change that may matter.
        let mut at = UnixMs(self.now.0 - 25 * 60 * MINUTE);
        let mut latest = self.shown(at);
        let mut slots = Vec::new();
        while at.0 < self.now.0 + days * 24 * 60 * MINUTE {
            at.0 += MINUTE;
            let shown = self.shown(at);
            let mut is_slot = every_hour && self.names(shown);
            // Times that are shown for the first time, or are jumped over.
            while latest < shown {
                latest = latest.checked_add(1.minute()).unwrap();
                is_slot |= !every_hour && self.names(latest);
            }
            if is_slot && at > self.now {
                slots.push(at);
            }
        }
        slots
    }
}

/// A moment within two days of one of the zone's changes, or any, since 1975.
fn worlds() -> impl Strategy<Value = World> {
    let fields = (field((0, 59)), field((0, 23)), field((1, 31)), field((1, 12)), field((0, 6)));
    let near = (0usize..16, prop::bool::weighted(0.8), -2_880i64..2_880);
    let drawn = (0..ZONES.len(), fields, 157_766_400i64..2_145_916_800, near);
    drawn.prop_filter_map("no month has such a day", |(zone, fields, second, near)| {
        let name = ZONES[zone];
        let zone = TimeZoneDatabase::bundled().get(name).unwrap();
        let start = Timestamp::from_second(second - second % 60).unwrap();
        let (nth, is_near, minutes) = near;
        let change = is_near.then(|| zone.following(start).nth(nth)).flatten();
        let now = UnixMs(change.map_or(start, |change| change.timestamp() + minutes.minutes()).as_millisecond());
        let fields: [Field; 5] = fields.into();
        let cron = fields.each_ref().map(|field| field.text.as_str()).join(" ").parse().ok()?;
        let rhythm = Rhythm { cron, zone: name.parse().unwrap(), until: None };
        Some(World { rhythm, zone, fields, now })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn slots_are_those_that_the_clock_shows_first_or_jumps_over(world in worlds()) {
        let looked = world.slots(3);
        let told: Vec<_> = world.rhythm.runs(world.now, looked.len()).into_iter().map(text).collect();
        prop_assert_eq!(told, looked.iter().copied().map(text).collect::<Vec<_>>());
        // And none that was not looked at lies between.
        let beyond = world.rhythm.after(looked.last().copied().unwrap_or(world.now));
        prop_assert!(beyond.is_none_or(|at| at.0 > world.now.0 + 3 * 24 * 60 * MINUTE));
    }

    #[test]
    fn looks_at_any_moments_send_or_let_go_each_slot_once(
        world in worlds(),
        gaps in prop::collection::vec(0i64..2_000, 1..8),
    ) {
        let Some(first) = world.rhythm.after(world.now) else { return Ok(()) };
        let (mut next, mut now, mut sent, mut missed) = (Some(first), world.now, Vec::new(), 0);
        for minutes in gaps {
            now.0 += minutes * MINUTE + minutes % 7 * 1_000;
            let Some(from) = next else { break };
            let due = world.rhythm.due(from, Missed::CatchUp { most: 3 }, now);
            prop_assert!(due.send.len() <= 3 && due.send.iter().all(|at| *at <= now));
            prop_assert!(due.next.is_none_or(|at| at > now));
            prop_assert!(!due.and_older);
            sent.extend(due.send);
            missed += due.missed;
            next = due.next;
        }
        let all: BTreeSet<_> = sent.iter().collect();
        prop_assert_eq!(all.len(), sent.len(), "one was sent twice");
        let slots = std::iter::successors(Some(first), |at| world.rhythm.after(*at));
        let looked = slots.take_while(|at| *at <= now).count();
        prop_assert_eq!(sent.len() + missed as usize, looked);
    }
}
