//! What intake needs of the content room: templates frozen, and the message made once at accept, so
//! that whatever cannot be made is refused while the caller is still there to hear it.

use belfry_domain::ChannelKind;
use belfry_domain::notification::TemplateRef;

use super::fields::FieldProblem;
use crate::content::inputs::{Inputs, Source};
use crate::content::{self, Content, RenderFault, RenderProblem};

/// One address slot on one channel.
pub type Slot = (ChannelKind, String);

pub trait ContentCheck: Send + Sync + 'static {
    /// The version of a template that is current now, in the best locale there is for `locale`.
    ///
    /// # Errors
    /// A problem at `/template`: there is no such template.
    fn freeze(&self, template: &str, locale: Option<&str>) -> Result<TemplateRef, FieldProblem>;

    /// Whether the frozen template says where to unsubscribe or to choose.
    fn speaks_of_links(&self, template: &TemplateRef) -> bool;

    /// Whether what the message is made from says so.
    fn speaks_of(&self, inputs: &Inputs) -> bool {
        inputs.source.frozen().is_some_and(|template| self.speaks_of_links(template))
    }

    /// Renders for every slot and returns each message's content hash (hex SHA-256 of the message
    /// before signing), in the order of `slots`.
    ///
    /// # Errors
    /// What stands in the way, with the request's pointers (`/data/order`, `/content/sms`).
    fn render_hash(&self, inputs: &Inputs, slots: &[Slot]) -> Result<Vec<String>, Vec<FieldProblem>>;
}

impl ContentCheck for Content {
    fn freeze(&self, template: &str, locale: Option<&str>) -> Result<TemplateRef, FieldProblem> {
        Self::freeze(self, template, locale).map_err(|problem| FieldProblem::new("/template", problem.message))
    }

    fn speaks_of_links(&self, template: &TemplateRef) -> bool {
        Self::speaks_of_links(self, &template.version)
    }

    fn render_hash(&self, inputs: &Inputs, slots: &[Slot]) -> Result<Vec<String>, Vec<FieldProblem>> {
        let mut hashes = Vec::with_capacity(slots.len());
        let mut problems: Vec<FieldProblem> = Vec::new();
        for (channel, slot) in slots {
            match self.render(inputs, *channel, slot) {
                Ok(message) => hashes.push(content::hash(&message)),
                Err(problem) => {
                    let problem = field(&inputs.source, &problem);
                    if !problems.contains(&problem) {
                        problems.push(problem);
                    }
                }
            }
        }
        if problems.is_empty() { Ok(hashes) } else { Err(problems) }
    }
}

/// The request's own place for what stands in the way.
fn field(source: &Source, problem: &RenderProblem) -> FieldProblem {
    let pointer = match (source, problem.fault, &problem.pointer) {
        (Source::Inline(_), _, _) => "/content".into(),
        (Source::Template { .. }, RenderFault::MissingVariable | RenderFault::Failed, Some(pointer)) => {
            format!("/data{pointer}")
        }
        (Source::Template { .. }, RenderFault::MissingVariable, None) => "/data".into(),
        (Source::Template { .. }, _, _) => "/template".into(),
    };
    FieldProblem::new(pointer, problem.to_string())
}
