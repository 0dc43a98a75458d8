//! The way in, on one node.

use std::sync::Arc;
use std::time::Duration;

use belfry::content::inputs::Inputs;
use belfry::intake::accept::{Intake, IntakePorts};
use belfry::intake::answer::Answer;
use belfry::intake::caller::Caller;
use belfry::intake::content_check::{ContentCheck, Slot};
use belfry::intake::fields::FieldProblem;
use belfry::intake::json;
use belfry::intake::plan::Arrival;
use belfry::intake::stored::{Asker, Stored};
use belfry::ports::deliveries::Deliveries;
use belfry::ports::gatherings::Gatherings;
use belfry::ports::policy::Policy;
use belfry::ports::preferences::PreferenceBook;
use belfry::ports::recipients::Recipients;
use belfry::ports::suppressions::Suppressions;
use belfry_domain::notification::TemplateRef;
use belfry_domain::timeline::Hop;
use belfry_domain::{ChannelKind, NotificationId};

use super::bugs::Bug;
use super::executor::NodeId;
use super::world::NodeShell;

/// What a caller wants, in the caller's own terms.
#[derive(Clone, Debug)]
pub struct Intent {
    pub tenant: &'static str,
    pub key: String,
    pub class: &'static str,
    pub channel: ChannelKind,
    /// When it is first asked for.
    pub at: Duration,
    /// How long after that it is to be sent; zero: at once.
    pub send_after: Duration,
    /// How often it is asked for again after the yes.
    pub repeats: u64,
    pub cancel: bool,
}

pub struct Door {
    pub node: NodeId,
    pub shell: Arc<NodeShell>,
    pub store: Arc<dyn Deliveries>,
    pub recipients: Arc<dyn Recipients>,
    pub suppressions: Arc<dyn Suppressions>,
    pub preferences: Arc<dyn PreferenceBook>,
    pub gatherings: Arc<dyn Gatherings>,
    pub policy: Arc<Policy>,
    pub bug: Option<Bug>,
}

/// The simulation renders itself, and always the same.
struct Frozen;

impl ContentCheck for Frozen {
    fn freeze(&self, template: &str, _locale: Option<&str>) -> Result<TemplateRef, FieldProblem> {
        Ok(TemplateRef { name: template.into(), version: "v1".into(), locale: "en".into() })
    }

    fn speaks_of_links(&self, _template: &TemplateRef) -> bool {
        false
    }

    fn render_hash(&self, _inputs: &Inputs, slots: &[Slot]) -> Result<Vec<String>, Vec<FieldProblem>> {
        Ok(slots.iter().map(|_| "frozen".to_owned()).collect())
    }
}

impl Door {
    /// The same text on every repeat: it is counted from the run's beginning.
    fn send_at(&self, intent: &Intent) -> String {
        if intent.send_after.is_zero() {
            return String::new();
        }
        let at = self.shell.world.started_at.plus(intent.at + intent.send_after);
        format!(r#""send_at":"{}","#, belfry::intake::instant::rfc3339(at))
    }

    pub fn intake(&self) -> Intake {
        Intake::new(self.ports(), &[7; 32])
    }

    pub fn ports(&self) -> IntakePorts {
        let policy = self.policy.clone();
        IntakePorts {
            deliveries: self.store.clone(),
            content: Arc::new(Frozen),
            recipients: self.recipients.clone(),
            suppressions: self.suppressions.clone(),
            preferences: self.preferences.clone(),
            gatherings: self.gatherings.clone(),
            clock: self.shell.clone(),
            dice: self.shell.clone(),
            facts: self.shell.clone(),
            policy: Arc::new(move || policy.clone()),
        }
    }

    /// What it is made of: of a class that gathers a template with its own data.
    fn message(&self, intent: &Intent) -> String {
        let key = &intent.key;
        if self.policy.rules_of(intent.class).gather.is_some() {
            return format!(r#""template":"items","data":{{"key":"{key}"}}"#);
        }
        match intent.channel {
            ChannelKind::Email => format!(r#""content":{{"subject":"Hello","text":"{key}"}}"#),
            _ => format!(r#""content":{{"sms":"{key}"}}"#),
        }
    }

    /// The id, or `None` where the store did not answer.
    pub async fn submit(&self, intent: &Intent) -> Option<NotificationId> {
        let namespace = match self.bug {
            Some(Bug::KeyPerNode) => format!("node-{}", self.node),
            _ => "main".into(),
        };
        let caller = Caller {
            tenant: intent.tenant.into(),
            environment: "live".into(),
            namespace,
            key: "key_000000000000".into(),
        };
        let address = match intent.channel {
            ChannelKind::Email => r#""email":"ann@example.com""#,
            _ => r#""phone":"+46701234567""#,
        };
        let message = self.message(intent);
        let (class, channel, key) = (intent.class, intent.channel, &intent.key);
        let send_at = self.send_at(intent);
        let body = format!(
            r#"{{"class":"{class}",{send_at}"to":{{{address}}},"channels":["{channel}"],"reference":"{key}",{message}}}"#
        );
        let intake = self.intake();
        let arrival = Arrival { key: intent.key.clone(), via: Hop::Http, traceparent: None };
        let node = json::parse(body.as_bytes()).expect("the simulation writes JSON");
        let candidate = intake.prepare(Asker { caller: &caller, stored: &Stored::default() }, &arrival, &node, None);
        match intake.accept(&caller, vec![candidate]).await.ok()?.pop()? {
            Answer::Created(receipt) | Answer::Replayed(receipt) => Some(receipt.id.parse().expect("an id")),
            other => panic!("the simulation asks for nothing odd: {other:?}"),
        }
    }
}
