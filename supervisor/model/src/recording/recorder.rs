use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use secrecy::SecretString;
use serde::Serialize;

use super::Exchange;
use super::directory::{DirectoryError, RecordingDirectory};
use super::exchange::ExchangeHead;
use super::format::{Run, request_name};
use crate::secrets::Redactor;

/// Records the exchanges of a run. A failed write is reported and ends the recording, but not the run.
#[derive(Clone)]
pub struct Recorder(Arc<RecorderInner>);

struct RecorderInner {
    directory: RecordingDirectory,
    count: AtomicUsize,
    is_over: AtomicBool,
    complain: Box<dyn Fn(&str) + Send + Sync>,
}

impl Recorder {
    /// Begins a recording in an empty or new directory. `complain` is called once if writing fails later.
    pub fn create(
        path: &Path,
        complain: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, DirectoryError> {
        Ok(Self(Arc::new(RecorderInner {
            directory: RecordingDirectory::create(path)?,
            count: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            complain: Box::new(complain),
        })))
    }

    pub fn path(&self) -> &Path {
        self.0.directory.path()
    }

    pub fn describe(&self, run: &Run) {
        self.attempt(|| self.write_json("run.json", run));
    }

    /// Begins to record the next exchange, with its request. Returns `None` if an earlier write has failed.
    pub fn exchange(
        &self,
        head: ExchangeHead<'_>,
        body: &Bytes,
        secret: Option<SecretString>,
    ) -> Option<Exchange> {
        if self.is_over() {
            return None;
        }
        let number = self.0.count.fetch_add(1, Ordering::Relaxed) + 1;
        let mut masked = body.to_vec();
        Redactor::new(secret.clone()).mask(&mut masked);
        self.attempt(|| self.write(&request_name(number), &masked));
        Some(Exchange::new(self.clone(), number, &head, secret))
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::Relaxed)
    }

    pub(super) fn file(&self, name: &str) -> io::Result<File> {
        self.0.directory.file(name)
    }

    pub(super) fn write_json(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        self.write(name, &text)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.file(name)?.write_all(bytes)
    }

    /// Runs `write` unless an earlier write failed.
    pub(super) fn attempt(&self, write: impl FnOnce() -> io::Result<()>) {
        if self.is_over() {
            return;
        }
        if let Err(error) = write()
            && !self.0.is_over.swap(true, Ordering::Relaxed)
        {
            let path: PathBuf = self.path().to_owned();
            (self.0.complain)(&format!(
                "the recording in {} ends here: {error}; the run continues",
                path.display()
            ));
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recorder").field(&self.0.directory).finish()
    }
}
