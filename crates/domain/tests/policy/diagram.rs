//! The life of a delivery as a picture, made from the same table as the test of every state and
//! event, so that the page can never say anything else than the code does.

use std::collections::BTreeMap;
use std::fmt::Write;

use belfry_domain::delivery::StateName;
use belfry_domain::{Order, step};

use super::fixtures::{class, env, events, states};
use super::golden;

#[test]
fn architecture_draws_the_states_from_the_code() {
    for order in Order::ALL {
        golden::assert_section("docs/ARCHITECTURE.md", &format!("states of {order}"), &drawn(*order));
    }
}

/// Arrows that no event of `step` makes: the store's own.
const CLAIMS: [StateName; 3] = [StateName::Scheduled, StateName::Queued, StateName::Deferred];

fn drawn(order: Order) -> String {
    let mut arrows: BTreeMap<(StateName, StateName), Vec<String>> = BTreeMap::new();
    for receipts in [false, true] {
        for (_, delivery) in states(&class(order)) {
            for (name, event) in events() {
                let Ok(transition) = step(&delivery, &class(order), event, env(receipts)) else { continue };
                let label = name.split([':', ',']).next().unwrap_or_default().to_owned();
                let label = label.split(" by ").next().unwrap_or_default().to_owned();
                let labels = arrows.entry((delivery.state.name(), transition.next.state.name())).or_default();
                if !labels.contains(&label) {
                    labels.push(label);
                }
            }
        }
    }
    let mut text = String::from("```mermaid\nstateDiagram-v2\n    [*] --> queued\n    [*] --> scheduled\n");
    for from in CLAIMS {
        writeln!(text, "    {from} --> sending: claim").unwrap();
    }
    for ((from, to), labels) in arrows.iter().filter(|((from, to), _)| from != to) {
        writeln!(text, "    {from} --> {to}: {}", labels.join(", ")).unwrap();
    }
    text.push_str("```\n");
    text
}
