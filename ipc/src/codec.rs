//! Converts values to bytes and back. No other file uses bincode.
//!
//! tokio-serde 0.9 uses bincode 1.3.3, which is unmaintained (RUSTSEC-2025-0141; `deny.toml` gives the reason to keep
//! it). Against hostile peers, the codec limits the size, uses integers of fixed width and rejects trailing bytes.

use bincode::Options;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::frame::MAX_FRAME;

/// Failure to encode or decode a value.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The value does not fit into a frame, or contains something that cannot be encoded.
    #[error("cannot encode a message: {0}")]
    Encode(#[source] bincode::Error),
    /// The bytes are not a value of the expected type.
    #[error("cannot decode a message: {0}")]
    Decode(#[source] bincode::Error),
}

fn options() -> impl Options {
    bincode::DefaultOptions::new().with_fixint_encoding().with_limit(MAX_FRAME as u64).reject_trailing_bytes()
}

/// Encodes a value; at most [`MAX_FRAME`] bytes.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CodecError> {
    options().serialize(value).map_err(CodecError::Encode)
}

/// Encodes a value of any size, for values that are sent in parts (see [`crate::effect`]).
pub fn encode_unbounded<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CodecError> {
    bincode::DefaultOptions::new().with_fixint_encoding().serialize(value).map_err(CodecError::Encode)
}

/// Decodes exactly one value from all of `bytes`; at most [`MAX_FRAME`] of them.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    options().deserialize(bytes).map_err(CodecError::Decode)
}

/// Decodes exactly one value from all of `bytes`. The caller must have limited the number of bytes.
pub fn decode_bounded<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    bincode::DefaultOptions::new()
        .with_fixint_encoding()
        .with_limit(bytes.len() as u64)
        .reject_trailing_bytes()
        .deserialize(bytes)
        .map_err(CodecError::Decode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailing_bytes_are_rejected() {
        let mut bytes = encode(&7u32).unwrap();
        bytes.push(0);
        assert!(decode::<u32>(&bytes).is_err());
    }

    #[test]
    fn unknown_variants_are_rejected() {
        let bytes = encode(&9u32).unwrap();
        assert!(decode::<Option<()>>(&bytes).is_err());
        assert!(decode::<crate::rights::Network>(&bytes).is_err());
    }

    #[test]
    fn a_length_beyond_the_input_allocates_nothing_and_fails() {
        let bytes = encode(&u64::MAX).unwrap();
        assert!(decode::<Vec<u8>>(&bytes).is_err());
        assert!(decode::<String>(&bytes).is_err());
    }

    #[test]
    fn more_than_a_frame_is_not_encoded() {
        assert!(encode(&vec![0u8; MAX_FRAME]).is_err());
        assert!(encode_unbounded(&vec![0u8; MAX_FRAME]).is_ok());
    }
}
