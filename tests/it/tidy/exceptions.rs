//! Every exception to a rule of the tree, with its reason. An exception nobody needs any more
//! fails a test.

pub(super) struct Exception {
    pub rule: &'static str,
    /// A file, or with a trailing slash a folder.
    pub path: &'static str,
    /// What is found; empty: whatever the rule finds there.
    pub what: &'static str,
    pub reason: &'static str,
}

impl Exception {
    pub(super) fn covers(&self, rule: &str, path: &str, what: &str) -> bool {
        let here = if self.path.ends_with('/') { path.starts_with(self.path) } else { path == self.path };
        self.rule == rule && here && (self.what.is_empty() || self.what == what)
    }
}

const TEMPLATE_DATA: &str = "the API's own field, a template's data";

const SMTP_DATA: &str = "the SMTP command DATA, its phase and its end, as RFC 5321 calls them";

pub(super) const EXCEPTIONS: &[Exception] = &[
    Exception {
        rule: "file-length",
        path: "crates/domain/src/step.rs",
        what: "",
        reason: "the whole policy is read in one place, and its members are short",
    },
    Exception { rule: "name", path: "src/content/", what: "data", reason: TEMPLATE_DATA },
    Exception { rule: "name", path: "src/intake/", what: "data", reason: TEMPLATE_DATA },
    Exception {
        rule: "sleep",
        path: "tests/it/redis/astray.rs",
        what: "sleep_until",
        reason: "a clock that is off only in what it says of the time of day passes waiting on",
    },
    Exception {
        rule: "sleep",
        path: "tests/it/http/shifted.rs",
        what: "sleep_until",
        reason: "the Clock port's own verb",
    },
    Exception {
        rule: "sleep",
        path: "tests/it/sim/",
        what: "",
        reason: "virtual time: it passes at once, and nobody waits",
    },
    Exception {
        rule: "name",
        path: "src/http/",
        what: "data",
        reason: "the API's own member: a page's items, a template's data",
    },
    Exception { rule: "name", path: "src/channel/smtp/", what: "data", reason: SMTP_DATA },
    Exception { rule: "name", path: "src/channel/smtp/", what: "end_of_data", reason: SMTP_DATA },
    Exception { rule: "name", path: "src/channel/smtp/classify.rs", what: "Data", reason: SMTP_DATA },
    Exception { rule: "name", path: "tests/it/peers/smtp_stub.rs", what: "Data", reason: SMTP_DATA },
    Exception { rule: "name", path: "tests/it/smtp/", what: "data", reason: SMTP_DATA },
    Exception { rule: "name", path: "tests/it/smtp/", what: "end_of_data", reason: SMTP_DATA },
    Exception {
        rule: "sleep",
        path: "tests/it/peers/until.rs",
        what: "sleep",
        reason: "the pause between two looks at another process, which can signal nothing",
    },
    Exception {
        rule: "shell",
        path: "src/machine.rs",
        what: "",
        reason: "the machine's own clock and dice live here and nowhere else",
    },
    Exception {
        rule: "shell",
        path: "src/cli/",
        what: "",
        reason: "a command is a shell of its own: it draws a key, and looks whether to colour",
    },
    Exception {
        rule: "sleep",
        path: "tests/it/http/shifted.rs",
        what: "sleep_until",
        reason: "a clock that hands its own waiting on to the machine's",
    },
];
