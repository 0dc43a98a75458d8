//! Environment variables that begin like ours. One that was meant to be read and is not would leave a
//! server running on other settings than its operator believes.

use super::{BOOTSTRAP_KEY, ENV_PREFIX, SECTIONS};
use crate::ports::near::near_match;

const OURS: &str = "BELFRY_";
/// Those that are read besides [`ENV_PREFIX`].
const KNOWN: [&str; 5] = ["BELFRY_API_KEY", BOOTSTRAP_KEY, "BELFRY_CONFIG", "BELFRY_ROLES", "BELFRY_SERVER"];
/// Kubernetes sets these in every pod beside a service that is called "belfry".
const SERVICE_LINKS: [&str; 3] = ["SERVICE_HOST", "SERVICE_PORT", "PORT"];

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stray {
    /// Somebody else's, or read elsewhere.
    NotOurs,
    /// Nothing reads it; perhaps nothing is meant to.
    Unread,
    /// Surely meant for Belfry, which does not read it: what would be right.
    Meant(String),
}

/// About a variable that does not begin with [`ENV_PREFIX`].
pub(super) fn stray(name: &str) -> Stray {
    let Some(rest) = name.strip_prefix(OURS).filter(|rest| !rest.is_empty()) else { return Stray::NotOurs };
    let link = |start: &str| rest.strip_prefix(start).is_some_and(|more| more.is_empty() || more.starts_with('_'));
    if KNOWN.contains(&name) || SERVICE_LINKS.into_iter().any(link) {
        return Stray::NotOurs;
    }
    let meant = |name: String| Stray::Meant(format!("is not read; did you mean {name}?"));
    if rest.contains("__") {
        return meant(format!("{ENV_PREFIX}{rest}"));
    }
    let section = rest.split_once('_').filter(|(first, _)| SECTIONS.contains(&first.to_lowercase().as_str()));
    if let Some((first, key)) = section {
        return meant(format!("{ENV_PREFIX}{first}__{key}"));
    }
    let known = KNOWN.map(|one| one[OURS.len()..].to_lowercase());
    match near_match(rest, known.iter().map(String::as_str)) {
        Some(near) => meant(format!("{OURS}{}", near.to_uppercase())),
        None => Stray::Unread,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_variable_is_told_from_somebody_else_s() {
        for (name, meant) in [
            ("BELFRY_HTTP__LISTEN", "BELFRY__HTTP__LISTEN"),
            ("BELFRY_HTTP_LISTEN", "BELFRY__HTTP__LISTEN"),
            ("BELFRY_LOG_FORMAT", "BELFRY__LOG__FORMAT"),
            ("BELFRY_APIKEY", "BELFRY_API_KEY"),
            ("BELFRY_SERVR", "BELFRY_SERVER"),
            ("BELFRY_BOOTSTRAPKEY", "BELFRY_BOOTSTRAP_KEY"),
        ] {
            assert_eq!(stray(name), Stray::Meant(format!("is not read; did you mean {meant}?")), "{name}");
        }
        for name in ["BELFRY_SERVER", "BELFRY_SERVICE_PORT_HTTP", "BELFRY_PORT_8090_TCP_ADDR", "PATH", "BELFRY_"] {
            assert_eq!(stray(name), Stray::NotOurs, "{name}");
        }
        for name in ["BELFRY_KEY", "BELFRY_TEST_VENV", "BELFRY_HOME"] {
            assert_eq!(stray(name), Stray::Unread, "{name}");
        }
    }
}
