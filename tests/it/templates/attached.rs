//! Files of a template in its mails, and what a change of templates changes.

use std::fs;
use std::path::Path;

use belfry::content::diff::diff;
use belfry::content::lint::{Classes, lint};
use belfry::content::preview::{Trial, preview};
use belfry::content::{Content, NotImported, hash};
use belfry_domain::ChannelKind;
use tempfile::TempDir;

use super::{META, filled, folder, mail, render, write};

/// A path and what stands there.
type Put<'p> = (&'p str, &'p [u8]);

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\x00\xff";
const NAMED: &str = "\n[[attachments]]\nfile = \"terms.pdf\"\nfilename = \"Terms {{ order }}.pdf\"\n[[attachments]]\nfile = \"key.bin\"\ncontent_type = \"application/octet-stream\"\n";

fn put(dir: &Path, files: &[Put<'_>]) {
    for (path, bytes) in files {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

fn with_files(html: &str, files: &[Put<'_>]) -> TempDir {
    let dir = folder(&[
        ("t/meta.toml", &format!("{META}{NAMED}")),
        ("t/subject.txt", "s"),
        ("t/html.html", html),
        ("t/de/text.txt", "nur Text"),
        ("t/sample.json", "{\"order\": 7}"),
        ("_shared/logo.html", "<img src=\"cid:logo.gif\">"),
    ]);
    put(dir.path(), &[("t/attachments/terms.pdf", b"%PDF"), ("t/attachments/key.bin", b"\x00\xff")]);
    put(dir.path(), files);
    dir
}

#[test]
fn a_mail_has_its_images_and_attachments() {
    let html = "<p><img src=\"cid:a.png\">{% if order == 0 %}<img src='cid:a.png'>{% endif %}{% include '_shared/logo.html' %}</p>";
    let dir = with_files(
        html,
        &[
            ("t/attachments/a.png", PNG),
            ("_shared/attachments/logo.gif", b"GIF89a"),
            ("_shared/attachments/other.gif", b"GIF"),
        ],
    );
    let content = Content::load(dir.path()).unwrap_or_else(|problems| panic!("{problems:?}"));
    let attached = |locale| {
        let all = mail(&content, &filled(&content, "t", locale, r#"{"order": "7 cid:none.png"}"#)).attachments;
        all.into_iter().map(|one| (one.filename, one.content_type, one.base64, one.cid)).collect::<Vec<_>>()
    };
    let told = |name: &str, kind: &str, base64: &str, cid: Option<&str>| {
        (name.to_owned(), kind.to_owned(), base64.to_owned(), cid.map(str::to_owned))
    };
    let named = [
        told("Terms 7 cid:none.png.pdf", "application/pdf", "JVBERg==", None),
        told("key.bin", "application/octet-stream", "AP8=", None),
    ];
    let mut all = vec![
        told("a.png", "image/png", "iVBORw0KGgoA/w==", Some("a.png")),
        told("logo.gif", "image/gif", "R0lGODlh", Some("logo.gif")),
    ];
    all.extend(named.clone());
    assert_eq!(attached(None), all);
    assert_eq!(attached(Some("de")), named);

    let inputs = filled(&content, "t", None, r#"{"order": 7}"#);
    let version = content.freeze("t", None).unwrap().version;
    let kept = content.export(&version).unwrap();
    assert!(!kept.files.contains("other.gif"));
    let other = Content::load(folder(&[("x/meta.toml", META), ("x/text.txt", "x")]).path()).unwrap();
    assert_eq!(other.import(&kept).unwrap(), version);
    let made = |content: &Content| hash(&render(content, &inputs, ChannelKind::Email).unwrap());
    assert_eq!(made(&other), made(&content));
    // What is not short is kept apart, once, and makes the same version again.
    let large: &[u8] = &[7; 3_000];
    put(dir.path(), &[("t/attachments/a.png", large), ("_shared/attachments/logo.gif", large)]);
    let content = Content::load(dir.path()).unwrap_or_else(|problems| panic!("{problems:?}"));
    let version = content.freeze("t", None).unwrap().version;
    let mut kept = content.export(&version).unwrap();
    assert!(kept.files.len() < 2_000 && kept.attached.len() == 1 && *kept.attached[0].content == *large);
    let inputs = filled(&content, "t", None, r#"{"order": 7}"#);
    assert_eq!(other.import(&kept).unwrap(), version);
    let made = |content: &Content| hash(&render(content, &inputs, ChannelKind::Email).unwrap());
    assert_eq!(made(&other), made(&content));
    kept.attached.clear();
    let Err(NotImported::Broken(problems)) = other.import(&kept) else { panic!("it is taken") };
    assert!(problems[0].to_string().contains("is no longer kept"));
    put(dir.path(), &[("t/attachments/a.png", b"\x89PNG other")]);
    assert_ne!(Content::load(dir.path()).unwrap().freeze("t", None).unwrap().version, version);
}

#[test]
fn what_is_missing_or_too_large_is_refused_with_its_place() {
    let large = vec![0_u8; 512 * 1024 + 1];
    let half = vec![0_u8; 512 * 1024];
    let cases: [(&str, &[Put<'_>], &str); 8] = [
        ("\n<img src=\"cid:no.png\">", &[], "t/html.html:2: shows `cid:no.png`, and there is no attachments/no.png"),
        ("<img src=\"cid:{{ a }}.png\">", &[], "t/html.html:1: the name of an inline image is written out"),
        ("<img src=\"cid:terms.pdf\">", &[], "t/html.html:1: shows `cid:terms.pdf`, which is no image"),
        ("{% include '_shared/logo.html' %}", &[], "t/_shared/logo.html:1: shows `cid:logo.gif`"),
        ("x", &[("t/attachments/a b.png", PNG)], "t/attachments/a b.png: an attachment's name is"),
        ("x", &[("t/attachments/a.png", &large)], "t/attachments/a.png: cannot be read: larger than"),
        ("x", &[("t/attachments/a.png", &half), ("t/attachments/b.png", &half)], "t/attachments/"),
        ("x", &[("t/attachments/a.png", b"")], "t/attachments/a.png: is empty"),
    ];
    for (html, files, told) in cases {
        let found = Content::load(with_files(html, files).path()).err().expect("a problem");
        assert!(found.iter().any(|one| one.to_string().starts_with(told)), "{told}: {found:?}");
    }
    let meta = format!(
        "{META}\n[[attachments]]\nfile = \"no.pdf\"\n[[attachments]]\nfile = \"x.odd\"\n[[attachments]]\nfile = \"x.odd\"\ncontent_type = \"multipart/mixed\"\n"
    );
    let dir = folder(&[("t/meta.toml", &meta), ("t/text.txt", "x")]);
    put(dir.path(), &[("t/attachments/x.odd", b"x")]);
    let found: Vec<String> =
        Content::load(dir.path()).err().expect("a problem").iter().map(|one| one.message.clone()).collect();
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found[0].contains("there is no attachments/no.pdf") && found[1].contains("say its `content_type`"),
        "{found:?}"
    );
    assert!(found[2].contains("`content_type`"), "{found:?}");
}

#[test]
fn what_is_too_large_is_not_called_missing() {
    let large = vec![0_u8; 512 * 1024 + 1];
    let meta = format!("{META}[[attachments]]\nfile = \"big.pdf\"\n");
    let dir = folder(&[("t/meta.toml", &meta), ("t/html.html", "<img src=\"cid:big.png\"><img src=\"cid:all.png\">")]);
    put(
        dir.path(),
        &[
            ("t/attachments/big.pdf", &large),
            ("t/attachments/big.png", &large),
            ("_shared/attachments/all.png", &large),
            ("u/meta.toml", &vec![b'#'; 300 * 1024]),
        ],
    );
    let found = Content::load(dir.path()).err().expect("a problem");
    let mut shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    shown.sort();
    assert_eq!(shown.len(), 4, "{shown:#?}");
    let files = ["_shared/attachments/all.png", "t/attachments/big.pdf", "t/attachments/big.png", "u/meta.toml"];
    for (one, file) in shown.iter().zip(files) {
        assert!(one.starts_with(&format!("{file}: cannot be read: larger than")), "{shown:#?}");
    }
}

#[test]
fn images_of_mjml_are_found_with_their_line() {
    let dir = with_files("x", &[]);
    fs::remove_file(dir.path().join("t/html.html")).unwrap();
    let text = "<mjml>\n<mj-body>\n<mj-section>\n<mj-column>\n<mj-image src=\"cid:a.png\" />\n<mj-text>{{ order }}</mj-text>\n</mj-column>\n</mj-section>\n</mj-body>\n</mjml>";
    write(dir.path(), &[("t/html.mjml", text)]);
    let found = Content::load(dir.path()).err().expect("a problem");
    assert_eq!(found[0].to_string(), "t/html.mjml:5: shows `cid:a.png`, and there is no attachments/a.png");
    put(dir.path(), &[("t/attachments/a.png", PNG)]);
    let content = Content::load(dir.path()).unwrap();
    let mail = mail(&content, &filled(&content, "t", None, r#"{"order": 7}"#));
    assert_eq!(mail.attachments[0].cid.as_deref(), Some("a.png"));
    assert!(mail.html.unwrap().contains("src=\"cid:a.png\""));
}

#[test]
fn the_lint_names_what_nothing_uses() {
    let dir = with_files("<p>x</p>", &[("t/attachments/a.png", PNG)]);
    let found = lint(dir.path(), &Classes::new());
    let unused: Vec<&str> =
        found.iter().filter(|one| one.rule == "unused_attachment").map(|one| one.file.as_str()).collect();
    assert_eq!(unused, ["attachments/a.png"]);
    assert!(found.iter().all(|one| one.rule != "large_mail"));
    put(dir.path(), &[("t/attachments/terms.pdf", &vec![7; 300 * 1024])]);
    let large: Vec<String> = lint(dir.path(), &Classes::new())
        .into_iter()
        .filter(|one| one.rule == "large_mail")
        .map(|one| one.message)
        .collect();
    assert_eq!(large, ["every mail has 301 KiB of files with it"]);
    let content = Content::load(dir.path()).unwrap();
    let shown = preview(&content, "t", &Trial::default(), None).unwrap().screen;
    assert!(shown.contains("Attachment: Terms 7.pdf (application/pdf, 300 KiB)\n"), "{shown}");
    put(dir.path(), &[("t/html.html", b"<img src=\"cid:a.png\">{{ order|date }}")]);
    let failing = lint(dir.path(), &Classes::new()).into_iter().find(|one| one.rule == "sample_fails").unwrap();
    assert!(failing.message.contains("no time that can be read") && failing.file == "html.html", "{failing:?}");
}

#[test]
fn a_diff_says_what_people_get_otherwise() {
    let old = with_files("<p>{{ order }}</p>\n", &[]);
    let new = with_files("<p>No. {{ order }}</p>\n", &[]);
    let load = |dir: &TempDir| Content::load(dir.path()).unwrap_or_else(|problems| panic!("{problems:?}"));
    let all = Trial::default();
    assert!(diff(&load(&old), &load(&old), None, &all).unwrap().list.is_empty());
    write(new.path(), &[("t/sms.txt", "{{ order }} {{ more }}"), ("t/sample.json", "{\"order\": 8, \"more\": 1}")]);
    put(new.path(), &[("t/attachments/key.bin", b"\x01\xff")]);
    write(new.path(), &[("u/meta.toml", META), ("u/text.txt", "x")]);
    write(old.path(), &[("v/meta.toml", META), ("v/text.txt", "x")]);
    let changes = diff(&load(&old), &load(&new), None, &all).unwrap();
    let brief: Vec<String> = changes
        .list
        .iter()
        .map(|one| {
            let channel = one.channel.map_or("-".to_owned(), |channel| channel.to_string());
            format!("{} {} {channel} {} {}", one.template, one.locale.as_deref().unwrap_or("-"), one.part, one.kind)
        })
        .collect();
    for line in [
        "t en email html changed",
        "t en email text changed",
        "t en email attachments changed",
        "t en sms text added",
        "t en sms failure removed",
        "u - - template added",
        "v - - template removed",
    ] {
        assert!(brief.iter().any(|one| one == line), "{line}: {brief:#?}");
    }
    let html = changes.list.iter().find(|one| one.part == "html" && one.locale.as_deref() == Some("en")).unwrap();
    assert_eq!(html.diff, "@@ -1 +1 @@\n-<p>8</p>\n+<p>No. 8</p>\n");
    let german = Trial { locale: Some("de".to_owned()), ..all };
    let german = diff(&load(&old), &load(&new), Some("t"), &german).unwrap().list;
    assert!(!german.is_empty() && german.iter().all(|one| one.locale.as_deref() == Some("de")));
}
