//! Numbers that make no pace: of providers, and of API keys.

use super::Config;

/// By key, what is wrong with it.
pub(super) fn contradictions(config: &Config) -> Vec<(String, &'static str)> {
    let of_keys = config.http.limit.map(|limit| ("http.limit".to_owned(), limit.limit().err()));
    let of_providers = config.providers.iter().filter_map(|(name, provider)| {
        let pace = provider.pace.as_ref()?;
        Some((format!("providers.{name}.pace"), pace.plan().err()))
    });
    let all = of_keys.into_iter().chain(of_providers);
    all.filter_map(|(at, no)| no.map(|no| (format!("{at}.{}", no.key), no.problem))).collect()
}
