//! Whether mail that somebody may be tired of says how to end it.

use belfry_domain::ChannelKind;

use super::super::files::{HTML, META, MJML, TEXT};
use super::super::template::LINKS;
use super::{Classes, Findings, Level};

impl Findings<'_> {
    pub(super) fn unsubscribe(&mut self, classes: &Classes) {
        let meta = &self.template.meta;
        let Some(class) = meta.class.clone() else { return };
        let Some(unsubscribe) = classes.get(&class) else {
            let known: Vec<&str> = classes.keys().map(String::as_str).collect();
            let message = format!("`{class}` is not a configured class; configured are {}", known.join(", "));
            self.add(Level::Warning, "unknown_class", (META, 0), message);
            return;
        };
        if !unsubscribe || !meta.channels.contains(&ChannelKind::Email) {
            return;
        }
        let is_body = |path: &str| [TEXT, HTML, MJML].contains(&path.rsplit('/').next().unwrap_or_default());
        let says = |names: &[String]| names.iter().any(|name| LINKS.contains(&name.as_str()));
        let silent: Vec<String> = self
            .template
            .variables
            .iter()
            .filter(|(path, names)| is_body(path) && !path.starts_with('_') && !says(names))
            .map(|(path, _)| path.clone())
            .collect();
        for path in silent {
            let message =
                format!("mail of the class {class} should say where to unsubscribe: {{{{ belfry.unsubscribe_url }}}}");
            self.add(Level::Warning, "missing_unsubscribe", (&path, 0), message);
        }
    }
}
