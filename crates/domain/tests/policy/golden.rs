//! Texts made from the code and kept in the tree: compared, or made anew with `UPDATE_DOCS=1`.

use std::fs;
use std::path::Path;

/// Compares `made` with the file at `path` (from the workspace's root).
#[track_caller]
pub(crate) fn assert_file(path: &str, made: &str) {
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&whole, made).unwrap();
        return;
    }
    let kept = fs::read_to_string(&whole).unwrap_or_default();
    if kept == made {
        return;
    }
    let differing = kept.lines().zip(made.lines()).find(|(kept, made)| kept != made);
    panic!(
        "{path} is not what the code makes now; look at the difference and run again with UPDATE_DOCS=1\n{} lines kept, {} made; first: {differing:?}",
        kept.lines().count(),
        made.lines().count(),
    );
}

/// Replaces what stands between two marker lines in the file at `path`, or compares it.
#[track_caller]
pub(crate) fn assert_section(path: &str, name: &str, made: &str) {
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let text = fs::read_to_string(&whole).unwrap();
    let (begin, end) = (format!("<!-- {name}: made from the code -->\n"), format!("<!-- {name}: end -->\n"));
    let (before, rest) = text.split_once(&begin).expect("the section's first marker");
    let (_, after) = rest.split_once(&end).expect("the section's last marker");
    assert_file(path, &format!("{before}{begin}{made}{end}{after}"));
}
