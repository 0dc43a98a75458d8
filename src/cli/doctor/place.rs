//! The machine that the store stands on: its folder, its disk, its clock.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Check, Verdict};
use crate::config::Config;
use crate::machine::MachineClock;
use crate::ports::clock::Clock;

/// Under this the store may soon be unable to accept.
const LITTLE_SPACE: u64 = 1 << 30;
/// 2026-01-01: before any release of this program, so a clock that says so is wrong.
const EARLIEST: i64 = 1_767_225_600_000;

fn store_folder(config: &Config) -> PathBuf {
    let folder = config.store.sqlite.path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

/// The nearest of the folder and those above it that is there.
fn existing(folder: &Path) -> &Path {
    folder.ancestors().find(|one| !one.as_os_str().is_empty() && one.exists()).unwrap_or(Path::new("."))
}

pub(super) fn folder(config: &Config) -> Check {
    let folder = store_folder(config);
    let shown = folder.display();
    if !folder.exists() {
        return match can_be_made(&folder) {
            Ok(()) => {
                Check::new("folder", Verdict::Note, format!("{shown} is not there yet; the first start makes it"))
            }
            Err(why) => {
                Check::new("folder", Verdict::Finding, format!("{shown} is not there and cannot be made: {why}"))
            }
        };
    }
    let mode = match std::fs::metadata(&folder) {
        Ok(found) if !found.is_dir() => {
            return Check::new("folder", Verdict::Finding, format!("{shown} is no folder"));
        }
        Ok(found) => found.permissions().mode() & 0o777,
        Err(error) => return Check::new("folder", Verdict::Finding, format!("{shown}: {error}")),
    };
    if mode & 0o077 != 0 {
        let what = format!("{shown} has mode {mode:04o}: others can read messages and keys; chmod 700 {shown}");
        return Check::new("folder", Verdict::Finding, what);
    }
    if rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK).is_err() {
        return Check::new("folder", Verdict::Finding, format!("{shown} cannot be written to by this user"));
    }
    Check::new("folder", Verdict::Good, format!("{shown} is the owner's alone"))
}

/// Tries it with another name: permissions alone do not tell (of `/proc`, of a read-only mount).
pub(super) fn can_be_made(folder: &Path) -> std::io::Result<()> {
    let trial = existing(folder).join(format!(".belfry-doctor-{}", std::process::id()));
    std::fs::create_dir(&trial)?;
    std::fs::remove_dir(&trial)
}

pub(super) fn disk(config: &Config) -> Check {
    let folder = store_folder(config);
    let place = existing(&folder);
    match rustix::fs::statvfs(place) {
        Err(error) => Check::new("disk", Verdict::Finding, format!("{}: {error}", place.display())),
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let what = format!("{} free at {}", size(free), place.display());
            if free < LITTLE_SPACE {
                return Check::new("disk", Verdict::Finding, format!("only {what}: a full disk means 503"));
            }
            Check::new("disk", Verdict::Good, what)
        }
    }
}

/// `27.3 GiB`.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    // In tenths: whole numbers keep what they say.
    let mut tenths = u128::from(bytes) * 10 / 1024;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

pub(super) fn clock() -> Check {
    let now = MachineClock.now();
    if now.0 < EARLIEST {
        let what = "says a time before this program was made: expiry, schedules and remembering would go wrong";
        return Check::new("clock", Verdict::Finding, what);
    }
    let shown = jiff::Timestamp::from_millisecond(now.0).map_or_else(|_| "?".into(), |at| at.to_string());
    // Honest about how little this is.
    let what = format!("it is {shown} here: not before 2026; compared with no time server");
    Check::new("clock", Verdict::Good, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_for_people() {
        for (bytes, shown) in [(0, "0.0 KiB"), (1536, "1.5 KiB"), (73_263_603_712, "68.2 GiB"), (1 << 50, "1024.0 TiB")]
        {
            assert_eq!(size(bytes), shown);
        }
    }
}
