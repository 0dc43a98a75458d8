//! The end of a server's life: begun once, seen by everybody.

use tokio::sync::watch;

#[derive(Clone, Debug)]
pub struct Drain(watch::Sender<bool>);

impl Default for Drain {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Drain {
    /// Begins it. Nothing takes it back.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    #[must_use]
    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once it has begun.
    pub async fn begun(&self) {
        let mut seen = self.0.subscribe();
        // `self` holds the sender, so waiting cannot fail; if it could, the end would have come.
        if seen.wait_for(|begun| *begun).await.is_err() {
            debug_assert!(false, "the sender is gone while somebody holds it");
        }
    }
}
