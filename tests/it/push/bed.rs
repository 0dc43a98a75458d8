//! A server with all three platforms behind it.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use super::live::Live;
use crate::peers::apns_sim::login::SimKey;
use crate::peers::apns_sim::{ApnsSim, Options, START};
use crate::peers::fcm_sim::FcmSim;
use crate::peers::web_push_sim::{PushService, Speaks};

const TOPIC: &str = "com.example.shop";
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

pub struct Bed {
    pub live: Live,
    pub apns: ApnsSim,
    pub fcm: FcmSim,
    pub web: PushService,
    pub key: SimKey,
}

pub fn now_ms() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// The sections of all three, with this `.p8` for APNs. `short`: how long APNs may take to answer.
fn sections(apns: &ApnsSim, p8: &str, short: &str) -> String {
    let url = apns.url();
    format!(
        "[channels.apns]\nproviders = [\"ios\"]\n[channels.fcm]\nproviders = [\"android\"]\n\
         [channels.web_push]\nproviders = [\"web\"]\n\
         [providers.ios]\nkind = \"apns\"\ntopic = \"{TOPIC}\"\nteam_id = \"TEAM000001\"\nkey_id = \"KEY0000001\"\n\
         key_file = \"{{dir}}/{p8}\"\nca_file = \"{{dir}}/apns.pem\"\nurl = \"{url}\"\ntimeouts = {{ answer = \"{short}\" }}\n\
         [classes.transactional.retry]\nbase = \"50ms\"\ncap = \"100ms\"\n"
    )
}

impl Bed {
    pub fn new() -> Self {
        Self::with("60s")
    }

    pub fn with(short: &str) -> Self {
        Self::started(short, Live::start)
    }

    /// On a file that outlives the process.
    pub fn kept() -> Self {
        Self::started("60s", Live::start_kept)
    }

    pub fn restart(&mut self) {
        // The new process makes a login of its own, and APNs takes none within 20 minutes of the last.
        self.apns.step(std::time::Duration::from_secs(20 * 60));
        self.live.restart(&format!("{}{}", sections(&self.apns, "right.p8", "60s"), Self::others(&self.fcm)));
    }

    fn started(short: &str, start: fn(Runtime, &str, &[(&str, &str)]) -> Live) -> Self {
        let runtime = runtime();
        let key = SimKey::new("TEAM000001", "KEY0000001");
        let stranger = SimKey::new("TEAM000001", "KEY0000001");
        let options = Options::new(std::slice::from_ref(&key), &[TOPIC]);
        let (apns, fcm, web) = runtime.block_on(async {
            let web = PushService::start(Speaks::Http2, now_ms()).await;
            (ApnsSim::start(options).await, FcmSim::start().await, web)
        });
        let since = std::time::Duration::from_secs(u64::try_from(now_ms() / 1000 - START).unwrap());
        apns.step(since);
        fcm.step(since);
        let vapid = belfry::channel::web_push::vapid::generate();
        let vapid_pem = secrecy::ExposeSecret::expose_secret(&vapid.pem).to_owned();
        let files = [
            ("right.p8", key.pem.as_str()),
            ("wrong.p8", stranger.pem.as_str()),
            ("apns.pem", apns.tls().ca_pem.as_str()),
            ("firebase.json", &fcm.key_file()),
            ("fcm.pem", &fcm.ca),
            ("vapid.pem", &vapid_pem),
            ("web.pem", &web.ca),
        ];
        let others = Self::others(&fcm);
        let live = start(runtime, &format!("{}{others}", sections(&apns, "right.p8", short)), &files);
        Self { live, apns, fcm, web, key }
    }

    fn others(fcm: &FcmSim) -> String {
        format!(
            "[providers.android]\nkind = \"fcm\"\nservice_account_file = \"{{dir}}/firebase.json\"\nurl = \"{}\"\n\
             ca_file = \"{{dir}}/fcm.pem\"\n\
             [providers.web]\nkind = \"web_push\"\nvapid_key_file = \"{{dir}}/vapid.pem\"\nsubject = \"mailto:a@b.example\"\n\
             ca_file = \"{{dir}}/web.pem\"\nallow_internal = true\n",
            fcm.url()
        )
    }

    pub fn public(&self) -> String {
        let pem = std::fs::read_to_string(self.live.dir.path().join("vapid.pem")).unwrap();
        belfry::channel::web_push::vapid::public_of(&pem).unwrap()
    }

    pub fn reload(&self, p8: &str) {
        self.live.reload(&format!("{}{}", sections(&self.apns, p8, "60s"), Self::others(&self.fcm)));
    }

    pub fn register(&self, recipient: &str, device: &str, token: &str) {
        let path = format!("/v1/recipients/{recipient}/devices/{device}");
        self.live.put(&path, &json!({"kind": "apns", "token": token, "app": TOPIC}));
    }

    pub fn device(&self, recipient: &str, device: &str) -> Value {
        self.live.get(&format!("/v1/recipients/{recipient}/devices/{device}"))
    }

    /// To a stored recipient, by push.
    pub fn push(&self, key: &str, recipient: &str) -> String {
        self.live.send(key, &to(&json!({ "recipient": recipient })))
    }

    /// To devices that the request brings along.
    pub fn push_to(&self, key: &str, devices: &Value) -> String {
        self.live.send(key, &to(&json!({ "devices": devices })))
    }

    pub fn tokens_called(&self) -> Vec<String> {
        self.apns.requests().into_iter().map(|seen| seen.token).collect()
    }
}

pub fn to(whom: &Value) -> Value {
    json!({"class": "transactional", "to": whom, "channels": ["push"],
        "content": {"push": {"title": "Shipped", "body": "Order 42", "data": {"order": "42"}}}})
}

pub fn hex(number: u8) -> String {
    format!("{number:02x}").repeat(32)
}

pub fn states(notification: &Value) -> Vec<&str> {
    notification["deliveries"].as_array().unwrap().iter().map(|one| one["state"].as_str().unwrap()).collect()
}
