//! What the kernel writes anew for each reader, as in `/proc`.
//!
//! Such a file does not say how long it is. `std::fs::read` asks, is told nothing, and begins with a few bytes: several calls more for
//! the status of a thread, which is read on the way of many answers.

use std::fs::File;
use std::io::{ErrorKind, Read, Result};

/// More than most of these files have.
const USUAL: usize = 4096;

/// Reads such a file as a whole.
pub(super) fn read(path: &str) -> Result<Vec<u8>> {
    read_all(File::open(path)?)
}

/// The same as text, but for the names in it: those of threads and files hold any bytes, and the kernel cuts the former after the fifteenth.
pub(super) fn read_string(path: &str) -> Result<String> {
    read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn read_all(mut source: impl Read) -> Result<Vec<u8>> {
    let (mut bytes, mut length) = (vec![0; USUAL], 0);
    loop {
        if length == bytes.len() {
            bytes.resize(2 * length, 0);
        }
        match source.read(&mut bytes[length..]) {
            // Only this is the end: a record that did not fit makes a read short as well.
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives so many bytes at a time, after an interruption each.
    struct Slow {
        rest: Vec<u8>,
        each: usize,
        interrupted: bool,
    }

    impl Read for Slow {
        fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
            self.interrupted = !self.interrupted;
            if self.interrupted {
                return Err(ErrorKind::Interrupted.into());
            }
            let count = self.each.min(bytes.len()).min(self.rest.len());
            bytes[..count].copy_from_slice(&self.rest[..count]);
            self.rest.drain(..count);
            Ok(count)
        }
    }

    #[test]
    fn what_is_longer_than_usual_or_comes_in_pieces_is_read_whole() {
        for length in [0, 1, USUAL - 1, USUAL, USUAL + 1, 3 * USUAL] {
            for each in [1, 1000, USUAL, usize::MAX] {
                let rest: Vec<u8> = (0..=u8::MAX).cycle().take(length).collect();
                let slow = Slow { rest: rest.clone(), each, interrupted: false };
                assert_eq!(read_all(slow).unwrap(), rest, "{length} by {each}");
            }
        }
    }

    #[test]
    fn it_is_what_the_kernel_says() {
        assert_eq!(
            read_string("/proc/self/cmdline").unwrap(),
            std::fs::read_to_string("/proc/self/cmdline").unwrap()
        );
        assert!(read("/proc/self/none").is_err());
    }
}
