//! An effect: the exact change that a tool call would make, with all bytes, sent in parts.

use serde::{Deserialize, Serialize};

use crate::codec::{self, CodecError};
use crate::path::WirePath;
use crate::rights::Network;
use crate::tool::Access;

/// The most bytes that an encoded effect may have: 64 MiB.
pub const MAX_EFFECT: usize = 64 << 20;

/// The most bytes of an effect that travel in one message: 1 MiB.
pub const PART: usize = 1 << 20;

/// The exact change that a tool call makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// Changes files.
    Patch(Patch),
    /// Executes a program.
    Exec(Exec),
}

/// Changes of files, with all old and new bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    /// The changed files, each once.
    pub files: Vec<FileEffect>,
}

/// The change of one file. The file must still equal `old` when `new` replaces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEffect {
    /// The file: an absolute path in a canonical directory.
    pub path: WirePath,
    /// The present state; absent if the path does not exist.
    pub old: Option<FileState>,
    /// The new state; absent if the path is removed.
    pub new: Option<FileState>,
    /// Number of replacements that `edit_file` makes in the file.
    pub replacements: u64,
}

/// Type bits of a symbolic link, as in git. The bytes of its [`FileState`] are the target of the link.
pub const LINK: u32 = 0o120_000;

/// Type bits of a directory, as in git. Its [`FileState`] has no bytes. An effect only removes it, and only if empty.
pub const DIRECTORY: u32 = 0o040_000;

/// State of a path: content and permissions of a file, a symbolic link ([`LINK`]) or a directory ([`DIRECTORY`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Content of the file, or target of the link.
    #[serde(with = "bytes")]
    pub bytes: Vec<u8>,
    /// The permission bits of a file (`0o777` of the mode), or the type bits of anything but a regular file.
    pub mode: u32,
}

/// The execution of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// The argument vector, which is executed without joining or splitting.
    pub argv: Vec<WirePath>,
    /// The working directory, absolute.
    pub cwd: WirePath,
    /// Variables that are set in addition to the worker's environment.
    pub environment: Vec<(String, WirePath)>,
    /// The access to files that the command requests.
    pub access: Access,
    /// Network access that the command requests. `None` for the permanent one.
    pub network: Option<Network>,
    /// Time limit in milliseconds.
    pub timeout_ms: u64,
}

/// A part of an encoded effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Position of the part in the effect, from 0.
    pub index: u32,
    /// True for the last part.
    pub last: bool,
    /// Bytes of the part, at most [`PART`].
    #[serde(with = "bytes")]
    pub bytes: Vec<u8>,
}

/// Failure to assemble an effect from its parts.
#[derive(Debug, thiserror::Error)]
pub enum EffectError {
    /// The effect exceeds [`MAX_EFFECT`].
    #[error("the change exceeds the limit of {MAX_EFFECT} bytes")]
    TooLarge,
    /// A part is missing or repeated, or came after the last one.
    #[error("part {found} of a change came instead of part {expected}")]
    OutOfOrder {
        /// Position of the expected part.
        expected: u32,
        /// Position of the received part.
        found: u32,
    },
    /// The parts are not an effect, or the effect cannot be encoded.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

impl Effect {
    /// Splits the effect into parts of at most [`PART`] bytes. There is always a last part.
    pub fn to_parts(&self) -> Result<Vec<Part>, EffectError> {
        let bytes = codec::encode_unbounded(self)?;
        if bytes.len() > MAX_EFFECT {
            return Err(EffectError::TooLarge);
        }
        let mut parts: Vec<_> = (0u32..)
            .zip(bytes.chunks(PART))
            .map(|(index, chunk)| Part { index, last: false, bytes: chunk.to_vec() })
            .collect();
        if let Some(part) = parts.last_mut() {
            part.last = true;
        }
        Ok(parts)
    }
}

/// Collector of the parts of one effect, up to [`MAX_EFFECT`] bytes.
#[derive(Debug, Default)]
pub struct Assembler {
    bytes: Vec<u8>,
    next: u32,
    done: bool,
}

impl Assembler {
    /// Adds the next part. Returns the effect after the last part, `None` before.
    pub fn push(&mut self, part: Part) -> Result<Option<Effect>, EffectError> {
        if part.index != self.next || self.done {
            return Err(EffectError::OutOfOrder { expected: self.next, found: part.index });
        }
        if self.bytes.len() + part.bytes.len() > MAX_EFFECT {
            return Err(EffectError::TooLarge);
        }
        self.next += 1;
        self.bytes.extend_from_slice(&part.bytes);
        if !part.last {
            return Ok(None);
        }
        self.done = true;
        Ok(Some(codec::decode_bounded(&self.bytes)?))
    }
}

/// Serialisation of a `Vec<u8>` as one byte string. By default, serde writes each byte as a number.
pub(crate) mod bytes {
    use std::fmt;

    use serde::de::{self, Deserializer, SeqAccess, Visitor};
    use serde::ser::Serializer;

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        deserializer.deserialize_byte_buf(BytesVisitor)
    }

    struct BytesVisitor;

    impl<'de> Visitor<'de> for BytesVisitor {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("bytes")
        }

        fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }

        fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
            Ok(bytes)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<u8>, A::Error> {
            let mut bytes = Vec::new();
            while let Some(byte) = seq.next_element()? {
                bytes.push(byte);
            }
            Ok(bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(size: usize) -> Effect {
        let state = |byte| Some(FileState { bytes: vec![byte; size], mode: 0o644 });
        let file = FileEffect { path: "/p/f".into(), old: state(1), new: state(2), replacements: 1 };
        Effect::Patch(Patch { files: vec![file] })
    }

    #[test]
    fn an_effect_of_many_parts_comes_together_again() {
        let effect = patch(3 * PART);
        let mut assembler = Assembler::default();
        let mut whole = None;
        for part in effect.to_parts().unwrap() {
            assert!(part.bytes.len() <= PART && whole.is_none());
            whole = assembler.push(part).unwrap();
        }
        assert_eq!(whole, Some(effect));
    }

    #[test]
    fn an_effect_beyond_the_cap_is_refused_on_both_sides() {
        assert!(matches!(patch(MAX_EFFECT / 2).to_parts(), Err(EffectError::TooLarge)));
        let mut assembler = Assembler::default();
        let mut pushed = (0..)
            .map(|index| assembler.push(Part { index, last: false, bytes: vec![0; PART] }).map(|_| index));
        let refused = pushed.find(Result::is_err).unwrap();
        assert!(matches!(refused, Err(EffectError::TooLarge)));
    }

    #[test]
    fn parts_out_of_order_are_refused() {
        let mut parts = patch(2 * PART).to_parts().unwrap();
        parts.swap(0, 1);
        let error = Assembler::default().push(parts.remove(0)).unwrap_err().to_string();
        assert_eq!(error, "part 1 of a change came instead of part 0");
    }
}
