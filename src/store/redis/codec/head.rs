//! Reading what has a fixed length.

use belfry_domain::{Key, UnixMs};

use super::{Result, corrupt};

/// Reads a head from its front.
pub struct Head<'a>(pub &'a [u8]);

impl<'a> Head<'a> {
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(|| corrupt("a head"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn number(&mut self, count: usize) -> Result<u64> {
        Ok(self.bytes(count)?.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.bytes(1)?[0])
    }

    pub fn length(&mut self) -> Result<usize> {
        Ok(self.number(4)? as usize)
    }

    pub fn time(&mut self) -> Result<UnixMs> {
        Ok(UnixMs(self.number(6)?.cast_signed()))
    }

    pub fn text(&mut self, length: usize) -> Result<&'a str> {
        std::str::from_utf8(self.bytes(length)?).map_err(|_| corrupt("a text"))
    }

    pub fn key(&mut self) -> Result<Key> {
        let bytes = self.bytes(12)?.try_into().map_err(|_| corrupt("an id"))?;
        Ok(Key::from_bytes(bytes))
    }
}
