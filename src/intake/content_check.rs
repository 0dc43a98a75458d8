//! What intake needs of the content room: templates frozen, and the message made once at accept, so
//! that whatever cannot be made is refused while the caller is still there to hear it.

use belfry_domain::ChannelKind;
use belfry_domain::notification::TemplateRef;

use super::fields::FieldProblem;
use crate::content::inputs::Inputs;

/// One address slot on one channel.
pub type Slot = (ChannelKind, String);

pub trait ContentCheck: Send + Sync + 'static {
    /// The version of a template that is current now, in the best locale there is for `locale`.
    ///
    /// # Errors
    /// A problem at `/template`: there is no such template.
    fn freeze(&self, template: &str, locale: Option<&str>) -> Result<TemplateRef, FieldProblem>;

    /// Renders for every slot and returns each message's content hash (hex SHA-256 of the message
    /// before signing), in the order of `slots`.
    ///
    /// # Errors
    /// What stands in the way, with the request's pointers (`/data/order`, `/content/sms`).
    fn render_hash(&self, inputs: &Inputs, slots: &[Slot]) -> Result<Vec<String>, Vec<FieldProblem>>;
}
