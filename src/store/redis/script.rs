//! A Lua script and its hash: what is called by hash, and loaded by text where the server's cache
//! does not have it (any more).

/// One verb's script.
pub struct Script {
    /// For errors and traces.
    pub name: &'static str,
    text: String,
    hash: String,
    /// Which argument says whether it may have run before, where it takes that: `0`, or `1`.
    pub again: Option<usize>,
}

impl Script {
    /// `parts` one after the other: the common beginning, then the verb.
    #[must_use]
    pub fn new(name: &'static str, parts: &[&str]) -> Self {
        Self::of_text(name, parts.concat())
    }

    /// A script that finishes something or makes room: it may write where the server's memory is full, or
    /// what is under way could not be ended and would be done again.
    #[must_use]
    pub fn finishing(name: &'static str, parts: &[&str]) -> Self {
        Self::of_text(name, format!("#!lua flags=allow-oom\n{}", parts.concat()))
    }

    /// Told in this argument (counted from 1, as the script does) that it is run again: its first answer was
    /// lost, and the second must not be of other things, nor take what the first run did for somebody else's.
    #[must_use]
    pub fn told_again(self, argument: usize) -> Self {
        Self { again: Some(argument - 1), ..self }
    }

    fn of_text(name: &'static str, text: String) -> Self {
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Self { name, text, hash, again: None }
    }

    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Lower-case hex SHA-1 of the text, as Redis names it.
    #[must_use]
    pub fn hash(&self) -> &str {
        &self.hash
    }
}
