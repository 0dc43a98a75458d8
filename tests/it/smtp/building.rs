//! The bytes of a mail, read by two independent parsers: Python's strict one and `mail-parser`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belfry::channel::smtp::SmtpChannel;
use belfry::channel::smtp::config::{DkimConfig, SmtpConfig};
use belfry::channel::smtp::message::BuildError;
use belfry::content::Content;
use belfry::content::inputs::{Inputs, Source, To};
use belfry::ports::message::{Attachment, EmailMessage, Outgoing, Rendered};
use belfry_domain::ChannelKind;
use mail_parser::{MessageParser, MimeHeaders as _};
use serde_json::value::RawValue;

use super::python::{check, expected, knows_dkim};
use super::{config, corpus, mail, mailbox, named, outgoing, outgoing_of};

fn channel() -> SmtpChannel {
    SmtpChannel::new(&config("smtp://127.0.0.1")).unwrap()
}

fn bytes(out: &Outgoing) -> Vec<u8> {
    channel().build(out).unwrap().bytes
}

fn file(filename: &str, content_type: &str, base64: &str, cid: Option<&str>) -> Attachment {
    Attachment {
        filename: filename.to_owned(),
        content_type: content_type.to_owned(),
        base64: base64.to_owned(),
        cid: cid.map(str::to_owned),
    }
}

/// One of each structure, with names, texts and files that are easy to get wrong.
pub fn mails() -> Vec<(&'static str, EmailMessage)> {
    let line = "0123456789".repeat(500);
    let awkward = format!("{line}\n.\n..\n.hidden\ntrailing  \ntab\t\nFrom here\n-- \nbare\rreturn\r\nend\n\n");
    let html = format!("<!doctype html><p style=\"color:#000\">{}</p><p>é 你好 😀</p>", "minified ".repeat(600));
    let pdf =
        || file("Räkning – \"42\" 你好 with a very long name indeed.pdf", "application/pdf", "JVBERi0xLjQK", None);
    let logo = || file("logo.png", "image/png", "iVBORw0KGgo=", Some("logo@shop"));
    let every_octet = STANDARD.encode((0..=255_u8).collect::<Vec<_>>());
    let binary = || file("all.bin", "application/octet-stream", &every_octet, None);
    vec![
        ("plain", mail()),
        ("no-newline", EmailMessage { text: "one line".to_owned(), ..mail() }),
        ("empty", EmailMessage { text: String::new(), subject: String::new(), ..mail() }),
        ("awkward", EmailMessage { text: awkward.clone(), ..mail() }),
        ("utf8-text", EmailMessage { text: "Ça va? naïve café, mostly plain\n".repeat(40), ..mail() }),
        ("cjk-text", EmailMessage { text: "您的订单已发货。\n".repeat(40), ..mail() }),
        ("html", EmailMessage { html: Some(html.clone()), text: awkward, ..mail() }),
        ("attached", EmailMessage { attachments: vec![pdf(), binary()], ..mail() }),
        (
            "all",
            EmailMessage {
                html: Some(html),
                from: Some(named("Zoë, \"the\" Shop", "zoe@shop.example")),
                reply_to: vec![named("Hjälp", "help@example.com"), mailbox("other@example.com")],
                to: vec![named("Ann O'Hara (work)", "ann@example.com"), named("李小龙", "li@example.com")],
                cc: (0..30)
                    .map(|at| named(&format!("Ünïcödé Nåme Number {at}"), &format!("cc{at}@example.com")))
                    .collect(),
                headers: vec![
                    ("List-Unsubscribe".to_owned(), format!("<https://n.example.com/u/{}>", "t".repeat(700))),
                    ("List-Unsubscribe-Post".to_owned(), "List-Unsubscribe=One-Click".to_owned()),
                    (
                        "X-Note".to_owned(),
                        "första raden är längre än vad som får plats på en rad i ett brev".to_owned(),
                    ),
                ],
                attachments: vec![pdf(), logo(), binary()],
                ..mail()
            },
        ),
        ("template", of_a_template()),
        ("cid-without-html", EmailMessage { attachments: vec![logo()], ..mail() }),
    ]
}

/// A mail as a template makes it, with an image in its HTML and a file beside it.
fn of_a_template() -> EmailMessage {
    let dir = tempfile::tempdir().unwrap();
    let put = |path: &str, bytes: &[u8]| {
        let path = dir.path().join("t").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    let meta = "description = \"d\"\nchannels = [\"email\"]\nlocale = \"en\"\n[[attachments]]\nfile = \"terms.pdf\"\n\
                filename = \"Räkning {{ order }}.pdf\"\n";
    let html = "<style>p { color: #333 }</style><p><img src=\"cid:logo.png\">{{ at|date('long') }}, {{ total|decimal(2) }}</p>";
    put("meta.toml", meta.as_bytes());
    put("subject.txt", b"Order {{ order }}");
    put("html.html", html.as_bytes());
    put("attachments/logo.png", b"\x89PNG\r\n\x1a\n");
    put("attachments/terms.pdf", b"%PDF-1.4\n");
    let content = Content::load(dir.path()).unwrap_or_else(|problems| panic!("{problems:?}"));
    let data = r#"{"order": "42", "at": "2026-12-01", "total": 1234.5}"#;
    let inputs = Inputs {
        to: To { email: Some(mailbox("ann@example.com")), ..To::default() },
        source: Source::template(content.freeze("t", None).unwrap(), RawValue::from_string(data.to_owned()).unwrap()),
        locale: None,
        time_zone: None,
        links: None,
    };
    match content.render(&inputs, ChannelKind::Email, "to").unwrap() {
        Rendered::Email(mail) => *mail,
        other => panic!("{other:?}"),
    }
}

#[test]
fn case_59_every_structure_reads_back_as_it_was_meant() {
    let folder = tempfile::tempdir().unwrap();
    let mut wanted = Vec::new();
    for (name, mail) in mails() {
        let out = outgoing_of(name, mail.clone(), "ann@example.com");
        std::fs::write(folder.path().join(format!("{name}.eml")), bytes(&out)).unwrap();
        wanted.push(expected(name, out.message_key, &mail));
    }
    check(folder.path(), &wanted, &[]);
}

#[test]
fn case_32_a_thousand_subjects_by_two_parsers() {
    let folder = tempfile::tempdir().unwrap();
    let mut wanted = Vec::new();
    let channel = channel();
    for (at, subject) in corpus::subjects().into_iter().enumerate() {
        let name = format!("s{at}");
        let mail = EmailMessage { to: vec![named(subject.trim(), "ann@example.com")], subject, ..mail() };
        let out = outgoing_of(&name, mail.clone(), "ann@example.com");
        let bytes = channel.build(&out).unwrap().bytes;
        let parsed = MessageParser::default().parse(&bytes).unwrap();
        assert_eq!(parsed.subject().unwrap_or_default(), mail.subject, "{at}");
        let name_shown = parsed.to().unwrap().first().unwrap().name().unwrap_or_default();
        assert_eq!(name_shown, mail.to[0].name.as_deref().unwrap(), "{at}");
        std::fs::write(folder.path().join(format!("{name}.eml")), &bytes).unwrap();
        wanted.push(expected(&name, out.message_key, &mail));
    }
    check(folder.path(), &wanted, &[]);
}

/// Straight from the bytes, without a parser that might be lenient.
#[test]
fn case_34_encoded_words_stand_apart_and_hold_whole_characters() {
    let channel = channel();
    let mut words = 0;
    for (at, subject) in corpus::subjects().into_iter().enumerate() {
        let mail = EmailMessage { subject, ..mail() };
        let bytes = channel.build(&outgoing_of(&format!("s{at}"), mail, "ann@example.com")).unwrap().bytes;
        let text = String::from_utf8(bytes).unwrap();
        let (head, _) = text.split_once("\r\n\r\n").unwrap();
        assert!(!head.contains("?==?"), "{at}");
        for line in head.split("\r\n").filter(|line| line.contains("=?utf-8?b?")) {
            assert!(line.len() <= 76, "{at} {line}");
            let (_, word) = line.split_once("=?utf-8?b?").unwrap();
            let encoded = word.strip_suffix("?=").unwrap();
            assert!("=?utf-8?b?".len() + word.len() <= 75, "{at} {line}");
            String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap();
            words += 1;
        }
    }
    assert!(words > 3_000, "{words}");
}

#[test]
fn case_37_long_lines_dots_and_line_ends_arrive_as_they_left() {
    let (_, html) = mails().into_iter().find(|(name, _)| *name == "html").unwrap();
    assert!(html.text.lines().any(|line| line.len() == 5_000) && html.text.contains("\n.\n"));
    let bytes = bytes(&outgoing(html.clone()));
    assert!(bytes.split(|byte| *byte == b'\n').all(|line| line.len() <= 77), "76 octets and a line end");
    let parsed = MessageParser::default().parse(&bytes).unwrap();
    let meant = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n");
    let got = |text: &str| format!("{}\r\n", meant(text).trim_end_matches("\r\n"));
    assert_eq!(got(&parsed.body_text(0).unwrap()), got(&html.text));
    assert_eq!(got(&parsed.body_html(0).unwrap()), got(html.html.as_ref().unwrap()));
}

#[test]
fn case_55_one_of_each_header_that_a_mail_must_have() {
    for (name, mail) in mails() {
        let out = outgoing_of(name, mail, "ann@example.com");
        let text = String::from_utf8(bytes(&out)).unwrap();
        let (head, _) = text.split_once("\r\n\r\n").unwrap();
        for wanted in ["Message-ID", "Date", "From", "MIME-Version", "Subject", "To"] {
            let count = head.split("\r\n").filter(|line| line.starts_with(&format!("{wanted}:"))).count();
            assert_eq!(count, 1, "{name} {wanted}");
        }
        assert!(head.contains("Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n"), "{head}");
        assert!(head.contains(&format!("\r\nMessage-ID: <{}@", out.message_key)), "{name}");
    }
}

#[test]
fn case_59_text_first_html_last_and_files_around() {
    let (_, all) = mails().into_iter().find(|(name, _)| *name == "all").unwrap();
    let kinds = |mail: EmailMessage| -> Vec<String> {
        let bytes = bytes(&outgoing(mail));
        let parsed = MessageParser::default().parse(&bytes).unwrap();
        let kinds = parsed.parts.iter().map(|part| {
            let kind = part.content_type().unwrap();
            format!("{}/{}", kind.ctype(), kind.subtype().unwrap())
        });
        kinds.collect()
    };
    let expected = [
        "multipart/mixed",
        "multipart/alternative",
        "text/plain",
        "multipart/related",
        "text/html",
        "image/png",
        "application/pdf",
        "application/octet-stream",
    ];
    assert_eq!(kinds(all), expected);
    let template = of_a_template();
    assert_eq!(template.text, "December 1, 2026, 1,234.50\n");
    assert_eq!(kinds(template), expected[..7]);
}

pub fn key_pem(openssl: &[&str]) -> (String, String) {
    let run = |arguments: &[&str], input: &str| {
        use std::io::Write as _;
        let mut child = std::process::Command::new("openssl")
            .args(arguments)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success());
        String::from_utf8(done.stdout).unwrap()
    };
    let private = run(openssl, "");
    let public = run(&["pkey", "-pubout"], &private);
    let public: String = public.lines().filter(|line| !line.starts_with('-')).collect();
    (private, public)
}

fn dkim(pem: String) -> DkimConfig {
    DkimConfig {
        domain: "example.com".to_owned(),
        selector: "s1".to_owned(),
        key_file: "/nonexistent".into(),
        key: Some(pem.into()),
    }
}

/// One signing key and what DNS would say of it.
pub fn signer_for_tests() -> (DkimConfig, serde_json::Value) {
    let (private, public) = key_pem(&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]);
    (dkim(private), serde_json::json!({ "s1._domainkey.example.com": format!("v=DKIM1; k=rsa; p={public}") }))
}

/// A channel for each kind of key, with its DNS text.
fn signers() -> Vec<(&'static str, SmtpChannel, String)> {
    let signing =
        |pem: String| SmtpChannel::new(&SmtpConfig { dkim: Some(dkim(pem)), ..config("smtp://127.0.0.1") }).unwrap();
    let (pkcs8, public) = key_pem(&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]);
    let rsa = format!("v=DKIM1; k=rsa; p={public}");
    let (pkcs1, public) = key_pem(&["genrsa", "-traditional", "2048"]);
    assert!(pkcs1.contains("RSA PRIVATE KEY"));
    let old = format!("v=DKIM1; k=rsa; p={public}");
    let (ed, public) = key_pem(&["genpkey", "-algorithm", "ed25519"]);
    // The last 32 octets of an Ed25519 SubjectPublicKeyInfo are the key.
    let key = STANDARD.decode(public).unwrap();
    let ed_text = format!("v=DKIM1; k=ed25519; p={}", STANDARD.encode(&key[key.len() - 32..]));
    vec![("rsa", signing(pkcs8), rsa), ("pkcs1", signing(pkcs1), old), ("ed25519", signing(ed), ed_text)]
}

#[test]
fn signatures_verify_with_dkimpy() {
    if !knows_dkim() {
        eprintln!("skipped: python3 has no dkimpy; set BELFRY_TEST_PYTHON to one that has");
        return;
    }
    for (_, channel, text) in signers() {
        let folder = tempfile::tempdir().unwrap();
        let mut wanted = Vec::new();
        for (name, mail) in mails() {
            let out = outgoing_of(name, mail.clone(), "ann@example.com");
            std::fs::write(folder.path().join(format!("{name}.eml")), channel.build(&out).unwrap().bytes).unwrap();
            wanted.push(expected(name, out.message_key, &mail));
        }
        let keys = serde_json::json!({ "s1._domainkey.example.com": text });
        std::fs::write(folder.path().join("dkim.json"), keys.to_string()).unwrap();
        check(folder.path(), &wanted, &["--dkim"]);
    }
}

#[test]
fn two_builds_are_the_same_bytes_signature_included() {
    for (kind, channel, _) in signers() {
        for (name, mail) in mails() {
            let out = outgoing_of(name, mail, "ann@example.com");
            let first = channel.build(&out).unwrap().bytes;
            assert_eq!(first, channel.build(&out).unwrap().bytes, "{kind} {name}");
            assert!(String::from_utf8_lossy(&first).contains("t=1700000000;"));
        }
    }
    let other = outgoing_of("another intent", mail(), "ann@example.com");
    assert_ne!(bytes(&outgoing(mail())), bytes(&other), "the Message-ID differs");
}

#[test]
fn bcc_is_not_shown() {
    let shown = bytes(&outgoing_of("one", mail(), "secret@example.com"));
    assert!(!String::from_utf8(shown).unwrap().contains("secret"));
}

#[test]
fn what_can_never_be_sent_is_said_without_its_value() {
    let attached = |one: Attachment| EmailMessage { attachments: vec![one], ..mail() };
    let header = |name: &str, value: &str| EmailMessage { headers: vec![(name.into(), value.into())], ..mail() };
    for (broken, said) in [
        (EmailMessage { to: vec![mailbox("s3cret")], ..mail() }, "to: the address must be a mail address"),
        (EmailMessage { to: vec![], ..mail() }, "no recipient to show"),
        (header("Bcc", "s3cret@example.com"), "header 0 is set by Belfry: use `bcc`"),
        (header("X-A", "s3cret\r\nBcc: x@example.com"), "header 0 must be one line"),
        (attached(file("a", "s3cret", "AA==", None)), "attachment 0: content_type must be"),
        (attached(file("a", "a/b", "s3cret!", None)), "attachment 0: base64 is not standard base64"),
        (attached(file("a", "a/b", "AA==", Some("s3cret>"))), "attachment 0: cid must have"),
        (attached(file("a\r\ns3cret", "a/b", "AA==", None)), "attachment 0: filename must have"),
        (attached(file("a", "a/b", &"AAAA".repeat(4_000_000), None)), "larger than 10 MiB"),
    ] {
        let Err(error) = channel().build(&outgoing(broken)) else { panic!("built: {said}") };
        assert!(matches!(error, BuildError::Problem(_)));
        let shown = error.to_string();
        assert!(shown.contains(said) && !shown.contains("s3cret"), "{shown} / {said}");
    }
}
