//! The preview shows every channel, writes every part, and shows a failure instead of hiding it.

use std::fs;

use belfry::content::Content;
use belfry::content::preview::{PreviewProblem, preview};

use super::{META, folder};

#[test]
fn a_preview_shows_and_writes_every_part() {
    let content = Content::built_in().unwrap();
    let out = tempfile::tempdir().unwrap();
    let dir = out.path().join("made/here");
    let shown = preview(&content, "order_shipped", Some("de-AT"), Some(&dir)).unwrap();
    assert!(shown.problems.is_empty());
    for part in [
        "order_shipped, de, version tpl_",
        "== Email\n\nSubject: Bestellung 42 ist unterwegs\n",
        "Guten Tag Jörg Müller,",
        "HTML: ",
        "== SMS, ",
        "== Push, ",
        "== Chat",
        "== Inbox",
    ] {
        assert!(shown.screen.contains(part), "{part}: {}", shown.screen);
    }
    let mut names: Vec<String> =
        fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["html.html", "push.json", "sms.txt", "subject.txt", "text.txt"]);
    assert_eq!(shown.files.len(), 5);
    assert_eq!(fs::read_to_string(dir.join("subject.txt")).unwrap(), "Bestellung 42 ist unterwegs\n");
    assert!(fs::read_to_string(dir.join("html.html")).unwrap().contains("<html lang=\"de\""));
}

#[test]
fn what_fails_is_shown() {
    let dir = folder(&[
        ("t/meta.toml", META),
        ("t/subject.txt", "x"),
        ("t/text.txt", "{{ gone }}"),
        ("t/sms.txt", "fine"),
        ("t/sample.json", "{}"),
        ("u/meta.toml", META),
    ]);
    let content = Content::load(dir.path()).unwrap();
    let shown = preview(&content, "t", None, None).unwrap();
    assert!(shown.screen.contains("== email: FAILED\n\nt/text.txt:1: `gone` is not in the data\n"), "{}", shown.screen);
    assert!(shown.screen.contains("fine") && shown.files.is_empty());
    assert_eq!(shown.problems.len(), 4, "email, chat, push, inbox");
    assert!(matches!(preview(&content, "v", None, None), Err(PreviewProblem::NoTemplate(name)) if name == "v"));
    assert!(matches!(preview(&content, "u", None, None), Err(PreviewProblem::NoSample)));
    let file = dir.path().join("t/sms.txt");
    assert!(matches!(preview(&content, "t", None, Some(&file)), Err(PreviewProblem::NotWritten { .. })));
}
