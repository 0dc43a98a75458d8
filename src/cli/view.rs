//! What the commands read of the API's answers. Unknown members are ignored: a newer server may say
//! more.

use serde::Deserialize;

use super::client::Answer;
use super::exit::Failure;
use super::spans::instant;

#[derive(Debug, Deserialize)]
pub struct NotificationView {
    pub id: String,
    pub class: String,
    pub state: String,
    pub created_at: jiff::Timestamp,
    pub remembered_until: Option<jiff::Timestamp>,
    pub expires_at: Option<jiff::Timestamp>,
    pub template: Option<TemplateView>,
    pub recipient: Option<String>,
    /// The caller's own name for it.
    pub reference: Option<String>,
    #[serde(default)]
    pub repeats: u32,
    #[serde(default)]
    pub deliveries: Vec<DeliveryView>,
    #[serde(default)]
    pub left_out: Vec<LeftOutView>,
    /// Of a digest: what it is made of.
    #[serde(default)]
    pub gathered: Vec<String>,
}

/// What it is made from.
#[derive(Debug, Deserialize)]
pub struct TemplateView {
    pub name: String,
    #[serde(default)]
    pub locale: String,
}

/// A device that nothing was sent to.
#[derive(Debug, Deserialize)]
pub struct LeftOutView {
    device: String,
    kind: String,
    why: String,
    since: jiff::Timestamp,
}

/// What is known of a device besides its token.
#[derive(Debug, Deserialize)]
pub struct DeviceView {
    id: Option<String>,
    app: Option<String>,
    environment: Option<String>,
}

/// One page of a list.
#[derive(Debug, Deserialize)]
pub struct Page {
    #[serde(rename = "data")]
    found: Vec<NotificationView>,
    pub next_cursor: Option<String>,
}

impl Page {
    #[must_use]
    pub fn found(&self) -> &[NotificationView] {
        &self.found
    }
}

#[derive(Debug, Deserialize)]
pub struct DeliveryView {
    pub id: String,
    pub channel: String,
    #[serde(default)]
    pub slot: String,
    /// Masked by the server.
    #[serde(default)]
    pub address: String,
    /// It goes to the address that was searched for.
    pub matches: Option<bool>,
    pub device: Option<DeviceView>,
    pub state: String,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub provider: String,
    /// Number of the current send.
    #[serde(default)]
    pub send: u32,
    #[serde(default)]
    pub may_have_arrived: bool,
    pub ended_at: Option<jiff::Timestamp>,
    #[serde(default)]
    pub timeline: Vec<EntryView>,
    pub timeline_left_out: Option<u32>,
}

/// One thing that happened; which members are there depends on `what`.
#[derive(Debug, Default, Deserialize)]
pub struct EntryView {
    pub at: jiff::Timestamp,
    pub what: String,
    pub send: Option<u32>,
    pub attempt: Option<u32>,
    pub outcome: Option<String>,
    pub why: Option<String>,
    pub text: Option<String>,
    pub took_ms: Option<u64>,
    pub worker: Option<String>,
    pub may_have_sent: Option<bool>,
    pub until: Option<jiff::Timestamp>,
    pub deferred_for: Option<String>,
    pub cap: Option<String>,
    pub times: Option<u32>,
    pub found: Option<bool>,
    pub into: Option<String>,
    pub by: Option<String>,
    pub via: Option<String>,
    pub receipt: Option<String>,
    pub resolution: Option<String>,
    pub state: Option<String>,
}

impl LeftOutView {
    /// One sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { device, kind, why, since } = self;
        let more = if why == "quarantined" { ", because the provider does not take it" } else { "" };
        format!("Not sent to {device} ({kind}): its token is {why} since {}{more}.", instant(*since))
    }
}

impl DeliveryView {
    /// Which of a mail's copies it is, with a space after it; nothing of its own recipient's.
    fn copy(&self) -> String {
        let kind = self.slot.split('/').next().filter(|kind| ["cc", "bcc"].contains(kind));
        kind.map(|kind| format!("{kind} ")).unwrap_or_default()
    }

    /// Where it goes, as a person would say it: a stored device by its id. Empty where nothing is known.
    #[must_use]
    pub fn whereto(&self) -> String {
        let Some(DeviceView { id, app, environment }) = &self.device else { return self.copy() + &self.address };
        let address = Some(self.address.as_str()).filter(|it| !it.is_empty());
        let mut known = [id.as_deref(), address, app.as_deref(), environment.as_deref()].into_iter().flatten();
        let name = known.next().unwrap_or_default();
        let rest: Vec<&str> = known.collect();
        if rest.is_empty() { name.to_owned() } else { format!("{name} ({})", rest.join(", ")) }
    }
}

impl NotificationView {
    /// The devices that nothing was sent to, a line each.
    #[must_use]
    pub fn not_sent(&self) -> String {
        self.left_out.iter().map(|one| one.sentence() + "\n").collect()
    }

    /// # Errors
    /// The answer is no notification.
    pub fn of(answer: &Answer) -> Result<Self, Failure> {
        answer.read("a notification")
    }
}
