//! What the commands read of the API's answers. Unknown members are ignored: a newer server may say
//! more.

use serde::Deserialize;

use super::client::Answer;
use super::exit::Failure;

#[derive(Debug, Deserialize)]
pub struct NotificationView {
    pub id: String,
    pub class: String,
    pub state: String,
    pub created_at: jiff::Timestamp,
    pub remembered_until: Option<jiff::Timestamp>,
    #[serde(default)]
    pub repeats: u32,
    #[serde(default)]
    pub deliveries: Vec<DeliveryView>,
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
    /// Masked by the server.
    #[serde(default)]
    pub address: String,
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
    pub found: Option<bool>,
    pub by: Option<String>,
    pub via: Option<String>,
    pub receipt: Option<String>,
    pub resolution: Option<String>,
    pub state: Option<String>,
}

impl NotificationView {
    /// # Errors
    /// The answer is no notification.
    pub fn of(answer: &Answer) -> Result<Self, Failure> {
        answer.read("a notification")
    }
}
