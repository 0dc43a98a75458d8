//! Unsubscribing by RFC 8058, from the mail as it arrives to the next message that is not sent.

use std::process::Command;

use mail_parser::MessageParser;
use serde_json::{Value, json};
use tokio::runtime::Builder;

use super::building::key_pem;
use super::python::{knows_dkim, python};
use crate::peers::smtp_stub::{Script, SmtpStub};
use crate::push::live::Live;

const PUBLIC: &str = "https://notify.example.com";
const OLD: &str = "an-old-key-for-links-0123456789-abcdef";
const NEW: &str = "a-new-key-for-links-0123456789-abcdefg";

struct Shop {
    live: Live,
    stub: SmtpStub,
    sections: String,
    /// What DNS would say of the key that signs.
    dns: String,
}

impl Shop {
    fn new() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let stub = runtime.block_on(SmtpStub::start(Script::default()));
        let (private, public) = key_pem(&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]);
        let sections = format!(
            "[http]\npublic_url = \"{PUBLIC}/\"\n[links]\nkeys_file = \"{{dir}}/links\"\nsender = \"Shop & Co\"\n\
             [channels.email]\nproviders = [\"main\"]\n[providers.main]\nkind = \"smtp\"\nurl = \"{}\"\n\
             from = \"Shop <no-reply@example.com>\"\n[providers.main.dkim]\ndomain = \"example.com\"\nselector = \"s1\"\n\
             key_file = \"{{dir}}/dkim.pem\"\n",
            stub.url()
        );
        let live = Live::start(runtime, &sections, &[("dkim.pem", &private), ("links", &format!("{OLD}\n"))]);
        Self { live, stub, sections, dns: format!("v=DKIM1; k=rsa; p={public}") }
    }

    fn send(&self, key: &str, class: &str) -> String {
        let to = json!({"email": "ann@example.com", "locale": "de"});
        let body =
            json!({"class": class, "to": to, "channels": ["email"], "content": {"subject": "News", "text": "Cheap."}});
        let ended = self.live.ended(&self.live.send(key, &body));
        ended["deliveries"][0]["state"].as_str().unwrap().to_owned()
    }

    /// Of the latest mail: the link without the address of the server, which is not this one's.
    fn link(&self) -> String {
        let mail = self.stub.messages().pop().unwrap();
        let header = mail.header("List-Unsubscribe").unwrap();
        let link = header.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')).unwrap();
        link.strip_prefix(PUBLIC).unwrap().to_owned()
    }

    fn keys(&self, lines: &[&str]) {
        std::fs::write(self.live.dir.path().join("links"), lines.join("\n")).unwrap();
        self.live.reload(&self.sections);
    }

    fn page(&self, method: &str, path: &str) -> (u16, String) {
        let (status, page) = self.live.asked(method, path, None, None);
        (status, page.as_str().unwrap().to_owned())
    }
}

#[test]
fn case_26_one_click_from_the_header_ends_the_category_and_a_code_still_comes() {
    let shop = Shop::new();
    assert_eq!(shop.send("a", "marketing"), "accepted");
    let mail = shop.stub.messages().pop().unwrap();
    assert_eq!(mail.header("List-Unsubscribe-Post").as_deref(), Some("List-Unsubscribe=One-Click"));
    let parsed = MessageParser::default().parse(&mail.bytes).unwrap();
    let listed = parsed.header_raw("List-Unsubscribe").unwrap().replace("\r\n", "").trim().to_owned();
    assert_eq!(listed, format!("<{PUBLIC}{}>", shop.link()));
    let path = shop.link();
    let (status, page) = shop.page("GET", &path);
    assert!(
        status == 200 && page.contains("„Neuigkeiten und Angebote“ nicht mehr an a…@example.com senden?"),
        "{page}"
    );
    assert!(page.contains("Shop &amp; Co"), "{page}");
    assert_eq!(shop.send("b", "marketing"), "accepted");
    assert_eq!(shop.page("POST", &path).0, 200);
    assert_eq!(shop.send("c", "marketing"), "suppressed");
    assert_eq!(shop.send("d", "code"), "accepted");
    assert_eq!(shop.stub.messages().pop().unwrap().header("List-Unsubscribe"), None, "nobody unsubscribes from codes");
    assert!(shop.live.metrics().contains("belfry_unsubscribes_total{class=\"marketing\",back=\"false\"} 1"));
}

#[test]
fn as_many_headers_as_a_mail_may_have_leave_room_for_both() {
    let shop = Shop::new();
    let headers: serde_json::Map<String, Value> = (0..50).map(|number| (format!("X-{number}"), json!("x"))).collect();
    let content = json!({"subject": "News", "text": "Cheap.", "headers": headers});
    let body =
        json!({"class": "marketing", "to": {"email": "ann@example.com"}, "channels": ["email"], "content": content});
    assert_eq!(shop.live.ended(&shop.live.send("a", &body))["deliveries"][0]["state"], "accepted");
    let mail = shop.stub.messages().pop().unwrap();
    assert!(mail.header("X-49").is_some() && mail.header("List-Unsubscribe-Post").is_some());
}

/// RFC 8058, section 4: a signature has to cover both headers.
#[test]
fn the_signature_covers_both_headers() {
    if !knows_dkim() {
        eprintln!("skipped: python3 has no dkimpy; set BELFRY_TEST_PYTHON to one that has");
        return;
    }
    let shop = Shop::new();
    shop.send("a", "marketing");
    let mail = shop.stub.messages().pop().unwrap();
    let place = shop.live.dir.path().join("mail.eml");
    let script = "import sys, dkim, email, email.policy\n\
        whole = open(sys.argv[1], 'rb').read()\n\
        dns = lambda *asked, **more: sys.argv[2].encode()\n\
        both = ('List-Unsubscribe', 'List-Unsubscribe-Post')\n\
        mail = email.message_from_bytes(whole, policy=email.policy.default)\n\
        assert all(len(mail.get_all(name)) == 1 for name in both), mail.keys()\n\
        assert dkim.verify(whole, dnsfunc=dns)\n\
        for name in both:\n\
        \x20   bent = whole.replace((name + ': ').encode(), (name + ': x').encode(), 1)\n\
        \x20   assert bent != whole and not dkim.verify(bent, dnsfunc=dns), name\n";
    std::fs::write(&place, &mail.bytes).unwrap();
    let done = Command::new(python()).args(["-c", script]).arg(&place).arg(&shop.dns).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn keys_rotate_and_links_of_before_go_on_until_their_key_goes() {
    let shop = Shop::new();
    shop.send("a", "marketing");
    let before = shop.link();
    shop.keys(&[NEW, OLD]);
    shop.send("b", "marketing");
    let after = shop.link();
    assert_ne!(before, after);
    for path in [&before, &after] {
        assert_eq!(shop.page("GET", path).0, 200);
    }
    shop.keys(&[NEW]);
    assert_eq!([&before, &after].map(|path| shop.page("GET", path).0), [404, 200]);
    assert_eq!(shop.page("POST", &before).0, 404);
    assert_eq!(shop.send("c", "marketing"), "accepted");
    let none: Vec<Value> = Vec::new();
    assert_eq!(shop.live.get("/v1/suppressions")["data"], json!(none));
}
