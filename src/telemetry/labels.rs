//! Label values: members of closed sets, or configured names. Whatever else comes along counts
//! under `other`, so that no caller can make series.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};

/// Stands for every name that is not configured.
pub(super) const OTHER: Label = Label(Text::Fixed("other"));

/// The configured names that may stand as labels.
#[derive(Clone, Debug, Default)]
pub struct Names {
    classes: BTreeSet<Arc<str>>,
    providers: BTreeSet<Arc<str>>,
    caps: BTreeSet<Arc<str>>,
}

impl Names {
    #[must_use]
    pub fn new<'a>(classes: impl IntoIterator<Item = &'a str>, providers: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            classes: classes.into_iter().map(Arc::from).collect(),
            providers: providers.into_iter().map(Arc::from).collect(),
            caps: BTreeSet::new(),
        }
    }

    #[must_use]
    pub fn with_caps<'a>(self, caps: impl IntoIterator<Item = &'a str>) -> Self {
        Self { caps: caps.into_iter().map(Arc::from).collect(), ..self }
    }

    pub(super) fn has_provider(&self, name: &str) -> bool {
        self.providers.contains(name)
    }

    pub(super) fn class(&self, name: &str) -> Label {
        known(&self.classes, name)
    }

    pub(super) fn provider(&self, name: &str) -> Label {
        known(&self.providers, name)
    }

    pub(super) fn cap(&self, name: &str) -> Label {
        known(&self.caps, name)
    }
}

fn known(names: &BTreeSet<Arc<str>>, name: &str) -> Label {
    names.get(name).map_or(OTHER, |name| Label(Text::Configured(name.clone())))
}

/// A label's value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Label(Text);

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Text {
    Fixed(&'static str),
    Configured(Arc<str>),
}

impl From<&'static str> for Label {
    fn from(text: &'static str) -> Self {
        Self(Text::Fixed(text))
    }
}

impl EncodeLabelValue for Label {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        match &self.0 {
            Text::Fixed(text) => text.encode(encoder),
            Text::Configured(text) => text.as_ref().encode(encoder),
        }
    }
}

/// Statuses that Belfry answers with; a label must not follow whatever number turns up.
pub(super) fn status(code: u16) -> Label {
    const KNOWN: [(u16, &str); 22] = [
        (200, "200"),
        (201, "201"),
        (202, "202"),
        (204, "204"),
        (304, "304"),
        (400, "400"),
        (401, "401"),
        (403, "403"),
        (404, "404"),
        (405, "405"),
        (406, "406"),
        (408, "408"),
        (409, "409"),
        (410, "410"),
        (411, "411"),
        (413, "413"),
        (415, "415"),
        (422, "422"),
        (429, "429"),
        (500, "500"),
        (503, "503"),
        (504, "504"),
    ];
    KNOWN.iter().find(|(known, _)| *known == code).map_or(OTHER, |(_, text)| Label::from(*text))
}

pub(super) fn method(name: &str) -> Label {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == name).map_or(OTHER, Label::from)
}
