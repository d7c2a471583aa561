//! Files whose text the kernel generates for each reader, as in `/proc`. They report no size, so `std::fs::read` would
//! need several calls.

use std::fs::File;
use std::io::{Read, Result};

use nix::libc::pid_t;

/// Buffer size in bytes that suffices for most texts.
const USUAL: usize = 4096;

pub(super) fn read(path: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL);
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a text. Invalid bytes become U+FFFD: names hold any bytes, and the kernel cuts thread names after fifteen.
pub(in crate::mediate) fn read_string(path: &str) -> Result<String> {
    read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the name that a process gives itself (`proc_pid_comm(5)`).
pub(in crate::mediate) fn name(process: pid_t) -> String {
    let name = read(&format!("/proc/{process}/comm")).unwrap_or_default();
    let name = name.strip_suffix(b"\n").unwrap_or(&name);
    String::from_utf8_lossy(name).into_owned()
}
