//! Dates and numbers as the readers of a part write them. The language is that of the file that the
//! part was made from, not the recipient's: an English text has English dates, whoever reads it.
//!
//! There is no clock here: what is written is a time of the data.

mod dates;
mod decimals;
mod moment;

use std::sync::Arc;

use icu_locale_core::Locale;
use minijinja::value::{Kwargs, Object, Value};
use minijinja::{Environment, Error, State};

use super::given::is_given;
use super::language::ours;
use dates::{Clock, Shown, Style};
pub use dates::{NO_STYLE, STYLES, zones};

/// No name in a template or in the data of a caller reaches it: a global is found by its name alone
/// after all of these, and no template can say this one.
const REGION: &str = "belfry region";
/// What is told of any other number of digits.
pub const PLACES: &str = "a number has from 0 to 20 digits after its point";
/// Work for one of them, as the language counts it.
const FUEL: u64 = 50;

/// Who reads a part.
#[derive(Debug)]
pub struct Region {
    /// Of the part's own file.
    pub language: String,
    /// The recipient's zone.
    pub time_zone: Option<String>,
    /// A part in which a character beyond the plain ones costs: SMS.
    pub plain: bool,
}

impl Object for Region {}

/// The same language, for this reader.
#[must_use]
pub fn within(language: &Environment<'static>, region: Region) -> Environment<'static> {
    let mut language = language.clone();
    language.add_global(REGION, Value::from_object(region));
    language
}

/// Adds the filters.
pub fn add(language: &mut Environment<'static>) {
    language.add_filter("date", |state: &State, value: Value, style: Option<&str>, rest: Kwargs| {
        moment(state, &value, (style, rest), |shown| shown.date())
    });
    language.add_filter("time", |state: &State, value: Value, style: Option<&str>, rest: Kwargs| {
        moment(state, &value, (style, rest), |shown| shown.time())
    });
    language.add_filter("datetime", |state: &State, value: Value, style: Option<&str>, rest: Kwargs| {
        moment(state, &value, (style, rest), |shown| shown.date_and_time())
    });
    language.add_filter("decimal", |state: &State, value: Value, places: Option<i64>| {
        number(state, &value, places, decimals::written)
    });
    language.add_filter("percent", |state: &State, value: Value, places: Option<i64>| {
        number(state, &value, places, decimals::percent)
    });
}

fn region(state: &State) -> Result<Arc<Region>, Error> {
    state.consume_fuel(FUEL)?;
    let found = state.env().globals().find(|(name, _)| *name == REGION).and_then(|(_, value)| value.downcast_object());
    found.ok_or_else(|| ours("there is no language here to write it in"))
}

fn moment(
    state: &State,
    value: &Value,
    (style, rest): (Option<&str>, Kwargs),
    said: fn(&Shown<'_>) -> Result<String, &'static str>,
) -> Result<String, Error> {
    let region = region(state)?;
    let zone: Option<&str> = rest.get("zone")?;
    rest.assert_all_used()?;
    let zone = zone.or(region.time_zone.as_deref());
    let clock = Clock::new(zone).map_err(ours)?;
    let language = language(&region.language);
    is_given(state, value)?;
    let moment = moment::read(value).map_err(ours)?;
    let shown = Shown { moment, clock: &clock, language: (&language).into(), style: Style::read(style).map_err(ours)? };
    Ok(region.fit(said(&shown).map_err(ours)?))
}

fn number(
    state: &State,
    value: &Value,
    places: Option<i64>,
    written: fn(fixed_decimal::Decimal, Option<i16>, &str) -> Result<String, &'static str>,
) -> Result<String, Error> {
    let region = region(state)?;
    let places = match places.map(digits) {
        Some(None) => return Err(ours(PLACES)),
        Some(known) => known,
        None => None,
    };
    is_given(state, value)?;
    let number = decimals::read(value).map_err(ours)?;
    Ok(region.fit(written(number, places, &region.language).map_err(ours)?))
}

fn digits(places: i64) -> Option<i16> {
    i16::try_from(places).ok().filter(|places| (0..=decimals::MOST_PLACES).contains(places))
}

/// What a filter of Belfry's own is put to, and takes besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A time; a style and a zone.
    Moment,
    /// A number; how many digits after its point.
    Number,
    /// Anything; nothing.
    Nothing,
}

impl Wanted {
    /// `None` for a filter that is not Belfry's own.
    #[must_use]
    pub fn of(filter: &str) -> Option<Self> {
        match filter {
            "date" | "datetime" | "time" => Some(Self::Moment),
            "decimal" | "percent" => Some(Self::Number),
            "link" | "number" | "tojson" => Some(Self::Nothing),
            _ => None,
        }
    }

    /// Why a value that is written out in a template cannot be meant.
    #[must_use]
    pub fn unfit(self, subject: &Value) -> Option<&'static str> {
        match self {
            Self::Moment => moment::read(subject).err(),
            Self::Number => decimals::read(subject).err(),
            Self::Nothing => None,
        }
    }
}

/// Whether a value that is written out is a number of digits.
#[must_use]
pub fn fits_places(places: &Value) -> bool {
    places.is_none() || i64::try_from(places.clone()).ok().and_then(digits).is_some()
}

/// Whether there is such a time zone.
#[must_use]
pub fn is_zone(name: &str) -> bool {
    Clock::new(Some(name)).is_ok()
}

impl Region {
    /// One narrow space makes three SMS of one.
    fn fit(&self, text: String) -> String {
        if self.plain { text.replace(['\u{a0}', '\u{202f}'], " ").replace('\u{2212}', "-") } else { text }
    }
}

/// A language that is written wrongly was refused when the files were read.
fn language(tag: &str) -> Locale {
    tag.parse().unwrap_or(Locale::UNKNOWN)
}
