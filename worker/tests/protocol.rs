//! Tests that a worker ends after invalid bytes and after messages that are not allowed.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::fs::read_to_string;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::process::Child;

use ipc::codec;
use ipc::effect::Part;
use ipc::frame::{MAX_FRAME, VERSION, seal};
use ipc::id::{CallId, Generation};
use ipc::message::{CallOutcome, ToSupervisor, ToWorker, Work};
use support::{PATIENCE, Worker, command, hello, read_file};

fn framed(body: &[u8]) -> Vec<u8> {
    [&u32::try_from(body.len()).unwrap().to_le_bytes(), body].concat()
}

fn message(message: &ToWorker) -> Vec<u8> {
    framed(&seal(Generation(1), message).unwrap())
}

/// Sends bytes to a new worker. Returns the worker's exit code and standard error.
fn fed(bytes: &[u8]) -> (Option<i32>, String) {
    let mut child: Child = command().spawn().unwrap();
    // A worker that has already judged the first bytes does not read the rest.
    let _ = child.stdin.take().unwrap().write_all(bytes);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (child.wait().unwrap().code(), said)
}

#[test]
fn bad_bytes_end_the_worker_with_one_line_and_no_panic() {
    let project = std::env::temp_dir();
    let hello = message(&ToWorker::Hello(hello(&project)));
    let after_hello = |bytes: &[u8]| [&hello, bytes].concat();
    let call = ToWorker::Call { call: CallId(1), work: Work::Run(read_file("x")) };
    let unknown = [&[VERSION, 1, 0, 0, 0][..], &codec::encode(&99_u32).unwrap()].concat();
    let mut trailing = seal(Generation(1), &ToWorker::Drain).unwrap();
    trailing.push(0);
    let part =
        |index, last| ToWorker::Commit { call: CallId(1), part: Part { index, last, bytes: vec![7; 9] } };
    let long = ToWorker::Call { call: CallId(1), work: Work::Snapshot { contents: true } };
    let other = ToWorker::Commit { call: CallId(2), part: Part { index: 0, last: false, bytes: vec![7] } };
    let table: Vec<(&str, Vec<u8>, &str)> = vec![
        ("nothing", vec![], "the supervisor closed the pipe"),
        ("no hello", message(&call), "anything but Hello is not allowed now"),
        ("torn length", vec![1, 0], "stream ended inside a frame"),
        ("torn frame", hello[..9].to_vec(), "stream ended inside a frame"),
        ("torn later", after_hello(&message(&call)[..20]), "stream ended inside a frame"),
        ("oversized", after_hello(&u32::MAX.to_le_bytes()), "exceeds the limit of 4194304"),
        (
            "just oversized",
            after_hello(&u32::try_from(MAX_FRAME + 1).unwrap().to_le_bytes()),
            "exceeds the limit",
        ),
        ("empty frame", after_hello(&framed(&[])), "frame of 0 bytes has no header"),
        ("version", after_hello(&framed(&[9, 1, 0, 0, 0, 0])), "protocol version 9"),
        (
            "generation",
            after_hello(&framed(&seal(Generation(2), &ToWorker::Drain).unwrap())),
            "generation 2, expected 1",
        ),
        ("unknown message", after_hello(&framed(&unknown)), "cannot decode a message"),
        ("no payload", after_hello(&framed(&[VERSION, 1, 0, 0, 0])), "cannot decode a message"),
        ("trailing byte", after_hello(&framed(&trailing)), "cannot decode a message"),
        ("text", after_hello(b"GET / HTTP/1.1\r\n\r\n"), "exceeds the limit"),
        ("second hello", after_hello(&hello), "a second Hello is not allowed now"),
        (
            "a call after a commit",
            after_hello(&[message(&part(0, false)), message(&call)].concat()),
            "a call after a Commit is not allowed now",
        ),
        ("doubled call", after_hello(&[message(&long), message(&long)].concat()), "call 1 is already open"),
        (
            "second commit",
            after_hello(&[message(&part(0, false)), message(&other)].concat()),
            "a second Commit is not allowed now",
        ),
        (
            "part out of order",
            after_hello(&message(&part(1, false))),
            "part 1 of a change came instead of part 0",
        ),
        ("parts of no effect", after_hello(&message(&part(0, true))), "the change of call 1 is invalid"),
    ];
    for (what, bytes, part) in table {
        let (code, said) = fed(&bytes);
        assert_eq!(code, Some(1), "{what}: {said}");
        assert!(said.contains(part) && said.lines().count() == 1, "{what}: {said}");
    }
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    for arguments in
        [&[][..], &["--generation"], &["--generation", "x"], &["--generation", "1", "2"], &["--help"]]
    {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_bailiwick-worker"))
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]), "{arguments:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 1);
    }
}

#[test]
fn drain_ends_the_open_calls_first() {
    let mut worker = Worker::new();
    worker.write("file", "x");
    let calls = [worker.call(Work::Snapshot { contents: true }), worker.call(Work::Run(read_file("file")))];
    worker.send(&ToWorker::Drain);
    for call in calls {
        assert!(matches!(worker.all_of(call).2, CallOutcome::Done(_)));
    }
    assert_eq!(worker.receive(), ToSupervisor::Bye);
    assert_eq!(worker.end(), (Some(0), String::new()));
}

#[test]
fn a_cancelled_effect_of_which_parts_are_missing_has_an_outcome() {
    let mut worker = Worker::new();
    let call = worker.fresh_call();
    worker.send(&ToWorker::Commit { call, part: Part { index: 0, last: false, bytes: vec![1] } });
    worker.cancel(call);
    assert_eq!(worker.all_of(call).2, CallOutcome::Cancelled);
    // One that is unknown, because it has ended, has no second outcome.
    worker.cancel(call);
    worker.send(&ToWorker::Drain);
    assert_eq!(worker.receive(), ToSupervisor::Bye);
}

#[test]
fn a_worker_is_not_dumpable_and_idle_with_one_thread() {
    let mut worker = Worker::new();
    worker.write("file", "x");
    assert!(worker.read("file").is_ok());
    let status = read_to_string(format!("/proc/{}/status", worker.child.id())).unwrap();
    assert!(status.contains("\nThreads:\t1\n"), "{status}");
    if nix::unistd::geteuid().is_root() {
        let smaps = read_to_string(format!("/proc/{}/smaps_rollup", worker.child.id())).unwrap();
        let pss = smaps.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
        eprintln!("idle worker, this build: {} PSS", pss.trim());
    }
    // The files of a process that is not dumpable belong to root (proc(5)).
    let owner = std::fs::metadata(format!("/proc/{}/environ", worker.child.id())).unwrap().uid();
    assert_eq!(owner, 0);
}

#[test]
fn many_calls_each_have_one_outcome() {
    let mut worker = Worker::new();
    worker.write("file", "x\n");
    let calls: Vec<_> = (0..500).map(|_| worker.call(Work::Run(read_file("file")))).collect();
    for call in calls {
        assert!(matches!(worker.all_of(call).2, CallOutcome::Done(_)));
    }
    worker.send(&ToWorker::Drain);
    let last = worker.receive();
    assert_eq!(last, ToSupervisor::Bye, "within {PATIENCE:?}, and nothing before it");
}
