//! Texts that the kernel writes anew for each reader, as in `/proc`.
//!
//! Such a file does not say how long it is: `std::fs::read` would begin with a few bytes, and need several calls for the status of a
//! thread, which is read on the way of many answers.

use std::fs::File;
use std::io::{Read, Result};

/// More than most of these files have.
const USUAL: usize = 4096;

/// Reads such a file as a whole.
pub(super) fn read(path: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL);
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The same as text, but for the names in it: those of threads and files hold any bytes, and the kernel cuts the former after the fifteenth.
pub(super) fn read_string(path: &str) -> Result<String> {
    read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
