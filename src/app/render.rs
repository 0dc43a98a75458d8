//! The content room as intake and engine see it: current templates from memory, frozen versions
//! that are no longer on disk from the installation.

use std::sync::Arc;

use async_trait::async_trait;
use belfry_domain::notification::TemplateRef;
use belfry_domain::{ChannelKind, NotificationId};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::watch;

use crate::content::inputs::{Device, Inputs, STORED, Source};
use crate::content::{Content, NotImported, RenderFault as ContentFault, RenderProblem, hash};
use crate::engine::{Made, Render, RenderFault};
use crate::intake::content_check::{ContentCheck, Slot};
use crate::intake::fields::FieldProblem;
use crate::ports::StoreError;
use crate::ports::admin::Installation;
use crate::ports::deliveries::Deliveries;
use crate::ports::message::Rendered;
use crate::ports::recipients::{DeviceRef, StoredSlot};

/// The current templates, swapped whole by a reload.
#[derive(Clone)]
pub struct Templates {
    current: watch::Receiver<Arc<Content>>,
    installation: Arc<dyn Installation>,
    /// Which keep what is attached.
    deliveries: Arc<dyn Deliveries>,
}

impl Templates {
    pub fn new(
        current: watch::Receiver<Arc<Content>>,
        installation: Arc<dyn Installation>,
        deliveries: Arc<dyn Deliveries>,
    ) -> Self {
        Self { current, installation, deliveries }
    }

    fn content(&self) -> Arc<Content> {
        self.current.borrow().clone()
    }
}

/// Keeps every current version, before anything can be frozen on it: a message accepted now has to
/// render the same after the files on disk have changed.
///
/// # Errors
/// Where the store cannot keep them.
pub async fn keep_current(content: &Content, installation: &dyn Installation) -> Result<(), StoreError> {
    for name in content.names().map(str::to_owned).collect::<Vec<_>>() {
        let Ok(frozen) = content.freeze(&name, None) else { continue };
        if let Some(kept) = content.export(&frozen.version) {
            installation.keep_template(&frozen.version, &kept).await?;
        }
    }
    Ok(())
}

#[async_trait]
impl Render for Templates {
    async fn render(
        &self,
        of: NotificationId,
        inputs: &str,
        channel: ChannelKind,
        slot: &str,
    ) -> Result<Made, RenderFault> {
        let mut inputs: Inputs = serde_json::from_str(inputs)
            .map_err(|_| RenderFault::Broken("its stored content cannot be read".into()))?;
        if channel == ChannelKind::Email {
            self.fetch_attached(of, &mut inputs).await?;
        }
        let content = self.content();
        let message = match made(&content, &inputs, channel, slot) {
            Err(problem) if problem.fault == ContentFault::UnknownVersion => {
                self.fetch(&content, &inputs).await?;
                apart(|| content.render(&inputs, channel, slot))
            }
            made => made,
        }
        .map_err(|problem| match problem.fault {
            // As where the template cannot be had just now: the delivery waits.
            ContentFault::Late => RenderFault::Store(StoreError::Unavailable(problem.to_string())),
            _ => RenderFault::Broken(problem.to_string()),
        })?;
        let address = inputs.to.slots(channel).into_iter().find(|(name, _)| name == slot);
        let (_, address) = address.ok_or_else(|| RenderFault::Broken("its address is not kept".into()))?;
        Ok(Made { address, hash: hash(&message), message })
    }

    fn stored_slot(&self, inputs: &str, slot: &str) -> Option<StoredSlot> {
        let id = slot.strip_prefix(STORED)?;
        let inputs: Inputs = serde_json::from_str(inputs).ok()?;
        let Device { app, environment, .. } = inputs.to.device(slot)?.clone();
        let device = DeviceRef { recipient: inputs.to.recipient?, device: id.to_owned() };
        Some(StoredSlot { device, app, environment })
    }

    fn time_zone(&self, inputs: &str) -> Option<String> {
        serde_json::from_str::<Inputs>(inputs).ok()?.time_zone
    }

    fn named_device(&self, inputs: &str, slot: &str) -> Option<(Option<String>, Option<String>)> {
        if !slot.starts_with("device") {
            return None;
        }
        let inputs: Inputs = serde_json::from_str(inputs).ok()?;
        let Device { app, environment, .. } = inputs.to.device(slot)?.clone();
        Some((app, environment))
    }
}

fn made(content: &Content, inputs: &Inputs, channel: ChannelKind, slot: &str) -> Result<Rendered, RenderProblem> {
    match inputs.source {
        Source::Template { .. } => apart(|| content.render(inputs, channel, slot)),
        // What is taken as it was given waits for nothing.
        Source::Inline(_) => content.render(inputs, channel, slot),
    }
}

/// Waits for the templates' own threads without keeping a thread of everybody's waiting with it.
fn apart<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current() {
        Ok(runtime) if runtime.runtime_flavor() == RuntimeFlavor::MultiThread => tokio::task::block_in_place(work),
        _ => work(),
    }
}

impl Templates {
    /// Gives the inputs what is kept elsewhere. What is gone stays away: no mail is made then.
    async fn fetch_attached(&self, of: NotificationId, inputs: &mut Inputs) -> Result<(), RenderFault> {
        let ids = inputs.contents_elsewhere();
        if ids.is_empty() {
            return Ok(());
        }
        let found = self.deliveries.attached(of, ids.clone()).await.map_err(RenderFault::Store)?;
        inputs.give_contents(&ids.into_iter().zip(found).filter_map(|(id, found)| Some((id, found?))).collect());
        Ok(())
    }

    async fn fetch(&self, content: &Content, inputs: &Inputs) -> Result<(), RenderFault> {
        let Source::Template { template, .. } = &inputs.source else { return Ok(()) };
        let kept = self.installation.template(&template.version).await.map_err(RenderFault::Store)?;
        let gone = || RenderFault::Broken(format!("{}: its frozen version is no longer kept", template.name));
        let kept = kept.ok_or_else(gone)?;
        match apart(|| content.import(&kept)) {
            Ok(_) => Ok(()),
            // As where it cannot be fetched just now: the delivery waits.
            Err(NotImported::Late(why)) => Err(RenderFault::Store(StoreError::Unavailable(why))),
            Err(NotImported::Broken(_)) => Err(gone()),
        }
    }
}

impl ContentCheck for Templates {
    fn freeze(&self, template: &str, locale: Option<&str>) -> Result<TemplateRef, FieldProblem> {
        self.content().freeze(template, locale).map_err(|problem| FieldProblem::new("/template", problem.to_string()))
    }

    fn speaks_of_links(&self, template: &TemplateRef) -> bool {
        self.content().speaks_of_links(&template.version)
    }

    fn render_hash(&self, inputs: &Inputs, slots: &[Slot]) -> Result<Vec<String>, Vec<FieldProblem>> {
        let content = self.content();
        let made: Vec<Result<String, RenderProblem>> = slots
            .iter()
            .map(|(channel, slot)| made(&content, inputs, *channel, slot).map(|made| hash(&made)))
            .collect();
        if made.iter().all(Result::is_ok) {
            return Ok(made.into_iter().flatten().collect());
        }
        let mut problems: Vec<FieldProblem> =
            made.into_iter().filter_map(Result::err).map(|one| named(inputs, one)).collect();
        problems.dedup();
        Err(problems)
    }
}

/// The problem at the pointer of the request that it is about.
fn named(inputs: &Inputs, problem: RenderProblem) -> FieldProblem {
    let within = problem.pointer.clone().unwrap_or_default();
    let pointer = match &inputs.source {
        Source::Template { .. } if problem.pointer.is_some() => format!("/data{within}"),
        Source::Template { .. } => "/template".into(),
        Source::Inline(_) => format!("/content{within}"),
    };
    FieldProblem { late: problem.fault == ContentFault::Late, ..FieldProblem::new(pointer, problem.to_string()) }
}
