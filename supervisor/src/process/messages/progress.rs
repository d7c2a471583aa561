//! A progress line for a person at a terminal while a large file is read.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Time after the start of reading at which the progress line appears.
const PATIENCE: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct ReadingProgress {
    began: Instant,
    is_seen: bool,
    percent: Option<u64>,
}

impl ReadingProgress {
    pub(crate) fn begin() -> Self {
        Self { began: Instant::now(), is_seen: io::stderr().is_terminal(), percent: None }
    }

    /// Updates the line after `read` of `whole` bytes were read.
    pub(crate) fn tell(&mut self, read: u64, whole: u64) {
        if !self.is_seen || self.began.elapsed() < PATIENCE {
            return;
        }
        let percent = read.saturating_mul(100).checked_div(whole).unwrap_or(100);
        if self.percent != Some(percent) {
            self.percent = Some(percent);
            // If standard error is closed, nobody can read the line.
            let _ = write!(io::stderr(), "\r{}", line(read, whole, percent));
        }
    }
}

impl Drop for ReadingProgress {
    fn drop(&mut self) {
        if self.percent.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(read: u64, whole: u64, percent: u64) -> String {
    format!("bailiwick: reading the log: {} of {} MiB, {percent}%", read >> 20, whole >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_the_bytes_that_were_read_and_those_that_there_are() {
        insta::assert_snapshot!(line(512 << 20, 1 << 30, 50), @"bailiwick: reading the log: 512 of 1024 MiB, 50%");
    }

    #[test]
    fn nothing_is_told_at_once() {
        let mut progress = ReadingProgress { is_seen: true, ..ReadingProgress::begin() };
        progress.tell(1, 2);
        assert_eq!(progress.percent, None);
    }
}
