//! One intent of the demonstration and the requests that carry it.

use super::super::send::fresh_key;

/// One of the templates, sent to an address of its own.
pub struct Intent {
    pub template: String,
    /// Filled from the first answer.
    pub id: String,
    pub key: String,
    pub to: String,
    /// Members of the request, in order, each value as JSON text.
    members: Vec<(&'static str, String)>,
}

impl Intent {
    /// `sample` is the template's own JSON text.
    pub fn new(template: &str, sample: &str) -> Self {
        let key = fresh_key();
        let to = format!("ada+{}@demo.example", template.replace('_', "-"));
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let members = vec![
            ("class", quoted(class_of(template))),
            ("to", format!("{{\"email\":{}}}", quoted(&to))),
            ("template", quoted(template)),
            ("data", sample.trim().to_owned()),
            ("channels", "[\"email\"]".into()),
            ("unique", quoted(&format!("demo/{key}"))),
        ];
        Self { template: template.to_owned(), id: String::new(), key, to, members }
    }

    pub fn body(&self) -> String {
        self.written(self.members.iter(), ",", ":")
    }

    /// The same request, written by somebody else's JSON library.
    pub fn body_in_another_order(&self) -> String {
        self.written(self.members.iter().rev(), " ,\n\t", " : ")
    }

    /// A batch of this intent under each of `keys`.
    pub fn batch(&self, keys: &[&str]) -> String {
        let items: Vec<String> = keys
            .iter()
            .map(|key| {
                let members = self.written(self.members.iter(), ",", ":");
                format!("{{\"key\":{},{}", serde_json::Value::from(*key), &members[1..])
            })
            .collect();
        format!("{{\"items\":[{}]}}", items.join(","))
    }

    fn written<'a>(
        &self,
        members: impl Iterator<Item = &'a (&'static str, String)>,
        between: &str,
        after_name: &str,
    ) -> String {
        let members: Vec<String> = members.map(|(name, value)| format!("\"{name}\"{after_name}{value}")).collect();
        format!("{{{}}}", members.join(between))
    }
}

/// What the built-in templates are for; one's own count as transactional.
fn class_of(template: &str) -> &'static str {
    match template {
        "login_code" => "code",
        "receipt" => "receipt",
        "weekly_digest" => "digest",
        _ => "transactional",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_writing_says_the_same() {
        let intent = Intent::new("login_code", "{\"code\": \"1\", \"n\": 1.50}\n");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&intent.body()), value(&intent.body_in_another_order()));
        assert_ne!(intent.body(), intent.body_in_another_order());
        let batch = value(&intent.batch(&["a", "b"]));
        let mut item = value(&intent.body());
        item["key"] = "b".into();
        assert_eq!(batch["items"][1], item);
    }
}
