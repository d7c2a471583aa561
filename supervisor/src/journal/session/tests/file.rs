use std::os::unix::fs::{PermissionsExt, symlink};

use ipc::id::{AgentId, CallId, ConversationId, EventId};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use protocol::event::{EventKind, ObservedBy, ToolKind};
use serde_json::value::RawValue;

use super::{Scratch, said};
use crate::journal::session::chain::{GENESIS, close};
use crate::journal::session::{LogError, SessionLog, load};

fn mode(path: &std::path::Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn log_and_directory_are_private() {
    let scratch = Scratch::new();
    assert_eq!(mode(scratch.log.path()), 0o600);
    assert_eq!(mode(&scratch.state.path().join("sessions")), 0o700);
}

#[test]
fn open_directory_is_closed() {
    let state = tempfile::tempdir().unwrap();
    let sessions = state.path().join("sessions");
    std::fs::create_dir(&sessions).unwrap();
    std::fs::set_permissions(&sessions, PermissionsExt::from_mode(0o755)).unwrap();
    SessionLog::create(state.path(), &"s".into()).unwrap();
    assert_eq!(mode(&sessions), 0o700);
}

#[test]
fn log_that_exists_is_never_taken() {
    let scratch = Scratch::new();
    let error = SessionLog::create(scratch.state.path(), &"s-1".into()).unwrap_err();
    let LogError::Create { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.raw_os_error(), Some(libc::EEXIST));
}

#[test]
fn links_are_not_followed() {
    let state = tempfile::tempdir().unwrap();
    let target = state.path().join("target");
    std::fs::create_dir(&target).unwrap();
    let sessions = state.path().join("sessions");
    symlink(&target, &sessions).unwrap();
    let error = SessionLog::create(state.path(), &"s".into()).unwrap_err();
    assert!(matches!(error, LogError::Directory { .. }), "{error}");

    std::fs::remove_file(&sessions).unwrap();
    std::fs::create_dir(&sessions).unwrap();
    symlink(target.join("x"), sessions.join("s.jsonl")).unwrap();
    let error = SessionLog::create(state.path(), &"s".into()).unwrap_err();
    assert!(matches!(error, LogError::Create { .. }), "{error}");
    assert!(!target.join("x").exists());
}

#[test]
fn id_that_is_no_file_name_is_refused() {
    let state = tempfile::tempdir().unwrap();
    for id in ["", "../x", "a/b", ".", "a\0", &"x".repeat(65)] {
        let error = SessionLog::create(state.path(), &ConversationId::from(id)).unwrap_err();
        assert!(matches!(error, LogError::Id(_)), "{id}: {error}");
    }
    assert!(!state.path().join("sessions").exists());
}

#[test]
fn ids_and_parents_follow_each_agent() {
    let mut scratch = Scratch::new();
    let events = [
        scratch.append("1", said("a")),
        scratch.append("1", said("b")),
        scratch.append("1.1", said("c")),
        scratch.append("1", said("d")),
        scratch.append("1.1", said("e")),
    ];
    let parents = events.map(|event| (event.id.0, event.parent.map_or(0, |parent| parent.0)));
    assert_eq!(parents, [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3)]);
}

/// Tests a full disk, which `RLIMIT_FSIZE` simulates: write(2) writes what fits, then fails. The limit applies to the
/// whole process, so the test runs again in a child process.
#[test]
fn full_disk_is_an_error_and_leaves_whole_lines() {
    if std::env::var_os("BAILIWICK_TEST_CHILD").is_some() {
        return fill_the_disk();
    }
    // SIGXFSZ would end the process. An ignored signal stays ignored across execve(2), and the write fails with EFBIG.
    let status = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "journal::session::tests::file::full_disk_is_an_error_and_leaves_whole_lines",
            "--nocapture",
        ])
        .env("BAILIWICK_TEST_CHILD", "1")
        .output()
        .unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
    assert!(String::from_utf8_lossy(&status.stdout).contains("1 passed"), "the child did run the test");
}

fn fill_the_disk() {
    let mut scratch = Scratch::new();
    scratch.append("1", said("first"));
    let whole = scratch.bytes();
    let (soft, hard) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();

    setrlimit(Resource::RLIMIT_FSIZE, whole.len() as u64 + 100, hard).unwrap();
    let error =
        scratch.log.append(&AgentId::root(), ObservedBy::Supervisor, said(&"x".repeat(500))).unwrap_err();
    setrlimit(Resource::RLIMIT_FSIZE, soft, hard).unwrap();

    let LogError::Append { id, last, source, .. } = error else { panic!("{error}") };
    assert_eq!((id, last, source.raw_os_error()), (EventId(2), EventId(1), Some(libc::EFBIG)));
    assert_eq!(scratch.bytes(), whole, "half a line is left");

    let event = scratch.append("1", said("second"));
    assert_eq!(event.id, EventId(2), "the event that was not written does not count");
    let loaded = load(scratch.log.path()).unwrap();
    assert_eq!((loaded.faults.len(), loaded.tree.len()), (0, 2));
}

#[test]
fn every_append_is_in_the_file_at_once() {
    let mut scratch = Scratch::new();
    for number in 1..=50 {
        scratch.append("1", EventKind::ModelRequested { step: number, attempt: 1 });
        assert_eq!(load(scratch.log.path()).unwrap().tree.len(), number as usize);
    }
    scratch.log.sync().unwrap();
}

/// Tests an event that cannot be encoded: its numeric key becomes invalid JSON when secrets are masked.
#[test]
fn an_event_that_cannot_be_encoded_is_not_written_and_does_not_count() {
    const KEY: &str = "123456789012";
    let Scratch { state, log } = Scratch::new();
    let mut scratch = Scratch { state, log: log.without(Some(KEY.into())) };
    scratch.append("1", said("first"));
    let whole = scratch.bytes();
    let call = |input: String| EventKind::ToolCallStarted {
        call: CallId(1),
        tool_use: "t".into(),
        name: "n".to_owned(),
        kind: ToolKind::Other,
        locations: vec![],
        input: RawValue::from_string(input).unwrap(),
    };
    let number = call(format!(r#"{{"n":{KEY}}}"#));
    let error = scratch.log.append(&AgentId::root(), ObservedBy::Supervisor, number).unwrap_err();
    assert!(error.to_string().starts_with("event 2 cannot be written as JSON: "), "{error}");
    assert!(matches!(error, LogError::Encode { id: EventId(2), .. }), "{error:?}");
    assert_eq!(scratch.bytes(), whole, "nothing of it is written");
    assert_eq!(scratch.append("1", call(format!(r#"{{"n":"{KEY}"}}"#))).id, EventId(2));
    let loaded = load(scratch.log.path()).unwrap();
    assert_eq!((loaded.faults.len(), loaded.tree.len()), (0, 2));
}

#[test]
fn a_log_of_a_session_whose_name_leads_elsewhere_does_not_go_on() {
    let mut scratch = Scratch::new();
    scratch.append("1", said("a"));
    let text = String::from_utf8(scratch.bytes()).unwrap().replace(r#""s-1""#, r#""../../s-1""#);
    // The chain of this forged line is valid.
    let mut line = text.rsplit_once(r#","prev""#).unwrap().0.as_bytes().to_vec();
    close(&mut line, GENESIS);
    line.push(b'\n');
    let path = scratch.state.path().join("sessions/forged.jsonl");
    std::fs::write(&path, line).unwrap();
    assert!(load(&path).unwrap().faults.is_empty());
    let error = SessionLog::reopen(&path, &mut |_, _| ()).unwrap_err();
    assert!(matches!(error, LogError::Id(_)), "{error}");
}

#[test]
fn a_log_that_is_done_with_is_open_to_others_although_a_copy_of_its_descriptor_is_left() {
    let mut scratch = Scratch::new();
    scratch.append("1", said("a"));
    let path = scratch.log.path().to_owned();
    let reopen = || SessionLog::reopen(&path, &mut |_, _| ());
    let held = reopen().unwrap_err();
    assert!(matches!(held, LogError::Held { holder: Some(_), .. }), "{held}");
    let copy = scratch.log.flusher();
    let Scratch { log, state: _state, .. } = scratch;
    drop(log);
    reopen().unwrap();
    drop(copy);
}
