//! Hex digits as the bytes that they stand for.

use std::borrow::Cow;

use minicbor::decode::Error;
use minicbor::encode::Write;
use minicbor::{Decode, Decoder, Encode, Encoder};

/// A text that mostly is lower-case hex; any other is kept as it is.
pub struct Hex<'a>(pub Cow<'a, str>);

impl<C> Encode<C> for Hex<'_> {
    fn encode<W: Write>(&self, out: &mut Encoder<W>, _: &mut C) -> Result<(), minicbor::encode::Error<W::Error>> {
        let mut room = [0; 32];
        match digits(&self.0, &mut room) {
            Some(bytes) => out.bytes(bytes)?,
            None => out.str(&self.0)?,
        };
        Ok(())
    }
}

impl<'b, C> Decode<'b, C> for Hex<'b> {
    fn decode(input: &mut Decoder<'b>, _: &mut C) -> Result<Self, Error> {
        match input.datatype()? {
            minicbor::data::Type::Bytes => Ok(Self(Cow::Owned(belfry_domain::hex(input.bytes()?)))),
            _ => Ok(Self(Cow::Borrowed(input.str()?))),
        }
    }
}

/// The bytes of lower-case hex digits, where there are no more than `room` has.
pub fn digits<'a>(text: &str, room: &'a mut [u8; 32]) -> Option<&'a [u8]> {
    let length = text.len() / 2;
    if !text.len().is_multiple_of(2) || length > room.len() {
        return None;
    }
    for (byte, pair) in room.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = of_pair(pair)?;
    }
    Some(&room[..length])
}

/// As [`digits`], however many.
pub fn all_digits(text: &str) -> Option<Vec<u8>> {
    let even = text.len().is_multiple_of(2);
    even.then(|| text.as_bytes().chunks_exact(2).map(of_pair).collect())?
}

fn of_pair(pair: &[u8]) -> Option<u8> {
    let half = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    Some(half(pair[0])? << 4 | half(pair[1])?)
}
