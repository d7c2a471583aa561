//! Frames: `u32` length · `u8` version · `u32` generation · payload, all integers little-endian.
//!
//! The length excludes itself, and is compared with [`MAX_FRAME`] before any allocation.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{self, CodecError};
use crate::id::Generation;

/// The most bytes that a frame may have after its length field: 4 MiB.
pub const MAX_FRAME: usize = 4 << 20;

/// The protocol's version; it changes whenever a wire type does.
pub const VERSION: u8 = 26;

/// Size of version and generation in a frame, in bytes.
pub const HEADER: usize = 5;

/// Reason that a frame was rejected.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The length exceeds [`MAX_FRAME`].
    #[error("frame of {0} bytes exceeds the limit of {MAX_FRAME}")]
    TooLarge(u64),
    /// The frame is shorter than its header.
    #[error("frame of {0} bytes has no header")]
    TooShort(usize),
    /// The peer uses another version of the protocol.
    #[error("frame of protocol version {0}, expected {VERSION}")]
    Version(u8),
    /// The frame has the generation of another worker of the agent.
    #[error("frame of generation {found}, expected {expected}")]
    Generation {
        /// The generation in the frame.
        found: Generation,
        /// The generation that the reader of the pipe accepts.
        expected: Generation,
    },
    /// The payload is not a message.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The stream ended inside a frame.
    #[error("stream ended inside a frame")]
    Truncated,
    /// Reading or writing failed.
    #[error("pipe failed: {0}")]
    Io(#[from] std::io::Error),
}

/// Encodes a frame without its length field.
pub fn seal<M: Serialize>(generation: Generation, message: &M) -> Result<Vec<u8>, FrameError> {
    let payload = codec::encode(message)?;
    let mut body = Vec::with_capacity(HEADER + payload.len());
    body.push(VERSION);
    body.extend_from_slice(&generation.0.to_le_bytes());
    body.extend_from_slice(&payload);
    check_length(body.len() as u64)?;
    Ok(body)
}

/// Decodes the message of a frame. `body` is the frame without its length field.
pub fn open<M: DeserializeOwned>(expected: Generation, body: &[u8]) -> Result<M, FrameError> {
    let (header, payload) = body.split_first_chunk::<HEADER>().ok_or(FrameError::TooShort(body.len()))?;
    let [version, generation @ ..] = *header;
    if version != VERSION {
        return Err(FrameError::Version(version));
    }
    let found = Generation(u32::from_le_bytes(generation));
    if found != expected {
        return Err(FrameError::Generation { found, expected });
    }
    Ok(codec::decode(payload)?)
}

/// Returns the length as `usize`. Fails if it exceeds [`MAX_FRAME`].
pub fn check_length(length: u64) -> Result<usize, FrameError> {
    match usize::try_from(length) {
        Ok(length) if length <= MAX_FRAME => Ok(length),
        _ => Err(FrameError::TooLarge(length)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_version_generation_and_length_are_named() {
        let body = seal(Generation(3), &7u32).unwrap();
        assert_eq!(open::<u32>(Generation(3), &body).unwrap(), 7);
        let error = open::<u32>(Generation(4), &body).unwrap_err().to_string();
        assert_eq!(error, "frame of generation 3, expected 4");
        let mut other = body.clone();
        other[0] = 200;
        let error = open::<u32>(Generation(3), &other).unwrap_err().to_string();
        assert_eq!(error, format!("frame of protocol version 200, expected {VERSION}"));
        let error = open::<u32>(Generation(3), &body[..3]).unwrap_err().to_string();
        assert_eq!(error, "frame of 3 bytes has no header");
        let error = check_length(u64::from(u32::MAX)).unwrap_err().to_string();
        assert_eq!(error, "frame of 4294967295 bytes exceeds the limit of 4194304");
    }
}
