//! Reads the session log for the view of the log in the UI.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tui::{LogRow, LogRows};

/// Maximum number of events in the list. Older events are left out.
const MOST: usize = 20_000;

/// Maximum number of characters of an event's data in one row of the list.
const LONGEST: usize = 200;

/// Maximum size in bytes of an event that can be opened.
const MOST_OF_EVENT: u64 = 1 << 20;

/// The fields of a log line that a row of the list shows.
#[derive(Deserialize)]
struct LogLine<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    agent: Cow<'a, str>,
    time_ms: u64,
    #[serde(borrow)]
    data: &'a RawValue,
}

pub(super) fn rows(log: &Path) -> Result<LogRows, String> {
    read(log).map_err(|error| cannot(log, &error))
}

fn cannot(log: &Path, error: &io::Error) -> String {
    format!("cannot read the log {}: {error}", log.display())
}

fn read(log: &Path) -> io::Result<LogRows> {
    let mut file = BufReader::new(File::open(log)?);
    let (mut rows, mut left_out) = (VecDeque::new(), 0);
    let (mut at, mut began, mut line) = (0, None, Vec::new());
    loop {
        line.clear();
        let length = file.read_until(b'\n', &mut line)?;
        // A line without a line end is still being written.
        if length == 0 || line.last() != Some(&b'\n') {
            return Ok(LogRows { rows: rows.into(), left_out });
        }
        rows.push_back(row(&line, at, &mut began));
        if rows.len() > MOST {
            rows.pop_front();
            left_out += 1;
        }
        at += length as u64;
    }
}

fn row(line: &[u8], at: u64, began: &mut Option<u64>) -> LogRow {
    let Ok(LogLine { r#type, agent, time_ms, data }) = serde_json::from_slice(line) else {
        return LogRow { at, kind: "(not read)".to_owned(), ..LogRow::default() };
    };
    let began = *began.get_or_insert(time_ms);
    LogRow {
        at,
        after: Duration::from_millis(time_ms.saturating_sub(began)),
        agent: agent.into_owned(),
        kind: r#type.into_owned(),
        text: data.get().chars().take(LONGEST).collect(),
    }
}

pub(super) fn event(log: &Path, at: u64) -> Result<String, String> {
    let read = || {
        let mut file = BufReader::new(File::open(log)?);
        file.seek(SeekFrom::Start(at))?;
        let mut line = Vec::new();
        file.take(MOST_OF_EVENT).read_until(b'\n', &mut line)?;
        Ok(line)
    };
    let line: Vec<u8> = read().map_err(|error| cannot(log, &error))?;
    let pretty = serde_json::from_slice::<serde_json::Value>(&line)
        .and_then(|json| serde_json::to_string_pretty(&json));
    // A line that is too long, or is no JSON, is returned unchanged.
    Ok(pretty.unwrap_or_else(|_| String::from_utf8_lossy(&line).into_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_row_is_an_event_and_leads_to_all_of_it() {
        let place = tempfile::tempdir().unwrap();
        let log = place.path().join("s.jsonl");
        let line = |n: u64| {
            format!(r#"{{"id":{n},"time_ms":{n}000,"agent":"1","type":"notice","data":{{"n":{n}}}}}"#)
        };
        fs::write(&log, format!("{}\nno json\n{}\n{}", line(1), line(3), line(4))).unwrap();
        let LogRows { rows, left_out } = rows(&log).unwrap();
        let told: Vec<_> =
            rows.iter().map(|row| format!("{} {} {:?} {}", row.at, row.kind, row.after, row.text)).collect();
        insta::assert_snapshot!(told.join("\n"), @r#"
        0 notice 0ns {"n":1}
        67 (not read) 0ns 
        75 notice 2s {"n":3}
        "#);
        assert_eq!(left_out, 0);
        assert!(event(&log, rows[2].at).unwrap().contains("\"n\": 3"));
        assert_eq!(event(&log, rows[1].at).unwrap(), "no json\n");
    }

    #[test]
    fn a_long_log_is_listed_from_its_end() {
        let place = tempfile::tempdir().unwrap();
        let log = place.path().join("s.jsonl");
        fs::write(&log, "{}\n".repeat(MOST + 5)).unwrap();
        let LogRows { rows, left_out } = rows(&log).unwrap();
        assert_eq!((rows.len(), left_out, rows[0].at), (MOST, 5, 15));
        assert!(super::rows(&place.path().join("none")).unwrap_err().contains("cannot read the log"));
    }
}
