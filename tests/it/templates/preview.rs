//! The preview shows every channel, writes every part, and shows a failure instead of hiding it.

use std::fs;

use belfry::content::Content;
use belfry::content::diff::diff;
use belfry::content::preview::{PreviewProblem, Trial, preview};

use super::{META, folder};

fn reader(locale: &str) -> Trial {
    Trial { locale: Some(locale.to_owned()), ..Trial::default() }
}

#[test]
fn a_preview_shows_and_writes_every_part() {
    let content = Content::built_in().unwrap();
    let out = tempfile::tempdir().unwrap();
    let dir = out.path().join("made/here");
    let shown = preview(&content, "order_shipped", &reader("de-AT"), Some(&dir)).unwrap();
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
    let shown = preview(&content, "t", &Trial::default(), None).unwrap();
    assert!(shown.screen.contains("== email: FAILED\n\nt/text.txt:1: `gone` is not in the data\n"), "{}", shown.screen);
    assert!(shown.screen.contains("fine") && shown.files.is_empty());
    assert_eq!(shown.problems.len(), 4, "email, chat, push, inbox");
    assert!(
        matches!(preview(&content, "v", &Trial::default(), None), Err(PreviewProblem::NoTemplate(name)) if name == "v")
    );
    assert!(matches!(preview(&content, "u", &Trial::default(), None), Err(PreviewProblem::NoSample)));
    let file = dir.path().join("t/sms.txt");
    assert!(matches!(preview(&content, "t", &Trial::default(), Some(&file)), Err(PreviewProblem::NotWritten { .. })));
}

#[test]
fn what_another_language_left_behind_goes_and_nothing_else() {
    let dir = folder(&[
        ("t/meta.toml", "description = \"d\"\nchannels = [\"email\"]\nlocale = \"en\"\n"),
        ("t/subject.txt", "News"),
        ("t/text.txt", "News"),
        ("t/html.html", "<p>News</p>"),
        ("t/de/text.txt", "Neues"),
        ("t/sample.json", "{}"),
    ]);
    let content = Content::load(dir.path()).unwrap();
    let out = tempfile::tempdir().unwrap();
    fs::write(out.path().join("notes.txt"), "mine").unwrap();
    let names = || {
        let mut names: Vec<String> =
            fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    preview(&content, "t", &Trial::default(), Some(out.path())).unwrap();
    assert_eq!(names(), ["html.html", "notes.txt", "subject.txt", "text.txt"]);
    // German mail has no HTML.
    let shown = preview(&content, "t", &reader("de"), Some(out.path())).unwrap();
    assert_eq!((names(), shown.files.len()), (vec!["notes.txt".into(), "subject.txt".into(), "text.txt".into()], 2));
    assert_eq!(fs::read_to_string(out.path().join("text.txt")).unwrap(), "Neues\n");
}

#[test]
fn the_reader_s_zone_and_other_data_can_be_tried() {
    let dir = folder(&[
        ("t/meta.toml", "description = \"d\"\nchannels = [\"sms\"]\nlocale = \"en\"\n"),
        ("t/sms.txt", "{{ name }} at {{ at|time('short') }}"),
        ("t/sample.json", "{\"name\": \"Ada\", \"at\": \"2026-12-01T14:05:00Z\"}"),
        ("u/meta.toml", META),
        ("u/sms.txt", "{{ name }}"),
    ]);
    let content = Content::load(dir.path()).unwrap();
    let berlin = Trial { time_zone: Some("Europe/Berlin".to_owned()), ..Trial::default() };
    let filling = |json: &str| Some(super::raw(json));
    let other = Trial { filling: filling(r#"{"name": "Bo", "at": "2026-07-01"}"#), ..berlin.clone() };
    let said = |name: &str, trial: &Trial| preview(&content, name, trial, None).unwrap().screen;
    assert!(said("t", &Trial::default()).contains("\nAda at 2:05 PM UTC\n"));
    assert!(said("t", &berlin).contains("\nAda at 3:05 PM\n"), "{}", said("t", &berlin));
    assert!(said("t", &other).contains("a day has no time of day"), "{}", said("t", &other));
    // Data of one's own stands in for a sample that is not there.
    assert!(said("u", &other).contains("\nBo\n"));
    for (trial, told) in [
        (reader("xx-bad!"), "the locale must be a language tag such as en or pt-BR"),
        (reader("german"), "the locale must be a language tag such as en or pt-BR"),
        (Trial { time_zone: Some("Mars".into()), ..Trial::default() }, "the time zone must be an IANA time zone"),
        (Trial { filling: filling("[1]"), ..Trial::default() }, "the data has to be an object"),
    ] {
        let refused = preview(&content, "t", &trial, None).unwrap_err().to_string();
        assert!(refused.starts_with(told), "{refused}");
        assert_eq!(diff(&content, &content, None, &trial).unwrap_err().to_string(), refused);
    }
    // A tag that nobody has files for is answered in the template's own language.
    assert!(said("t", &reader("xx")).starts_with("t, en, version"));
    let changes = diff(&content, &content, Some("t"), &berlin).unwrap();
    assert!(changes.list.is_empty() && !changes.cut);
}
