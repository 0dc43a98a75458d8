//! Inputs in values, packed with a dictionary that holds what nearly all of them have in common.

use super::{Result, corrupt};
use crate::ports::StoreError;
use crate::ports::attachments::{Attached, DIGEST};

/// Never changed: a new one gets a new mark beside it.
const DICTIONARY: &[u8] = include_bytes!("../inputs-1.json");
const PLAIN: u8 = 0;
const PACKED: u8 = 1;
/// What is attached stands in front of the text itself: `lua/attach.lua`.
const ATTACHED: u8 = 2;
/// No text of ours unpacks to more (a request has at most 10 MiB of attachments).
const MOST_UNPACKED: usize = 64 << 20;

/// A text of ours, packed where that pays.
pub fn pack(text: &[u8]) -> Vec<u8> {
    let packed = lz4_flex::block::compress_with_dict(text, DICTIONARY);
    if packed.len() + 4 >= text.len() {
        return [&[PLAIN][..], text].concat();
    }
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[PACKED][..], &length, &packed].concat()
}

/// Inputs as they are kept, with the digests of what they name.
pub fn pack_inputs(text: &[u8], attached: &[Attached]) -> Result<Vec<u8>> {
    let packed = pack(text);
    if attached.is_empty() {
        return Ok(packed);
    }
    let many = || StoreError::Unavailable(format!("{} attachments are too many", attached.len()));
    let mut whole = vec![ATTACHED, u8::try_from(attached.len()).map_err(|_| many())?];
    attached.iter().for_each(|one| whole.extend(one.id.as_bytes()));
    whole.extend(packed);
    Ok(whole)
}

pub fn unpack_inputs(bytes: &[u8]) -> Result<Vec<u8>> {
    match bytes {
        [ATTACHED, count, rest @ ..] => {
            unpack(rest.get(usize::from(*count) * DIGEST..).ok_or_else(|| corrupt("attachments"))?)
        }
        text => unpack(text),
    }
}

pub fn unpack(bytes: &[u8]) -> Result<Vec<u8>> {
    match bytes.split_first() {
        Some((&PLAIN, text)) => Ok(text.to_vec()),
        Some((&PACKED, rest)) => {
            let (length, packed) = rest.split_first_chunk::<4>().ok_or_else(|| corrupt("a text"))?;
            let length = u32::from_be_bytes(*length) as usize;
            if length > MOST_UNPACKED {
                return Err(corrupt("a text's length"));
            }
            lz4_flex::block::decompress_with_dict(packed, length, DICTIONARY).map_err(|_| corrupt("a text"))
        }
        _ => Err(corrupt("a text")),
    }
}
