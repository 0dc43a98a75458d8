//! The audience's way in: chunks of rows under the number of their upload, which stand for nothing until the upload is
//! complete. An upload that breaks off, or is overtaken by another, leaves chunks that are cleared away.

use serde::{Deserialize, Serialize};

use super::{Audience, Broadcast, Counts, Cursor, MOST_TOLD, Refused, RowProblem, State};
use crate::time::UnixMs;

/// Most chunks of one audience.
pub const MOST_CHUNKS: u32 = 100_000;
/// Chunks are written once it is on record that so many more may be there: what a crash leaves is found again.
pub const RESERVED: u32 = 64;
/// Most uploads whose chunks are still to be cleared away.
pub const MOST_LEFTOVERS: usize = 8;

/// An upload that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    pub number: u32,
    /// So many chunks of it may have been written.
    pub reserved: u32,
}

/// Chunks that nobody needs: all below `chunks` of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    pub upload: u32,
    pub chunks: u32,
}

impl Broadcast {
    /// Opens an upload, in place of one that is under way. The audience that there is stands until the new one is complete.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn begin_upload(&self, now: UnixMs) -> Result<Self, Refused> {
        match self.state {
            State::Running => return Err(Refused::Running),
            State::Aborted(_) => return Err(Refused::Over),
            State::Draft | State::Ready | State::Paused(_) | State::Done => {}
        }
        // An end adds three: the upload before this one, this one, and the audience.
        if self.leftovers.len() + 3 > MOST_LEFTOVERS {
            return Err(Refused::Clearing);
        }
        let number = self.uploads + 1;
        let mut next = Self { touched_at: now, uploads: number, ..self.next() };
        next.leave_upload();
        next.upload = Some(Upload { number, reserved: RESERVED });
        Ok(next)
    }

    /// Lets the upload write further chunks.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn reserve(&self, number: u32) -> Result<Self, Refused> {
        let upload = self.current(number)?;
        if upload.reserved >= MOST_CHUNKS {
            return Err(Refused::TooLarge);
        }
        let upload = Upload { reserved: upload.reserved + RESERVED, ..upload };
        Ok(Self { upload: Some(upload), ..self.next() })
    }

    /// All rows are there: from now on they are the audience, and the walk begins at the first of them.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn seal(&self, audience: Audience, mut bad: Vec<RowProblem>, now: UnixMs) -> Result<Self, Refused> {
        if self.audience.is_some_and(|it| it.upload == audience.upload) {
            // It was sealed, and that was not heard.
            return Ok(self.clone());
        }
        let upload = self.current(audience.upload)?;
        bad.truncate(MOST_TOLD);
        let mut next = Self {
            state: State::Ready,
            touched_at: now,
            ended_at: None,
            upload: None,
            cursor: Cursor::default(),
            canary_over: false,
            counts: Counts::default(),
            bad,
            refused: Vec::new(),
            ..self.next()
        };
        next.leave_audience();
        let kept = Leftover { upload: upload.number, chunks: upload.reserved };
        if audience.rows == 0 {
            next.leave(kept);
            next.state = State::Draft;
            next.audience = None;
        } else {
            next.audience = Some(audience);
        }
        Ok(next)
    }

    /// The upload broke off.
    ///
    /// # Errors
    /// [`Refused::Overtaken`].
    pub fn give_up_upload(&self, number: u32) -> Result<Self, Refused> {
        self.current(number)?;
        let mut next = self.next();
        next.leave_upload();
        Ok(next)
    }

    /// Of the first leftover only so many chunks are still there.
    #[must_use]
    pub fn cleared(&self, chunks: u32) -> Self {
        let mut next = self.next();
        match next.leftovers.first_mut() {
            Some(first) if chunks > 0 => first.chunks = chunks,
            Some(_) => drop(next.leftovers.remove(0)),
            None => {}
        }
        next
    }

    fn current(&self, number: u32) -> Result<Upload, Refused> {
        self.upload.filter(|upload| upload.number == number).ok_or(Refused::Overtaken)
    }

    pub(super) fn leave_upload(&mut self) {
        if let Some(Upload { number, reserved }) = self.upload.take() {
            self.leave(Leftover { upload: number, chunks: reserved });
        }
    }

    pub(super) fn leave_audience(&mut self) {
        if let Some(Audience { upload, chunks, .. }) = self.audience.take() {
            self.leave(Leftover { upload, chunks });
        }
    }

    fn leave(&mut self, left: Leftover) {
        if left.chunks > 0 {
            self.leftovers.push(left);
        }
    }
}
