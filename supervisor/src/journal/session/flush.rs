//! Syncs a log to the disk on a separate thread. One sync serves several requests.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use tokio::sync::oneshot;

use super::LogError;
use super::durable::Durable;

/// Receives the result of a sync. The sync includes all lines that were appended before it was requested.
pub type Flushed = oneshot::Receiver<Result<(), LogError>>;

type Wish = oneshot::Sender<Result<(), LogError>>;

/// Requests syncs of a log (`fdatasync(2)`), which another thread makes while the log is written. One sync serves all
/// requests that arrived before it began.
#[derive(Debug)]
pub struct Flusher {
    file: Result<File, io::ErrorKind>,
    path: PathBuf,
    durable: Arc<Durable>,
    wishes: Option<mpsc::Sender<Wish>>,
}

impl Flusher {
    pub(super) fn new(file: io::Result<File>, path: PathBuf, durable: Arc<Durable>) -> Self {
        Self { file: file.map_err(|error| error.kind()), path, durable, wishes: None }
    }

    pub fn flush(&mut self) -> Flushed {
        let (waiting, flushed) = oneshot::channel();
        match self.wishes() {
            // If the thread has ended, the request is dropped, and its receiver gets an error.
            Ok(wishes) => drop(wishes.send(waiting)),
            Err(error) => drop(waiting.send(Err(error))),
        }
        flushed
    }

    fn wishes(&mut self) -> Result<mpsc::Sender<Wish>, LogError> {
        if let Some(wishes) = &self.wishes {
            return Ok(wishes.clone());
        }
        let path = self.path.clone();
        let failed = |source: io::Error| LogError::Sync { path: self.path.clone(), source };
        let file = self.file.as_ref().map_err(|kind| failed((*kind).into()))?.try_clone().map_err(failed)?;
        let (wishes, inbox) = mpsc::channel();
        let durable = Arc::clone(&self.durable);
        let serve = move || serve(&file, &path, &durable, &inbox);
        std::thread::Builder::new().name("log".to_owned()).spawn(serve).map_err(failed)?;
        self.wishes = Some(wishes.clone());
        Ok(wishes)
    }
}

fn serve(file: &File, path: &Path, durable: &Durable, wishes: &mpsc::Receiver<Wish>) {
    while let Ok(first) = wishes.recv() {
        let waiting: Vec<_> = std::iter::once(first).chain(wishes.try_iter()).collect();
        let synced = durable.sync(file);
        for waiting in waiting {
            let told = synced.as_ref().map(|&()| ()).map_err(|error| LogError::Sync {
                path: path.to_owned(),
                source: error
                    .raw_os_error()
                    .map_or_else(|| error.kind().into(), io::Error::from_raw_os_error),
            });
            // The receiver may have been dropped.
            let _ = waiting.send(told);
        }
    }
}
