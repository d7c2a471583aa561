//! A part of a log that is being written.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use ipc::event::SessionEvent;
use ipc::id::EventId;
use serde::Deserialize;

use super::LogError;
use super::scan::checked;

/// Events in a row.
#[derive(Debug)]
pub struct LogPage {
    /// The events.
    pub events: Vec<SessionEvent>,
    /// The last of them, if the log has more.
    pub next: Option<EventId>,
}

/// The number of an event, for those that are passed over.
#[derive(Deserialize)]
struct Numbered {
    id: EventId,
}

/// Reads the events behind one, at most so many, until they have so many bytes. The chain is not checked.
pub fn read_page(path: &Path, after: EventId, (most, bytes): (usize, usize)) -> Result<LogPage, LogError> {
    let failed = |source| LogError::Read { path: path.to_owned(), source };
    let mut log = BufReader::new(File::open(path).map_err(failed)?);
    let mut page = LogPage { events: Vec::new(), next: None };
    let (mut line, mut read) = (Vec::new(), 0);
    loop {
        line.clear();
        log.read_until(b'\n', &mut line).map_err(failed)?;
        // What has no end is not written yet.
        if !line.ends_with(b"\n") {
            return Ok(page);
        }
        let unreadable = |error| failed(std::io::Error::other(error));
        if serde_json::from_slice::<Numbered>(&line).map_err(unreadable)?.id <= after {
            continue;
        }
        let event = serde_json::from_slice(&line).map_err(unreadable)?;
        let event = checked(event).map_err(|error| failed(std::io::Error::other(error)))?;
        if page.events.len() >= most || read >= bytes {
            page.next = page.events.last().map(|event| event.id);
            return Ok(page);
        }
        read += line.len();
        page.events.push(event);
    }
}
