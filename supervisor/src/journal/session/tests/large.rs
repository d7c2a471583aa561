//! Tests of logs with lines that are too long, of files that are no logs, and of a disk that is full during a sync.

use std::fs;
use std::io::{self, Read};

use ipc::id::{AgentId, EventId};
use protocol::event::{EventKind, ObservedBy};

use super::{Scratch, said};
use crate::journal::session::{Fault, LONGEST_LINE, LogError, SessionLog, load, load_from, rebuild};

fn log(events: usize) -> Scratch {
    let mut scratch = Scratch::new();
    (0..events).for_each(|number| drop(scratch.append("1", said(&number.to_string()))));
    scratch
}

fn reopened(path: &std::path::Path) -> Result<usize, LogError> {
    SessionLog::reopen(path, &mut |_, _| ()).map(|reopened| reopened.needed.events.len())
}

#[test]
fn a_line_that_is_too_long_is_named_and_left_out_wherever_it_stands() {
    let whole = log(4).bytes();
    let second = memchr::memchr_iter(b'\n', &whole).nth(1).unwrap() + 1;
    let length = LONGEST_LINE as u64 + 1;
    for (from, faults, events) in [
        (second, vec![Fault::Long { line: 3, bytes: length }, Fault::Chain { line: 4 }], 4),
        (whole.len(), vec![Fault::Long { line: 5, bytes: length }], 4),
    ] {
        let (before, behind) = whole.split_at(from);
        let log = before.chain(io::repeat(b'x').take(length)).chain(&b"\n"[..]).chain(behind);
        let loaded = load_from(log, &mut |_| (), |event| event).unwrap();
        assert_eq!((loaded.faults.as_slice(), loaded.tree.len()), (faults.as_slice(), events));
        assert!(!loaded.is_intact());
    }
}

#[test]
fn a_long_line_without_an_end_is_a_torn_one() {
    let scratch = log(2);
    let (path, bytes) = (scratch.log.path().with_file_name("s-2.jsonl"), scratch.bytes());
    let file = fs::File::create(&path).unwrap();
    io::copy(&mut bytes.chain(io::repeat(b'x').take(LONGEST_LINE as u64 + 9)), &mut &file).unwrap();
    assert_eq!(load(&path).unwrap().faults, [Fault::Torn { line: 3 }]);
    assert_eq!(reopened(&path).unwrap(), 2);
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_session_does_not_go_on_behind_a_line_that_is_too_long() {
    let scratch = log(2);
    let path = scratch.log.path().with_file_name("s-2.jsonl");
    let file = fs::File::create(&path).unwrap();
    let long = io::repeat(b'x').take(LONGEST_LINE as u64 + 1).chain(&b"\n"[..]);
    io::copy(&mut scratch.bytes().chain(long), &mut &file).unwrap();
    let error = reopened(&path).unwrap_err().to_string();
    assert!(error.contains("line 3 has 83886081 bytes, more than any line of a log"), "{error}");
}

#[test]
fn an_event_that_would_be_too_long_a_line_is_not_written() {
    let mut scratch = log(1);
    let before = scratch.bytes();
    let too_long = said(&"x".repeat(LONGEST_LINE));
    let error = scratch.log.append(&AgentId::root(), ObservedBy::Supervisor, too_long).unwrap_err();
    assert!(matches!(error, LogError::Long { id: EventId(2), .. }), "{error}");
    assert_eq!(scratch.bytes(), before);
    assert_eq!(scratch.append("1", EventKind::ModelRequested { step: 1, attempt: 1 }).id, EventId(2));
    assert_eq!(rebuild(&scratch.bytes()).faults, []);
}

#[test]
fn a_file_that_is_no_log_has_a_bounded_number_of_faults() {
    let loaded = rebuild("x\n".repeat(20_000).as_bytes());
    // No line of the file is an event or has a digest.
    assert_eq!(loaded.faults.len(), 10_001);
    assert_eq!(loaded.faults.last(), Some(&Fault::More { count: 30_000 }));
}

fn unsynced(log: &SessionLog) -> LogError {
    let error = log.sync().unwrap_err();
    assert!(matches!(&error, LogError::Sync { source, .. } if source.kind() == io::ErrorKind::StorageFull));
    error
}

#[test]
fn lines_that_a_full_disk_could_not_take_in_are_written_once_more() {
    let Scratch { state: _state, log } = log(0);
    let mut log = log.holding_lines();
    let add = |log: &mut SessionLog| drop(log.append(&AgentId::root(), ObservedBy::Supervisor, said("x")));
    add(&mut log);
    log.sync().unwrap();
    let synced = fs::read(log.path()).unwrap();
    let mut log = log.unsynced_for(1);
    add(&mut log);
    add(&mut log);
    let error = unsynced(&log);
    // The kernel reports the error once. Another sync would succeed although the lines are lost.
    let again = unsynced(&log);
    assert!(log.take_back(&error).unwrap() && log.is_full() && log.last_safe() == EventId(1));
    assert_eq!(fs::read(log.path()).unwrap(), synced);
    // Events that are added meanwhile come after the lines in memory.
    add(&mut log);
    log.write_held().unwrap();
    log.sync().unwrap();
    let loaded = load(log.path()).unwrap();
    assert_eq!((loaded.faults.as_slice(), loaded.tree.len()), (&[][..], 4));
    assert!(log.take_back(&again).unwrap() && !log.is_full(), "there is nothing to write again");
}

#[test]
fn lines_that_are_not_held_or_too_many_stay_in_the_file() {
    let mut log = log(3).log.unsynced_for(1);
    let error = unsynced(&log);
    assert!(!log.take_back(&error).unwrap(), "nobody waits for space");
    let Scratch { state: _state, log } = self::log(0);
    let mut log = log.holding_lines().unsynced_for(1);
    for _ in 0..3 {
        log.append(&AgentId::root(), ObservedBy::Supervisor, said(&"x".repeat(9 << 20))).unwrap();
    }
    let error = unsynced(&log);
    assert!(!log.take_back(&error).unwrap() && !log.is_full());
}
