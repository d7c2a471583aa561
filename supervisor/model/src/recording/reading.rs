use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::format::{FORMAT, Meta, RecordedChunk, ResponseMeta, Run, meta_name, request_name};
use super::{Ending, Reply};

#[derive(Debug)]
pub struct Recording {
    pub run: Run,
    pub exchanges: Vec<Recorded>,
}

#[derive(Debug)]
pub struct Recorded {
    pub number: usize,
    pub request: Bytes,
    pub(super) meta: Meta,
    /// The body of the response, or the part of it that arrived.
    body: Bytes,
}

#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{path}: {fault}")]
    Content { path: PathBuf, fault: String },
}

impl Recording {
    pub fn open(directory: &Path) -> Result<Self, RecordingError> {
        let run: Run = json(&directory.join("run.json"))?;
        if run.format != FORMAT {
            let fault =
                format!("the recording has format {}, and this version reads format {FORMAT}", run.format);
            return Err(RecordingError::Content { path: directory.join("run.json"), fault });
        }
        check_pictures(&run)
            .map_err(|fault| RecordingError::Content { path: directory.join("run.json"), fault })?;
        let numbers = numbers(directory)?;
        let exchanges = numbers.into_iter().map(|number| Recorded::open(directory, number));
        Ok(Self { run, exchanges: exchanges.collect::<Result<_, _>>()? })
    }

    /// Returns the path of the base URL, which begins the path of each request.
    pub fn prefix(&self) -> &str {
        let path = self.exchanges.first().map(|exchange| &exchange.meta.request);
        path.and_then(|request| request.path.strip_suffix(&request.endpoint)).unwrap_or_default()
    }
}

fn check_pictures(run: &Run) -> Result<(), String> {
    let mut images = run.task.iter().flat_map(|task| &task.images);
    images.try_for_each(picture::check).map_err(|error| format!("the picture {error}"))
}

fn numbers(directory: &Path) -> Result<Vec<usize>, RecordingError> {
    let failed = |source| RecordingError::File { path: directory.to_owned(), source };
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let number = name.to_str().and_then(|name| name.split('.').next()?.parse::<usize>().ok());
        found.extend(number);
    }
    match found.last() {
        // With a number that is far too large, the missing numbers are not listed.
        Some(last) if *last > found.len() => Ok((1..=found.len() + 1).collect()),
        last => Ok((1..=last.copied().unwrap_or(0)).collect()),
    }
}

impl Recorded {
    fn open(directory: &Path, number: usize) -> Result<Self, RecordingError> {
        let request = read(&directory.join(request_name(number)))?.into();
        let path = directory.join(meta_name(number));
        let meta: Meta = json(&path)?;
        let body = match &meta.response {
            None => Bytes::new(),
            Some(response) => body(directory, &path, response)?,
        };
        Ok(Self { number, request, meta, body })
    }

    /// Returns the recorded response in its chunks. If `timing`, they are sent at their recorded times.
    pub fn reply(&self, timing: bool) -> Reply {
        let Some(response) = &self.meta.response else { return Reply::hang_up() };
        let mut reply = Reply::new(response.status, Bytes::new());
        for (name, value) in &response.headers {
            reply = match name.as_str() {
                // A replay need not wait for a server.
                "retry-after" | "retry-after-ms" if !timing => reply,
                _ => reply.header(name, value),
            };
        }
        if !timing && response.status != 200 {
            reply = reply.header("retry-after-ms", "1");
        }
        let reply = reply.pieces(self.pieces(&response.chunks, timing));
        match self.meta.end {
            Ending::Whole => reply,
            Ending::Cut => reply.then_cut(),
            Ending::Left => reply.then_silence(),
        }
    }

    fn pieces(&self, chunks: &[RecordedChunk], timing: bool) -> Vec<(Duration, Bytes)> {
        let (mut rest, mut last) = (self.body.clone(), 0);
        let piece = |RecordedChunk(at, size): &RecordedChunk| {
            let wait = if timing { at.saturating_sub(last) } else { 0 };
            last = *at;
            (Duration::from_millis(wait), rest.split_to((*size).min(rest.len())))
        };
        chunks.iter().map(piece).collect()
    }
}

fn body(directory: &Path, meta: &Path, response: &ResponseMeta) -> Result<Bytes, RecordingError> {
    let plain = !response.body.contains('/') && response.body != "..";
    let content = |path: &Path, fault: String| RecordingError::Content { path: path.to_owned(), fault };
    if !plain {
        return Err(content(meta, format!("{:?} is not a file of this directory", response.body)));
    }
    let path = directory.join(&response.body);
    let bytes = read(&path)?;
    let expected: usize =
        response.chunks.iter().fold(0, |sum, RecordedChunk(_, size)| sum.saturating_add(*size));
    if bytes.len() != expected {
        let fault =
            format!("the file has {} bytes instead of {expected}: it was cut off or edited", bytes.len());
        return Err(content(&path, fault));
    }
    Ok(bytes.into())
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<T, RecordingError> {
    let parsed = serde_json::from_slice(&read(path)?);
    parsed.map_err(|error| RecordingError::Content { path: path.to_owned(), fault: error.to_string() })
}

/// Reads a regular file. Fails for a fifo, because reading it would block.
fn read(path: &Path) -> Result<Vec<u8>, RecordingError> {
    let failed = |source| RecordingError::File { path: path.to_owned(), source };
    let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let mut file = opened.map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("no regular file")));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}
