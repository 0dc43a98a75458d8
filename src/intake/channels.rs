//! Which channels a notification goes to: those that the request names, or the first of its class's list that
//! there is an address for.

use belfry_domain::{ChannelKind, Class};

use super::fields::{FieldProblem, Object, Problems};
use super::json::{Node, Value};
use crate::content::inputs::To;

/// In `channels`: every device, whatever its kind.
pub const PUSH: &str = "push";

#[derive(Debug, Default)]
pub struct Chosen {
    pub channels: Vec<ChannelKind>,
    /// Those among which was chosen: one that is not taken had no address, or would have come later.
    pub looked_at: Vec<ChannelKind>,
}

pub fn choose(request: &Object<'_, '_>, class: Option<&Class>, to: &To, problems: &mut Problems) -> Chosen {
    if request.has("channels") { named(request, to, problems) } else { first(class, to, problems) }
}

fn first(class: Option<&Class>, to: &To, problems: &mut Problems) -> Chosen {
    let Some(class) = class else { return Chosen::default() };
    let Some(at) = class.channels.iter().position(|channel| !to.slots(*channel).is_empty()) else {
        // Only a request whose addresses could be read can be told that it has none.
        if problems.lasting.is_empty() {
            let list: Vec<_> = class.channels.iter().map(|channel| channel.name()).collect();
            let detail = format!("has no address for any channel of its class ({})", list.join(", "));
            problems.add_passing(FieldProblem::new("/to", detail));
        }
        return Chosen::default();
    };
    Chosen { channels: vec![class.channels[at]], looked_at: class.channels[..=at].to_vec() }
}

fn named(request: &Object<'_, '_>, to: &To, problems: &mut Problems) -> Chosen {
    let named = request.list("channels", ChannelKind::ALL.len() + 1, problems);
    if named.is_empty() && matches!(request.get("channels").map(|node| &node.value), Some(Value::List(_))) {
        problems.add("/channels", "must name at least one channel, or be left out");
    }
    let Chosen { mut channels, mut looked_at } = Chosen::default();
    for (pointer, node) in named {
        let Some(wanted) = meant(node, &pointer, problems) else { continue };
        let with_address: Vec<_> = wanted.iter().copied().filter(|one| !to.slots(*one).is_empty()).collect();
        if with_address.is_empty() && problems.lasting.iter().all(|known| !known.pointer.starts_with("/to")) {
            no_address(pointer, to, problems);
            // What it would be made of is looked at all the same.
            channels.extend(wanted.first());
        } else if with_address.iter().any(|one| channels.contains(one)) {
            problems.add(pointer, "names a channel twice");
        } else {
            channels.extend(with_address);
        }
        looked_at.extend(wanted);
    }
    Chosen { channels, looked_at }
}

/// Of a stored recipient that is only how it is now.
fn no_address(pointer: String, to: &To, problems: &mut Problems) {
    match to.recipient {
        Some(_) => {
            let detail = "has no address in /to, nor one stored for the recipient that messages may go to";
            problems.add_passing(FieldProblem::new(pointer, detail));
        }
        None => problems.add(pointer, "has no address in /to"),
    }
}

fn meant(node: &Node<'_>, pointer: &str, problems: &mut Problems) -> Option<Vec<ChannelKind>> {
    match node.text().map(|name| (name, name.parse())) {
        Some((PUSH, _)) => Some(ChannelKind::PUSH.to_vec()),
        Some((_, Ok(channel))) => Some(vec![channel]),
        _ => {
            let all: Vec<_> = ChannelKind::ALL.iter().map(|one| one.name()).collect();
            problems.add(pointer, format!("must be one of {} or {PUSH}", all.join(", ")));
            None
        }
    }
}
