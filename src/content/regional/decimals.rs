//! Numbers with the separators of a language, every digit as it was written: no float is between.

use fixed_decimal::{Decimal, Sign, SignedRoundingMode, UnsignedRoundingMode};
use icu_decimal::{DecimalFormatter, DecimalFormatterPreferences};
use minijinja::value::{Value, ValueKind};

use crate::content::value::Kept;

/// Of a number, before and after the point together. `1e30000` is a short word for a long one.
const MOST_DIGITS: i16 = 400;
/// After the point.
pub const MOST_PLACES: i16 = 20;
/// Where a percent sign does not follow its number at once, by language.
const PERCENT: &[(&str, &[&str])] = &[
    ("{}%", &["de-CH", "de-LI", "es-AR", "es-CO", "es-MX", "es-US", "fr-CH"]),
    ("{}\u{200e}%\u{200e}", &["ar"]),
    ("{}\u{66a}\u{61c}", &["ar-EG", "sd"]),
    ("%\u{a0}{}", &["eu"]),
    ("%{}", &["ku", "tr"]),
    ("{}\u{66a}", &["fa", "ks", "ps"]),
    (
        "{}\u{a0}%",
        &[
            "be", "br", "ca", "cs", "da", "de", "dsb", "es", "fi", "fo", "fr", "gl", "hr", "hsb", "kl", "lb", "lt",
            "mk", "nb", "nn", "no", "oc", "qu", "rm", "rn", "ro", "ru", "se", "sk", "sl", "smn", "sv", "tk", "tt",
        ],
    ),
];

const NO_NUMBER: &str = "no number: a number of the data, or a text with one as JSON writes it";
const TOO_LONG: &str = "the number has more digits than anybody reads";

/// # Errors
/// Where it is none, or has too many digits.
pub fn read(value: &Value) -> Result<Decimal, &'static str> {
    let is_number = value.kind() == ValueKind::Number || value.downcast_object_ref::<Kept>().is_some();
    let text = value.to_string();
    if !(is_number || value.kind() == ValueKind::String) || !is_json(&text) {
        return Err(NO_NUMBER);
    }
    let number: Decimal = text.parse().map_err(|_| TOO_LONG)?;
    let range = number.absolute.magnitude_range();
    if range.end() - range.start() >= MOST_DIGITS { Err(TOO_LONG) } else { Ok(number) }
}

/// As JSON writes a number.
fn is_json(text: &str) -> bool {
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (rest, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, "0"));
    all_digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && all_digits(fraction)
        && all_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))
}

/// The number as the language writes it, with so many digits after the point or all that it has.
/// A half is rounded away from zero, as people do.
///
/// # Errors
/// Where the language has no digits.
pub fn written(mut number: Decimal, places: Option<i16>, language: &str) -> Result<String, &'static str> {
    if let Some(places) = places {
        number.round_with_mode(-places, SignedRoundingMode::Unsigned(UnsignedRoundingMode::HalfExpand));
        number.absolute.pad_end(-places);
    }
    if number.absolute.is_zero() {
        number.sign = Sign::None;
    }
    let language = super::language(language);
    let formatter = DecimalFormatter::try_new(DecimalFormatterPreferences::from(&language), Default::default());
    Ok(formatter.map_err(|_| "the number cannot be written in this language")?.format(&number).to_string())
}

/// The same as so many hundredths, with the language's sign for it.
///
/// # Errors
/// As [`written`].
pub fn percent(mut number: Decimal, places: Option<i16>, language: &str) -> Result<String, &'static str> {
    number.multiply_pow10(2);
    number.absolute.trim_start();
    let mut rest = language;
    let pattern = loop {
        let known = PERCENT.iter().find(|(_, all)| all.iter().any(|one| one.eq_ignore_ascii_case(rest)));
        match (known, rest.rsplit_once('-')) {
            (Some((pattern, _)), _) => break *pattern,
            (None, Some((shorter, _))) => rest = shorter,
            (None, None) => break "{}%",
        }
    };
    Ok(pattern.replace("{}", &written(number, places, language)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::content::json::Json;
    use crate::content::value::{Numbers, from_json};

    fn number(json: &str) -> Value {
        from_json(&Json::parse(json).unwrap(), Numbers::Kept).0
    }

    #[test]
    fn case_68_every_digit_is_kept() {
        for (json, places, language, text) in [
            ("19.90", None, "de", "19,90"),
            ("1234567.5", Some(2), "de", "1.234.567,50"),
            ("1234567.5", Some(2), "de-AT", "1\u{a0}234\u{a0}567,50"),
            ("1234567.5", Some(2), "en-IN", "12,34,567.50"),
            (
                "1234567.5",
                None,
                "ar-EG",
                "\u{661}\u{66c}\u{662}\u{663}\u{664}\u{66c}\u{665}\u{666}\u{667}\u{66b}\u{665}",
            ),
            ("9007199254740993.10", None, "en", "9,007,199,254,740,993.10"),
            ("0.1234567890123456789012345678901234567890", None, "en", "0.1234567890123456789012345678901234567890"),
            ("2.675", Some(2), "en", "2.68"),
            ("-2.675", Some(2), "en", "-2.68"),
            ("2.665", Some(2), "en", "2.67"),
            ("-0.004", Some(2), "en", "0.00"),
            ("0.5", Some(0), "en", "1"),
            ("1e3", Some(1), "en", "1,000.0"),
            ("\"19.90\"", None, "sv", "19,90"),
        ] {
            let made = read(&number(json)).and_then(|number| written(number, places, language));
            assert_eq!(made.as_deref(), Ok(text), "{json} {language}");
        }
    }

    #[test]
    fn percents_have_the_languages_sign() {
        for (json, places, language, text) in [
            ("0.125", Some(1), "en", "12.5%"),
            ("0.125", None, "de", "12,5\u{a0}%"),
            ("0.125", None, "de-CH", "12.5%"),
            ("0.125", Some(0), "tr", "%13"),
            ("-0.5", None, "eu", "%\u{a0}\u{2212}50"),
            ("1", Some(0), "es-MX", "100%"),
        ] {
            let made = read(&number(json)).and_then(|number| percent(number, places, language));
            assert_eq!(made.as_deref(), Ok(text), "{json} {language}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for json in
            ["\"\"", "\"1,5\"", "\"+1\"", "\"01\"", "\"1.\"", "\" 1\"", "\"1e\"", "null", "true", "[1]", "\"NaN\""]
        {
            assert_eq!(read(&number(json)).unwrap_err(), NO_NUMBER, "{json}");
        }
        assert_eq!(read(&Value::from(f64::INFINITY)).unwrap_err(), NO_NUMBER);
        for json in ["1e400", "1e-400", "1e99999999", "1e30000"] {
            assert_eq!(read(&number(json)).unwrap_err(), TOO_LONG, "{json}");
        }
    }

    proptest! {
        #[test]
        fn no_digit_changes(text in "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,40})?") {
            let made = written(read(&number(&text)).unwrap(), None, "en").unwrap().replace(',', "");
            let is_zero = text.bytes().all(|byte| !(b'1'..=b'9').contains(&byte));
            prop_assert_eq!(made, if is_zero { text.trim_start_matches('-').to_owned() } else { text.clone() });
        }
    }
}
