//! What a running server leaves beside its store for the commands on the same machine: where it
//! listens, and the first key. Both readable by the owner alone.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::config::Config;

const KEY: &str = "api-key";
const SERVER: &str = "server";

/// The folder of the store.
#[derive(Clone, Debug)]
pub struct LocalDir(PathBuf);

impl LocalDir {
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let folder = config.store.sqlite.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Self(folder.unwrap_or(Path::new(".")).to_owned())
    }

    #[must_use]
    pub fn key_path(&self) -> PathBuf {
        self.0.join(KEY)
    }

    /// The key that a first start left, if it did.
    #[must_use]
    pub fn key(&self) -> Option<String> {
        line(&self.key_path())
    }

    /// Where the server that ran last listened.
    #[must_use]
    pub fn server(&self) -> Option<String> {
        line(&self.0.join(SERVER))
    }

    /// # Errors
    /// The folder or the file cannot be written.
    pub fn leave_key(&self, key: &str) -> anyhow::Result<()> {
        self.write(KEY, key)
    }

    /// # Errors
    /// The folder or the file cannot be written.
    pub fn leave_server(&self, url: &str) -> anyhow::Result<()> {
        self.write(SERVER, url)
    }

    /// Takes the address away where it is still that of `url`: another node here may have left its own since.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn forget_server(&self, url: &str) -> std::io::Result<()> {
        if self.server().as_deref() != Some(url) {
            return Ok(());
        }
        std::fs::remove_file(self.0.join(SERVER))
    }

    /// Under a name of its own first, so that a reader never sees half a file.
    fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.0.join(name);
        // Others may be started here at the same time.
        let fresh = self.0.join(format!("{name}.{}.new", std::process::id()));
        let written = || -> std::io::Result<()> {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
            let mut file =
                std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
            // The mode above counts only where the file is new.
            file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
            writeln!(file, "{text}")?;
            file.sync_all()?;
            std::fs::rename(&fresh, &path)
        };
        written().with_context(|| format!("cannot write {}", path.display()))
    }
}

fn line(path: &Path) -> Option<String> {
    let text = crate::text_file::read(path, crate::text_file::SMALL).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_for_the_owner_alone() {
        let parent = tempfile::tempdir().unwrap();
        let dir = LocalDir(parent.path().join("store"));
        assert_eq!(dir.key(), None);
        dir.leave_key("blf_live_secret").unwrap();
        dir.leave_server("http://127.0.0.1:1").unwrap();
        dir.leave_server("http://127.0.0.1:2").unwrap();
        assert_eq!(dir.key().as_deref(), Some("blf_live_secret"));
        dir.forget_server("http://127.0.0.1:1").unwrap();
        assert_eq!(dir.server().as_deref(), Some("http://127.0.0.1:2"), "another's is left alone");
        dir.forget_server("http://127.0.0.1:2").unwrap();
        assert_eq!(dir.server(), None);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir.0), mode(&dir.key_path())), (0o700, 0o600));
    }
}
