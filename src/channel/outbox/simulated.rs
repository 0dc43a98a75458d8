//! Addresses that choose their outcome.

/// What becomes of a message to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Simulated {
    /// Taken, and nothing further is heard: any address that asks for nothing else.
    Accepted,
    /// Taken, then a receipt says delivered.
    Delivered,
    /// Taken, then a receipt says bounced.
    Bounced,
    /// Not taken twice, then taken.
    Temporary,
    /// Refused for good.
    Permanent,
    /// Refused because there is no such recipient.
    Gone,
    /// Taken at once, answered late.
    Slow,
    /// Taken, then the answer is lost; a repeat of the same send is taken and answered, so that
    /// two copies are to be seen.
    Unknown,
    /// `sim-` and a word that is none of these: refused, so that a slip does not pass for a success.
    NoSuchOutcome,
}

/// Numbers that stand for outcomes, from the range that is kept free for stories
/// (+1 202 555 0100 to 0199), for phone numbers cannot carry a word.
pub const MAGIC_PHONES: [(&str, Simulated); 7] = [
    ("+12025550101", Simulated::Delivered),
    ("+12025550102", Simulated::Bounced),
    ("+12025550103", Simulated::Temporary),
    ("+12025550104", Simulated::Permanent),
    ("+12025550105", Simulated::Slow),
    ("+12025550106", Simulated::Unknown),
    ("+12025550107", Simulated::Gone),
];

const MARK: &str = "sim-";

impl Simulated {
    /// The words that may stand after `sim-`.
    pub const NAMED: [(&str, Self); 7] = [
        ("delivered", Self::Delivered),
        ("bounced", Self::Bounced),
        ("temporary", Self::Temporary),
        ("permanent", Self::Permanent),
        ("gone", Self::Gone),
        ("slow", Self::Slow),
        ("unknown", Self::Unknown),
    ];

    /// By `+sim-<outcome>` anywhere in an address (`ann+sim-bounced@example.com`,
    /// `https://example.com/+sim-slow`), by a token or name that begins with `sim-<outcome>`, or by
    /// one of [`MAGIC_PHONES`]. Case does not count.
    #[must_use]
    pub fn of(address: &str) -> Self {
        if let Some((_, simulated)) = MAGIC_PHONES.iter().find(|(phone, _)| *phone == address) {
            return *simulated;
        }
        let lower = address.to_ascii_lowercase();
        let marked = lower.strip_prefix(MARK).or_else(|| lower.split_once("+sim-").map(|(_, rest)| rest));
        let Some(rest) = marked else { return Self::Accepted };
        let end = rest.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(rest.len());
        let named = Self::NAMED.iter().find(|(name, _)| *name == &rest[..end]);
        named.map_or(Self::NoSuchOutcome, |(_, simulated)| *simulated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_choose() {
        for (address, simulated) in [
            ("ann@example.com", Simulated::Accepted),
            ("ann+shop@example.com", Simulated::Accepted),
            ("simone@example.com", Simulated::Accepted),
            ("ann+sim-delivered@example.com", Simulated::Delivered),
            ("Ann+SIM-Bounced@example.com", Simulated::Bounced),
            ("ann+shop+sim-temporary@example.com", Simulated::Temporary),
            ("ann+sim-permanent+2@example.com", Simulated::Permanent),
            ("sim-slow-device-7", Simulated::Slow),
            ("https://hooks.example.com/+sim-unknown", Simulated::Unknown),
            (r#"{"endpoint":"https://push.example.com/+sim-bounced","keys":{}}"#, Simulated::Bounced),
            ("ann+sim-bounce@example.com", Simulated::NoSuchOutcome),
            ("ann+sim-@example.com", Simulated::NoSuchOutcome),
            ("+12025550106", Simulated::Unknown),
            ("ann+sim-gone@example.com", Simulated::Gone),
            ("+12025550107", Simulated::Gone),
            ("+12025550108", Simulated::Accepted),
        ] {
            assert_eq!(Simulated::of(address), simulated, "{address}");
        }
    }
}
