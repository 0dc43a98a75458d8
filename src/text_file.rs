//! Files that a person names: read whole, of a bounded size, and never waited for.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Enough for a configuration, a key, a password, a bundle of certificates.
pub const SMALL: u64 = 1024 * 1024;

/// The text of the regular file at `path`, at most `most` bytes.
///
/// # Errors
/// Where it cannot be read, is too large, or no regular file: a pipe would be waited for, and
/// `/dev/zero` has no end.
pub fn read(path: &Path, most: u64) -> io::Result<String> {
    let bytes = read_bytes(path, most)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8"))
}

/// The same of a file that is no text.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Opening a pipe that nobody writes to would wait for a writer.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    bounded(file, most)
}

/// Counts while it reads: a file may grow, and those of `/proc` claim to be empty.
fn bounded(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {most} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_whole_regular_files_of_a_bounded_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), "12345");
        assert_eq!(read(&path, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(read(&path, 4).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read_bytes(&path, 1).unwrap(), b"\xff");
        let pipe = dir.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for odd in [pipe.as_path(), dir.path(), Path::new("/dev/zero"), &link] {
            assert!(read(odd, 4).is_err(), "{}", odd.display());
        }
        assert!(bounded(File::open("/dev/zero").unwrap(), 4).is_err());
    }
}
