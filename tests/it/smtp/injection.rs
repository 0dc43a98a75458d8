//! Case 109: no caller-set field can add, end or change a header, a part or a command.

use std::sync::LazyLock;

use belfry::channel::smtp::SmtpChannel;
use belfry::ports::mail::wrong_name;
use belfry::ports::message::{Address, Attachment, EmailMessage, Mailbox};
use proptest::prelude::*;

use super::{config, mail, outgoing_of};

/// Made once: reading the machine's certificates takes longer than a case.
static CHANNEL: LazyLock<SmtpChannel> = LazyLock::new(|| SmtpChannel::new(&config("smtp://127.0.0.1")).unwrap());

/// Text with a taste for what breaks headers.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z]{1,8}",
        2 => Just("\r\n".to_owned()),
        1 => Just("\n".to_owned()),
        1 => Just("\r".to_owned()),
        1 => Just("\0".to_owned()),
        1 => Just("\r\n\r\n".to_owned()),
        1 => Just("\r\n.\r\n".to_owned()),
        2 => Just("\r\nX-Injected: yes".to_owned()),
        1 => Just("\u{2028}X-Injected: yes\u{85}".to_owned()),
        1 => prop::sample::select(vec!["\"", "\\", "<", ">", ",", ";", ":", "=?utf-8?b?", "?=", "(", ")", " ", "\t", "%0d%0a"])
            .prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => "é{1,60}",
        1 => Just("x".repeat(1100)),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

/// Either hostile or something that belongs there, so that the others are built too.
fn or(good: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![2 => Just(good.to_owned()), 1 => hostile(), 1 => hostile().prop_map(move |text| format!("{good}{text}"))]
}

fn boxes(name: impl Strategy<Value = String>, email: impl Strategy<Value = String>) -> impl Strategy<Value = Mailbox> {
    (prop::option::of(name), email).prop_map(|(name, email)| Mailbox { name, email: Address(email) })
}

/// Shown whole where a property fails: the product's own type shows nothing.
struct Hostile(EmailMessage);

impl std::fmt::Debug for Hostile {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&serde_json::to_string(&self.0).unwrap())
    }
}

fn mails() -> impl Strategy<Value = Hostile> {
    let address = || or("ann@example.com");
    let attachment = (or("a.pdf"), or("application/pdf"), or("AAECAw=="), prop::option::of(or("logo")))
        .prop_map(|(filename, content_type, base64, cid)| Attachment { filename, content_type, base64, cid });
    let addressed = (
        prop::option::of(boxes(hostile(), address())),
        prop::collection::vec(boxes(hostile(), address()), 0..2),
        prop::collection::vec(boxes(hostile(), address()), 1..3),
        prop::collection::vec(boxes(hostile(), address()), 0..2),
    );
    let headers = prop::collection::vec((or("List-Unsubscribe"), or("<https://n.example.com/u/x>")), 0..2);
    let content = (hostile(), hostile(), prop::option::of(hostile()), prop::collection::vec(attachment, 0..2));
    (addressed, headers, content).prop_map(|((from, reply_to, to, cc), headers, (subject, text, html, attachments))| {
        Hostile(EmailMessage { from, reply_to, to, cc, subject, text, html, headers, attachments })
    })
}

/// The header section's names, or a reason why it is none.
fn header_names(head: &str) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::new();
    for line in head.split("\r\n") {
        if line.contains(['\r', '\n', '\0']) {
            return Err(format!("a control character in {line:?}"));
        }
        if line.len() > 998 {
            return Err(format!("{} octets", line.len()));
        }
        if line.starts_with([' ', '\t']) {
            if line.trim().is_empty() || names.is_empty() {
                return Err("a folded line with nothing on it".into());
            }
            continue;
        }
        let (name, _) = line.split_once(':').ok_or_else(|| format!("no header: {line:?}"))?;
        names.push(name.to_ascii_lowercase());
    }
    Ok(names)
}

/// Every header section of the mail, its parts' included, by the boundaries that we chose.
fn sections(bytes: &str, key: &str) -> Vec<String> {
    let marker = format!("--=_{key}_");
    let mut found = vec![bytes.split("\r\n\r\n").next().unwrap_or_default().to_owned()];
    for part in bytes.split(&marker).skip(1) {
        let after = &part[1..];
        if !after.starts_with("--") {
            let after = after.strip_prefix("\r\n").unwrap_or(after);
            found.push(after.split("\r\n\r\n").next().unwrap_or_default().to_owned());
        }
    }
    found
}

const OURS: [&str; 10] = [
    "from",
    "to",
    "cc",
    "reply-to",
    "subject",
    "date",
    "message-id",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn case_109_nothing_leaves_its_field(Hostile(mail) in mails(), address in or("ann@example.com")) {
        let out = outgoing_of("hostile", mail.clone(), &address);
        let Ok(built) = CHANNEL.build(&out) else { return Ok(()) };
        let key = out.message_key.to_string();
        let bytes = String::from_utf8(built.bytes).expect("UTF-8");
        let all = sections(&bytes, &key);
        let mut names = header_names(&all[0]).map_err(TestCaseError::fail)?;
        for (name, _) in &mail.headers {
            let at = names.iter().position(|one| one.eq_ignore_ascii_case(name));
            names.remove(at.expect("a header that passed the door is written"));
            prop_assert!(wrong_name(name).is_none());
        }
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        prop_assert_eq!(once.len(), names.len(), "a header twice: {:?}", names);
        for name in &names {
            prop_assert!(OURS.contains(&name.as_str()), "{}", name);
        }
        for part in &all[1..] {
            let ends_multipart = part.starts_with("content-type: multipart");
            for name in header_names(part).map_err(TestCaseError::fail)? {
                let known = ["content-type", "content-transfer-encoding", "content-disposition", "content-id"];
                prop_assert!(known.contains(&name.as_str()) || ends_multipart, "{}", name);
            }
        }
        let files = mail.attachments.len();
        let inline = mail.html.is_some() && mail.attachments.iter().any(|one| one.cid.is_some());
        let attached = mail.attachments.iter().any(|one| one.cid.is_none() || mail.html.is_none());
        let containers = usize::from(mail.html.is_some()) + usize::from(inline) + usize::from(attached);
        let leaves = 1 + usize::from(mail.html.is_some()) + files;
        if containers > 0 {
            prop_assert_eq!(all.len() - 1, leaves + containers - 1, "parts");
        }
        for address in [built.from.as_str(), built.to.as_str()] {
            prop_assert!(!address.contains(['\r', '\n', '\0', ' ', '<', '>']), "{:?}", address);
        }
        prop_assert!(!bytes.replace("\r\n", "").contains(['\r', '\n']), "bare line ends");
        prop_assert!(bytes.split("\r\n").all(|line| line.len() <= 998));
    }
}

/// The fields one by one, each with the plainest attack, so that a failure names the field.
#[test]
fn case_109_each_field_by_name() {
    const ATTACK: &str = "x\r\nX-Injected: yes\r\n\r\nbody";
    let attack = || ATTACK.to_owned();
    let boxed = |name: Option<String>, email: String| Mailbox { name, email: Address(email) };
    let ann = || "ann@example.com".to_owned();
    let attachment = |filename: String, content_type: String, cid: Option<String>| Attachment {
        filename,
        content_type,
        base64: "AA==".to_owned(),
        cid,
    };
    let (pdf, kind) = (|| "a.pdf".to_owned(), || "application/pdf".to_owned());
    let fields = [
        ("subject", EmailMessage { subject: attack(), ..mail() }),
        ("from name", EmailMessage { from: Some(boxed(Some(attack()), ann())), ..mail() }),
        ("from", EmailMessage { from: Some(boxed(None, attack())), ..mail() }),
        ("reply_to name", EmailMessage { reply_to: vec![boxed(Some(attack()), ann())], ..mail() }),
        ("reply_to", EmailMessage { reply_to: vec![boxed(None, format!("ann@example.com{ATTACK}"))], ..mail() }),
        ("to name", EmailMessage { to: vec![boxed(Some(attack()), ann())], ..mail() }),
        ("cc name", EmailMessage { cc: vec![boxed(Some(attack()), ann())], ..mail() }),
        ("header name", EmailMessage { headers: vec![(attack(), "x".into())], ..mail() }),
        ("header value", EmailMessage { headers: vec![("List-Unsubscribe".into(), attack())], ..mail() }),
        ("filename", EmailMessage { attachments: vec![attachment(attack(), kind(), None)], ..mail() }),
        ("content type", EmailMessage { attachments: vec![attachment(pdf(), attack(), None)], ..mail() }),
        ("cid", EmailMessage { attachments: vec![attachment(pdf(), kind(), Some(attack()))], ..mail() }),
    ];
    for (field, mail) in fields {
        if let Ok(built) = CHANNEL.build(&outgoing_of(field, mail, "ann@example.com")) {
            let text = String::from_utf8(built.bytes).unwrap();
            let injected = text.split("\r\n").any(|line| line.to_ascii_lowercase().starts_with("x-injected"));
            assert!(!injected, "{field}: {text}");
        }
    }
}
