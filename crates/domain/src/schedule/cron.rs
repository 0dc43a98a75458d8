//! Cron expressions: five fields, as in the crontab of cronie and Vixie.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, DateTime};

/// Longest expression, in characters.
pub const MOST_CRON: usize = 200;
/// The rarest day that can be written, a 29 February that has to be one weekday, comes every 40 years at worst.
const MOST_YEARS: i16 = 41;
const ALL_HOURS: u64 = (1 << 24) - 1;

/// When something repeats, in local time to the minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    text: String,
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// One of day and weekday is enough: neither begins with `*`.
    either_day: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CronField {
    Minute,
    Hour,
    Day,
    Month,
    Weekday,
}

impl CronField {
    const ALL: [Self; 5] = [Self::Minute, Self::Hour, Self::Day, Self::Month, Self::Weekday];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day of the month",
            Self::Month => "month",
            Self::Weekday => "day of the week",
        }
    }

    /// Smallest and largest number.
    const fn span(self) -> (u32, u32) {
        match self {
            Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::Day => (1, 31),
            Self::Month => (1, 12),
            Self::Weekday => (0, 7),
        }
    }

    /// What stands for numbers, from [`Self::span`]'s smallest on.
    const fn words(self) -> &'static [&'static str] {
        match self {
            Self::Minute | Self::Hour | Self::Day => &[],
            Self::Month => &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
            Self::Weekday => &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
        }
    }
}

/// Why a text is no cron expression, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoCron {
    /// Absent: it is the whole that is wrong.
    pub field: Option<CronField>,
    pub problem: String,
}

impl fmt::Display for NoCron {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            Some(field) => write!(out, "{} (field {}): {}", field.name(), field as u8 + 1, self.problem),
            None => out.write_str(&self.problem),
        }
    }
}

impl std::error::Error for NoCron {}

fn whole(problem: impl Into<String>) -> NoCron {
    NoCron { field: None, problem: problem.into() }
}

/// What stands for an expression.
const SHORT: &[(&str, &str)] = &[
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

impl FromStr for Cron {
    type Err = NoCron;

    fn from_str(text: &str) -> Result<Self, NoCron> {
        if text.chars().count() > MOST_CRON {
            return Err(whole(format!("must have at most {MOST_CRON} characters")));
        }
        let written: Vec<&str> = text.split_ascii_whitespace().collect();
        let fields = match written[..] {
            [short] if short.starts_with('@') => {
                let found = SHORT.iter().find(|(name, _)| name.eq_ignore_ascii_case(short));
                let known = || SHORT.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
                let (_, stands_for) = found.ok_or_else(|| whole(format!("of those with @ there are {}", known())))?;
                stands_for.split_ascii_whitespace().collect()
            }
            _ => written.clone(),
        };
        let [minute, hour, day, month, weekday] = fields[..] else {
            let names = CronField::ALL.map(CronField::name).join(", ");
            let seconds =
                if fields.len() == 6 || fields.len() == 7 { "; there are no seconds and no years" } else { "" };
            return Err(whole(format!("must have 5 fields ({names}), has {}{seconds}", fields.len())));
        };
        let texts = [minute, hour, day, month, weekday];
        let mut bits = [0; 5];
        for ((bits, field), text) in bits.iter_mut().zip(CronField::ALL).zip(texts) {
            *bits = read(field, text).map_err(|problem| NoCron { field: Some(field), problem })?;
        }
        let [minutes, hours, days, months, weekdays] = bits;
        let either_day = !day.starts_with('*') && !weekday.starts_with('*');
        let cron = Self { text: written.join(" "), minutes, hours, days, months, weekdays, either_day };
        if cron.has_a_day() { Ok(cron) } else { Err(NoCron { field: Some(CronField::Day), problem: NO_DAY.into() }) }
    }
}

const NO_DAY: &str = "none of the months that are named has such a day";

/// The numbers that a field names, as bits.
fn read(field: CronField, text: &str) -> Result<u64, String> {
    text.split(',').try_fold(0, |bits, item| Ok(bits | numbers(field, item)?))
}

fn numbers(field: CronField, item: &str) -> Result<u64, String> {
    let (smallest, largest) = field.span();
    let (range, step) = match item.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (item, None),
    };
    let (from, to) = match range.split_once('-') {
        _ if range == "*" => (smallest, if field == CronField::Weekday { 6 } else { largest }),
        Some((from, to)) => span(field, from, to)?,
        None if step.is_some() => {
            return Err(format!("a step stands after `*` or a range, as in `*/5` or `{smallest}-{largest}/5`"));
        }
        None => {
            let one = number(field, range)?;
            (one, one)
        }
    };
    let step = step.map_or(Ok(1), |step| steps(step, to - from))?;
    let bits = (from..=to).step_by(step as usize).fold(0, |bits, number| bits | 1 << number);
    // Sunday is 0 and 7.
    Ok(if field == CronField::Weekday { (bits | bits >> 7) & 0x7f } else { bits })
}

fn span(field: CronField, from: &str, to: &str) -> Result<(u32, u32), String> {
    let (first, mut last) = (number(field, from)?, number(field, to)?);
    if field == CronField::Weekday && last == 0 && first > 0 {
        last = 7;
    }
    if last < first {
        let (smallest, largest) = field.span();
        let both = format!("`{first}-{largest},{smallest}-{last}`");
        return Err(format!("a range must not run backwards; across the end write {both}"));
    }
    Ok((first, last))
}

/// `longest`: from the first to the last of what it steps through.
fn steps(text: &str, longest: u32) -> Result<u32, String> {
    let step = digits(text).ok_or("a step must be a number, as in `*/5`")?;
    if step == 0 {
        return Err("a step must not be 0".into());
    }
    if step > longest {
        return Err(format!("a step of {step} reaches nothing but the first: at most {longest} here"));
    }
    Ok(step)
}

fn number(field: CronField, text: &str) -> Result<u32, String> {
    let (smallest, largest) = field.span();
    let word = field.words().iter().position(|word| word.eq_ignore_ascii_case(text));
    let number = word.and_then(|at| u32::try_from(at).ok()).map(|at| at + smallest).or_else(|| digits(text));
    if let Some(number) = number.filter(|number| (smallest..=largest).contains(number)) {
        return Ok(number);
    }
    if number.is_some() {
        return Err(format!("must be from {smallest} to {largest}"));
    }
    let words = match field.words() {
        [first, .., last] => format!(" or a name from {first} to {last}"),
        _ => String::new(),
    };
    Err(format!(
        "must be `*`, or numbers from {smallest} to {largest}{words}, with `,` between them, `-` for ranges and `/` for \
         steps"
    ))
}

/// Three of them at most.
fn digits(text: &str) -> Option<u32> {
    let fits = (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| text.parse().ok())?
}

impl fmt::Display for Cron {
    /// As it was given, with single spaces.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl Cron {
    /// It names no hour: it repeats within hours, whichever they are.
    pub(super) const fn is_of_every_hour(&self) -> bool {
        self.hours == ALL_HOURS
    }

    /// The first after `local`.
    pub(super) fn next(&self, local: DateTime) -> Option<DateTime> {
        let mut date = local.date();
        let last_year = date.year().saturating_add(MOST_YEARS);
        let mut past = Some((bit(local.hour()), bit(local.minute())));
        while date.year() <= last_year {
            if !has(self.months, bit(date.month())) {
                date = date.last_of_month().tomorrow().ok()?;
                past = None;
                continue;
            }
            if self.is_day(date)
                && let Some((hour, minute)) = self.time_after(past)
            {
                return Some(date.at(hour, minute, 0, 0));
            }
            date = date.tomorrow().ok()?;
            past = None;
        }
        None
    }

    fn is_day(&self, date: Date) -> bool {
        let day = has(self.days, bit(date.day()));
        let weekday = has(self.weekdays, bit(date.weekday().to_sunday_zero_offset()));
        if self.either_day { day || weekday } else { day && weekday }
    }

    /// The first time of day, or the first after `past`: hour and minute.
    fn time_after(&self, past: Option<(u32, u32)>) -> Option<(i8, i8)> {
        let Some((hour, minute)) = past else { return self.first_from(0) };
        match next_bit(self.minutes, minute + 1) {
            Some(minute) if has(self.hours, hour) => Some((small(hour)?, small(minute)?)),
            _ => self.first_from(hour + 1),
        }
    }

    fn first_from(&self, hour: u32) -> Option<(i8, i8)> {
        Some((small(next_bit(self.hours, hour)?)?, small(next_bit(self.minutes, 0)?)?))
    }

    fn has_a_day(&self) -> bool {
        let longest = |month: u32| match month {
            2 => 29,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let of_month =
            |month: u32| has(self.months, month) && next_bit(self.days, 1).is_some_and(|day| day <= longest(month));
        self.either_day || (1..=12).any(of_month)
    }
}

const fn has(bits: u64, number: u32) -> bool {
    bits >> number & 1 == 1
}

/// The first number from `from` on, which is below 64.
const fn next_bit(bits: u64, from: u32) -> Option<u32> {
    let rest = bits >> from << from;
    if rest == 0 { None } else { Some(rest.trailing_zeros()) }
}

/// Of a date or a time: never negative.
fn bit(number: i8) -> u32 {
    u32::try_from(number).unwrap_or_default()
}

fn small(number: u32) -> Option<i8> {
    i8::try_from(number).ok()
}
