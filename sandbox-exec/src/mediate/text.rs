//! Texts that the kernel generates for each reader, as in `/proc`.
//!
//! Such a file does not report its size: `std::fs::read` would start with a few bytes, and need several calls
//! for the status of a thread, which many answers need.

use std::fs::File;
use std::io::{Read, Result};

/// Buffer size in bytes that is enough for most of these files.
const USUAL: usize = 4096;

/// Reads such a file whole.
pub(super) fn read(path: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL);
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads such a file as text, lossily: names of threads and files hold any bytes, and the kernel cuts the
/// former after the fifteenth.
pub(super) fn read_string(path: &str) -> Result<String> {
    read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
