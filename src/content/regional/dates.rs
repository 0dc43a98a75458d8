//! Dates and times in words. The calendar is the Gregorian one for everybody.

use icu_calendar::{Date, Gregorian};
use icu_datetime::fieldsets::{T, YMD, YMDE};
use icu_datetime::input::{DateTime, Time};
use icu_datetime::{DateTimeFormatterPreferences, FixedCalendarDateTimeFormatter, NoCalendarFormatter};
use jiff::civil;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};

use super::moment::Moment;

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Short,
    Medium,
    Long,
    Full,
}

/// By their words.
pub const STYLES: [&str; 4] = ["short", "medium", "long", "full"];
pub const NO_STYLE: &str = "a style is short, medium, long or full";

impl Style {
    /// # Errors
    /// For a word that is none of them.
    pub fn read(word: Option<&str>) -> Result<Self, &'static str> {
        Ok(match word {
            Some("short") => Self::Short,
            None | Some("medium") => Self::Medium,
            Some("long") => Self::Long,
            Some("full") => Self::Full,
            Some(_) => return Err(NO_STYLE),
        })
    }

    const fn names_the_zone(self) -> bool {
        matches!(self, Self::Long | Self::Full)
    }
}

/// The clock and calendar that somebody reads by.
pub struct Clock {
    zone: TimeZone,
    /// Nobody said which it is, so that the reader has to be told.
    is_assumed: bool,
}

impl Clock {
    /// The first zone that is named, else UTC.
    ///
    /// # Errors
    /// For a name that there is not.
    pub fn new(named: Option<&str>) -> Result<Self, &'static str> {
        let Some(name) = named else { return Ok(Self { zone: TimeZone::UTC, is_assumed: true }) };
        // Not the machine's own: every node has to write the same.
        match TimeZoneDatabase::bundled().get(name) {
            Ok(zone) if !zone.is_unknown() => Ok(Self { zone, is_assumed: false }),
            _ => Err("there is no such time zone; a zone is named as Europe/Stockholm is"),
        }
    }
}

/// The names of the zones that there are.
pub fn zones() -> impl Iterator<Item = String> {
    TimeZoneDatabase::bundled().available().map(|name| name.as_str().to_owned()).collect::<Vec<_>>().into_iter()
}

type Words<F> = FixedCalendarDateTimeFormatter<Gregorian, F>;

/// A moment by somebody's clock, in a language.
pub struct Shown<'a> {
    pub moment: Moment,
    pub clock: &'a Clock,
    pub language: DateTimeFormatterPreferences,
    pub style: Style,
}

const NO_TIME: &str = "a day has no time of day";
/// The range of the calendars is wider than what is read, and their words are compiled in.
const NO_WORDS: &str = "the date cannot be put into words";

impl Shown<'_> {
    fn civil(&self) -> (civil::DateTime, Option<Offset>) {
        match self.moment {
            Moment::Day(day) => (day.at(0, 0, 0, 0), None),
            Moment::Instant(at) => {
                let offset = self.clock.zone.to_offset(at);
                (offset.to_datetime(at), Some(offset))
            }
        }
    }

    /// The day. Of an instant whose zone was assumed, with that zone.
    ///
    /// # Errors
    /// Where the calendar has no words.
    pub fn date(&self) -> Result<String, &'static str> {
        let (at, offset) = self.civil();
        let zone = offset.filter(|_| self.clock.is_assumed).map(zone_name);
        Ok(joined(self.day(at)?, zone))
    }

    /// The time of day: hours and minutes; with seconds where the style is medium or full, with the
    /// zone where it is long or full, or was assumed.
    ///
    /// # Errors
    /// For a day.
    pub fn time(&self) -> Result<String, &'static str> {
        let (at, offset) = self.civil();
        let offset = offset.ok_or(NO_TIME)?;
        let time = time_of(at)?;
        let text = match self.style {
            Style::Short | Style::Long => {
                NoCalendarFormatter::try_new(self.language, T::hm()).map_err(|_| NO_WORDS)?.format(&time).to_string()
            }
            Style::Medium | Style::Full => {
                NoCalendarFormatter::try_new(self.language, T::hms()).map_err(|_| NO_WORDS)?.format(&time).to_string()
            }
        };
        Ok(joined(text, self.zone(offset)))
    }

    /// The day, and hours and minutes; with the zone where the style is long or full, or was assumed.
    ///
    /// # Errors
    /// For a day alone.
    pub fn date_and_time(&self) -> Result<String, &'static str> {
        let (at, offset) = self.civil();
        let offset = offset.ok_or(NO_TIME)?;
        let both = DateTime { date: day_of(at)?, time: time_of(at)? };
        let said = |style: Style| {
            Some(match style {
                Style::Short => {
                    Words::try_new(self.language, YMD::short().with_time_hm()).ok()?.format(&both).to_string()
                }
                Style::Medium => {
                    Words::try_new(self.language, YMD::medium().with_time_hm()).ok()?.format(&both).to_string()
                }
                Style::Long => {
                    Words::try_new(self.language, YMD::long().with_time_hm()).ok()?.format(&both).to_string()
                }
                Style::Full => {
                    Words::try_new(self.language, YMDE::long().with_time_hm()).ok()?.format(&both).to_string()
                }
            })
        };
        Ok(joined(worded(said, self.style, at)?, self.zone(offset)))
    }

    fn day(&self, at: civil::DateTime) -> Result<String, &'static str> {
        let day = day_of(at)?;
        let said = |style: Style| {
            Some(match style {
                Style::Short => Words::try_new(self.language, YMD::short()).ok()?.format(&day).to_string(),
                Style::Medium => Words::try_new(self.language, YMD::medium()).ok()?.format(&day).to_string(),
                Style::Long => Words::try_new(self.language, YMD::long()).ok()?.format(&day).to_string(),
                Style::Full => Words::try_new(self.language, YMDE::long()).ok()?.format(&day).to_string(),
            })
        };
        worded(said, self.style, at)
    }

    fn zone(&self, offset: Offset) -> Option<String> {
        (self.style.names_the_zone() || self.clock.is_assumed).then(|| zone_name(offset))
    }
}

/// A language without words for months says "M12": it gets the short form, which is numbers alone.
fn worded(said: impl Fn(Style) -> Option<String>, style: Style, at: civil::DateTime) -> Result<String, &'static str> {
    let text = said(style).ok_or(NO_WORDS)?;
    if text.contains(&format!("M{:02}", at.month())) { said(Style::Short).ok_or(NO_WORDS) } else { Ok(text) }
}

fn day_of(at: civil::DateTime) -> Result<Date<Gregorian>, &'static str> {
    let unsigned = |part: i8| u8::try_from(part).map_err(|_| NO_WORDS);
    Date::try_new_gregorian(i32::from(at.year()), unsigned(at.month())?, unsigned(at.day())?).map_err(|_| NO_WORDS)
}

fn time_of(at: civil::DateTime) -> Result<Time, &'static str> {
    let unsigned = |part: i8| u8::try_from(part).map_err(|_| NO_WORDS);
    Time::try_new(unsigned(at.hour())?, unsigned(at.minute())?, unsigned(at.second())?, 0).map_err(|_| NO_WORDS)
}

fn joined(text: String, zone: Option<String>) -> String {
    zone.map_or(text.clone(), |zone| format!("{text} {zone}"))
}

/// `UTC`, `UTC+1`, `UTC-3:30`: read the same in every language.
fn zone_name(offset: Offset) -> String {
    let minutes = offset.seconds() / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    match (minutes.abs() / 60, minutes.abs() % 60) {
        (0, 0) => "UTC".to_owned(),
        (hours, 0) => format!("UTC{sign}{hours}"),
        (hours, minutes) => format!("UTC{sign}{hours}:{minutes:02}"),
    }
}

#[cfg(test)]
mod tests {
    use icu_locale_core::Locale;
    use minijinja::Value;

    use super::super::moment::read;
    use super::*;

    fn shown(value: &str, zone: Option<&str>, language: &str) -> Vec<String> {
        let language: Locale = language.parse().unwrap();
        let clock = Clock::new(zone).unwrap();
        let moment = read(&Value::from(value)).unwrap();
        let mut all = Vec::new();
        for style in [Style::Short, Style::Medium, Style::Long, Style::Full] {
            let shown = Shown { moment, clock: &clock, language: (&language).into(), style };
            all.extend(
                [shown.date(), shown.time(), shown.date_and_time()].map(|made| made.unwrap_or_else(str::to_owned)),
            );
        }
        all
    }

    #[test]
    fn every_style_in_words_of_the_language() {
        assert_eq!(
            shown("2026-12-01T13:05:09Z", Some("Europe/Berlin"), "de"),
            [
                "01.12.26",
                "14:05",
                "01.12.26, 14:05",
                "01.12.2026",
                "14:05:09",
                "01.12.2026, 14:05",
                "1. Dezember 2026",
                "14:05 UTC+1",
                "1. Dezember 2026 um 14:05 UTC+1",
                "Dienstag, 1. Dezember 2026",
                "14:05:09 UTC+1",
                "Dienstag, 1. Dezember 2026 um 14:05 UTC+1",
            ]
        );
        assert_eq!(
            shown("2026-12-01T13:05:09Z", Some("Asia/Kolkata"), "sv")[11],
            "tisdag 1 december 2026 kl. 18:35 UTC+5:30"
        );
        assert_eq!(shown("2026-12-01T13:05:09Z", Some("America/New_York"), "en")[5], "Dec 1, 2026, 8:05\u{202f}AM");
    }

    #[test]
    fn summer_time_is_the_zones_own() {
        for (at, time, date) in [
            ("2026-03-29T00:59:59Z", "01:59:59 UTC+1", "29. März 2026"),
            ("2026-03-29T01:00:00Z", "03:00:00 UTC+2", "29. März 2026"),
            ("2026-10-25T00:59:59Z", "02:59:59 UTC+2", "25. Oktober 2026"),
            ("2026-10-25T01:00:00Z", "02:00:00 UTC+1", "25. Oktober 2026"),
            ("2026-12-31T23:00:00Z", "00:00:00 UTC+1", "1. Januar 2027"),
        ] {
            let all = shown(at, Some("Europe/Berlin"), "de");
            assert_eq!((all[10].as_str(), all[6].as_str()), (time, date));
        }
    }

    #[test]
    fn a_zone_that_nobody_named_is_said_to_be_utc() {
        let all = shown("2026-12-01T23:30:00+01:00", None, "en-GB");
        assert_eq!((all[3].as_str(), all[1].as_str()), ("1 Dec 2026 UTC", "22:30 UTC"));
        assert_eq!(shown("2026-12-01", None, "en-GB")[3], "1 Dec 2026");
        assert_eq!(shown("2026-12-01", Some("Asia/Tokyo"), "en-GB")[1], NO_TIME);
        for none in ["Europe/Nowhere", "Etc/Unknown", "", "CEST"] {
            assert!(Clock::new(Some(none)).is_err(), "{none}");
        }
    }

    #[test]
    fn a_language_without_words_gets_numbers() {
        assert_eq!(shown("2026-12-01", None, "gsw")[9], "2026-12-01");
    }
}
