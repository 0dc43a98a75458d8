//! The store itself, where it can be opened beside whoever runs on it.

use super::place::can_be_made;
use super::{Check, HELD, Verdict};
use crate::app::probe::NoStore;
use crate::app::{NotBegun, Stores};
use crate::config::Config;

pub(super) async fn looked_at(config: &Config, opened: Result<Stores, NoStore>, checks: &mut Vec<Check>) {
    let stores = match opened {
        Ok(stores) => stores,
        Err(missing) => return checks.push(missing_one(config, missing)),
    };
    let probed = stores.deliveries.probe().await;
    let mut findings = stores.findings().await.unwrap_or_else(|error| vec![error.to_string()]);
    findings.extend(probed.iter().flatten().filter(|away| !findings.contains(away)).cloned().collect::<Vec<_>>());
    if let Ok(Some(_)) = stores.holds.standing().await {
        findings.push(HELD.into());
    }
    checks.push(match probed {
        Ok(_) if !findings.is_empty() => Check::new("store", Verdict::Finding, findings.join("\n")),
        Ok(_) => Check::new("store", Verdict::Good, format!("opened and written to. {}", stores.durability)),
        Err(error) => Check::new("store", Verdict::Finding, error.to_string()),
    });
    checks.extend(stores.notes().await.into_iter().map(|note| Check::new("persistence", Verdict::Note, note)));
    match (stores.workers())().await {
        Ok(Some(0)) => checks.push(Check::new("workers", Verdict::Finding, "no worker is there: nothing is sent")),
        Ok(Some(1)) => checks.push(Check::new("workers", Verdict::Good, "1 worker is there")),
        Ok(Some(many)) => checks.push(Check::new("workers", Verdict::Good, format!("{many} workers are there"))),
        // One node does everything; or the store has just been found to be away.
        Ok(None) | Err(_) => {}
    }
    stores.close().await;
}

fn missing_one(config: &Config, missing: NoStore) -> Check {
    let verdict = match &missing {
        NoStore::Absent(_) if can_be_made(&config.store.sqlite.path).is_ok() => Verdict::Note,
        NoStore::Absent(path) => {
            return Check::new("store", Verdict::Finding, format!("{} cannot be made", path.display()));
        }
        NoStore::NotBegun(NotBegun { unfit, .. }) if unfit.is_empty() => Verdict::Note,
        NoStore::NotBegun(NotBegun { unfit, .. }) => {
            return Check::new("store", Verdict::Finding, format!("{missing}\n{}", unfit.join("\n")));
        }
        NoStore::Held | NoStore::Away(_) | NoStore::Broken(_) => Verdict::Finding,
    };
    Check::new("store", verdict, missing.to_string())
}
