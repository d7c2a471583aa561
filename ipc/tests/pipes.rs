//! Tests that messages cross real pipes unchanged, and that invalid frames are rejected.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Cursor, Write};
use std::os::fd::OwnedFd;

use ipc::confinement::{
    Attempt, Bounds, BrokerReport, FullTierRefusal, FullTierStep, NoFullTier, RulesetReport, Tier,
};
use ipc::effect::{Effect, FileEffect, FileState, Part, Patch};
use ipc::frame::{self, FrameError, MAX_FRAME};
use ipc::id::{AgentId, CallId, Generation};
use ipc::message::{CallOutcome, Chunk, Hello, Leftovers, Ready, ToSupervisor, ToWorker, Work};
use ipc::pipe::{AsyncIncoming, AsyncOutgoing, FrameReader, Outgoing, async_pair};
use ipc::place::Place;
use ipc::refusal::{Act, Refusal, Target};
use ipc::rights::Rights;
use ipc::tool::{Access, ReadFile, ShellExec, ToolCall, ToolError, ToolErrorKind};
use proptest::prelude::*;

const GENERATION: Generation = Generation(2);

fn rights() -> Rights {
    Rights {
        read: vec!["/".into()],
        hidden: vec!["/home/me/.ssh".into()],
        write: vec!["/home/me/p".into()],
        ..Rights::default()
    }
}

fn down() -> Vec<ToWorker> {
    let hello = Hello {
        agent: AgentId::root(),
        project: b"/home/me/p\xff".to_vec().into(),
        temp: Some("/tmp/bw-1".into()),
        rights: rights(),
        tier: Tier::Floor,
        shell_init: None,
        leftovers: Some(Leftovers {
            places: vec!["src/lib.rs".into()],
            before_ns: 1_700_000_000_000_000_000,
        }),
    };
    let read = ToolCall::ReadFile(ReadFile {
        path: "src/lib.rs".into(),
        offset: Some(1),
        limit: None,
        inside: false,
    });
    let shell = ToolCall::ShellExec(ShellExec {
        command: "true".to_owned(),
        access: Access::Read,
        network: None,
        cwd: None,
        timeout_ms: Some(1000),
    });
    let patch = Effect::Patch(Patch {
        files: vec![FileEffect {
            path: "/home/me/p/a".into(),
            old: None,
            new: Some(FileState { bytes: b"hi\n".to_vec(), mode: 0o644 }),
            replacements: 0,
        }],
    });
    let part = patch.to_parts().unwrap().remove(0);
    vec![
        ToWorker::Hello(hello),
        ToWorker::Call { call: CallId(1), work: Work::Run(read) },
        ToWorker::Call { call: CallId(2), work: Work::Prepare(shell) },
        ToWorker::Commit { call: CallId(3), part },
        ToWorker::Cancel { call: CallId(2) },
        ToWorker::Drain,
    ]
}

fn up() -> Vec<ToSupervisor> {
    let error = ToolError { kind: ToolErrorKind::NotFound, message: "no".to_owned(), access: None };
    vec![
        ToSupervisor::Ready(Ready { pid: 7, version: "0.1.0".to_owned() }),
        ToSupervisor::Output { call: CallId(1), chunk: Chunk::Text(b"\xff\n".to_vec()) },
        ToSupervisor::Prepared { call: CallId(2), part: Part { index: 0, last: true, bytes: vec![1, 2] } },
        ToSupervisor::Outcome { call: CallId(1), outcome: CallOutcome::Failed(error) },
        ToSupervisor::Outcome { call: CallId(2), outcome: CallOutcome::Prepared },
        ToSupervisor::Bye,
    ]
}

fn reports() -> Vec<BrokerReport> {
    let refused = |act, object| {
        let program = "curl\u{1b}".to_owned();
        BrokerReport::Refused(Refusal { process: 9, program, act, object, errno: 101, count: 4, untold: 2 })
    };
    let refusal = FullTierRefusal { step: FullTierStep::MountProc, errno: Some(1) };
    let ruleset = RulesetReport {
        tier: Tier::Floor,
        landlock_abi: 7,
        rules: 12,
        seccomp_rules: 80,
        bounds: Bounds { processes: Some(4096), memory: None },
        no_full_tier: Some(NoFullTier { refusal: Some(refusal), detail: "x".to_owned() }),
        missing: vec!["y".to_owned()],
        attempts: vec![Attempt { act: "write".to_owned(), denied: true, errno: 13 }],
    };
    let to = "[2001:db8::1]:443".parse().unwrap();
    vec![
        BrokerReport::Started { pid: 7, ruleset },
        BrokerReport::Failed {
            code: 114,
            stage: "landlock".to_owned(),
            detail: "no".to_owned(),
            refusal: None,
        },
        BrokerReport::Ended { status: 137 },
        refused(Act::Connect, Target::Internet(to, Place::Elsewhere)),
        refused(Act::Connect, Target::Host { name: "a.example".parse().unwrap(), port: 80 }),
        refused(Act::Send, Target::Socket(b"/run/x\xff".to_vec().into())),
        refused(Act::Connect, Target::Abstract(b"a\0b".to_vec())),
        refused(Act::Change, Target::File("/etc/hosts".into())),
        refused(Act::Signal, Target::Process(1)),
        refused(Act::Use, Target::Object("semaphore set 3".to_owned())),
    ]
}

fn bytes_of<M: serde::Serialize>(messages: &[M]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for message in messages {
        let body = frame::seal(GENERATION, message).unwrap();
        bytes.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
        bytes.extend(body);
    }
    bytes
}

/// Compares encoded messages with bytes in the repository, so that no wire type changes without `frame::VERSION`.
#[test]
fn golden_frames_are_what_they_were() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/frames");
    for (name, bytes) in
        [("down.bin", bytes_of(&down())), ("up.bin", bytes_of(&up())), ("status.bin", bytes_of(&reports()))]
    {
        let path = format!("{directory}/{name}");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &bytes).unwrap();
        }
        let golden = std::fs::read(&path).unwrap();
        assert!(golden == bytes, "{name} differs: bump frame::VERSION, then run this test with BLESS=1");
    }
    let golden = std::fs::read(format!("{directory}/down.bin")).unwrap();
    let mut incoming = FrameReader::new(Cursor::new(golden), GENERATION);
    for message in down() {
        assert_eq!(incoming.receive().unwrap(), Some(message));
    }
    assert_eq!(incoming.receive().unwrap(), None);
    let golden = std::fs::read(format!("{directory}/status.bin")).unwrap();
    let mut incoming = FrameReader::new(Cursor::new(golden), GENERATION);
    for report in reports() {
        assert_eq!(incoming.receive().unwrap(), Some(report));
    }
    assert_eq!(incoming.receive().unwrap(), None::<BrokerReport>);
}

#[test]
fn the_two_ends_of_two_pipes_understand_each_other() {
    let (down_reader, down_writer) = std::io::pipe().unwrap();
    let (up_reader, up_writer) = std::io::pipe().unwrap();
    let worker = std::thread::spawn(move || {
        let mut incoming = FrameReader::new(down_reader, GENERATION);
        let mut outgoing = Outgoing::new(up_writer, GENERATION);
        for message in down() {
            assert_eq!(incoming.receive().unwrap(), Some(message));
        }
        for message in up() {
            outgoing.send(&message).unwrap();
        }
    });
    let mut incoming = FrameReader::new(up_reader, GENERATION);
    let mut outgoing = Outgoing::new(down_writer, GENERATION);
    for message in down() {
        outgoing.send(&message).unwrap();
    }
    for message in up() {
        assert_eq!(incoming.receive().unwrap(), Some(message));
    }
    worker.join().unwrap();
}

fn nonblocking() -> (tokio::net::unix::pipe::Receiver, tokio::net::unix::pipe::Sender) {
    let (reader, writer) = std::io::pipe().unwrap();
    (
        tokio::net::unix::pipe::Receiver::from_owned_fd(OwnedFd::from(reader)).unwrap(),
        tokio::net::unix::pipe::Sender::from_owned_fd(OwnedFd::from(writer)).unwrap(),
    )
}

#[tokio::test]
async fn the_asynchronous_ends_speak_the_same_bytes() {
    let (down_reader, down_writer) = nonblocking();
    let (up_reader, up_writer) = nonblocking();
    let worker = tokio::spawn(async move {
        let (mut incoming, mut outgoing) = async_pair(down_reader, up_writer, GENERATION);
        for message in down() {
            assert_eq!(incoming.receive().await.unwrap(), Some(message));
        }
        for message in up() {
            outgoing.send(message).await.unwrap();
        }
    });
    let (mut incoming, mut outgoing) = async_pair(up_reader, down_writer, GENERATION);
    for message in down() {
        outgoing.send(message).await.unwrap();
    }
    for message in up() {
        assert_eq!(incoming.receive().await.unwrap(), Some(message));
    }
    drop(outgoing);
    worker.await.unwrap();
    let end: Option<ToSupervisor> = incoming.receive().await.unwrap();
    assert_eq!(end, None);
}

#[tokio::test]
async fn bad_frames_are_refused_by_both_kinds_of_ends() {
    let good = bytes_of(&up());
    let mut wrong_version = good.clone();
    wrong_version[4] = 200;
    let mut wrong_generation = good.clone();
    wrong_generation[5] = 9;
    let mut unknown_variant = good.clone();
    unknown_variant[9] = 0xee;
    let oversized = u32::try_from(MAX_FRAME + 1).unwrap().to_le_bytes().to_vec();
    let cases = [
        (oversized, "frame of 4194305 bytes exceeds the limit of 4194304"),
        (vec![1, 0, 0, 0, 1], "frame of 1 bytes has no header"),
        (wrong_version, "frame of protocol version 200, expected 26"),
        (wrong_generation, "frame of generation 9, expected 2"),
        (unknown_variant, "cannot decode a message"),
        (good[..good.len() - 1].to_vec(), "stream ended inside a frame"),
        (good[..2].to_vec(), "stream ended inside a frame"),
    ];
    for (bytes, expected) in cases {
        let mut blocking: FrameReader<_, ToSupervisor> =
            FrameReader::new(Cursor::new(bytes.clone()), GENERATION);
        let error = loop {
            match blocking.receive() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("no error: {expected}"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains(expected), "{error}");
        let mut asynchronous: AsyncIncoming<_, ToSupervisor> = AsyncIncoming::new(&bytes[..], GENERATION);
        let error = loop {
            match asynchronous.receive().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("no error: {expected}"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_message_beyond_the_cap_is_not_sent() {
    let chunk = Chunk::Text(vec![0; MAX_FRAME]);
    let message = ToSupervisor::Output { call: CallId(1), chunk };
    let mut sink = AsyncOutgoing::new(Vec::new(), GENERATION);
    assert!(matches!(sink.send(message).await, Err(FrameError::Codec(_))));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut reader: FrameReader<_, ToWorker> = FrameReader::new(Cursor::new(&bytes), GENERATION);
        while let Ok(Some(_)) = reader.receive() {}
    }

    #[test]
    fn a_flipped_byte_never_panics(place in any::<prop::sample::Index>(), value in any::<u8>()) {
        let mut bytes = bytes_of(&down());
        let place = place.index(bytes.len());
        bytes[place] = value;
        let mut reader: FrameReader<_, ToWorker> = FrameReader::new(Cursor::new(&bytes), GENERATION);
        while let Ok(Some(_)) = reader.receive() {}
    }

    #[test]
    fn output_of_any_bytes_round_trips(text in proptest::collection::vec(any::<u8>(), 0..4000)) {
        let message = ToSupervisor::Output { call: CallId(9), chunk: Chunk::Text(text) };
        let mut buffer = Vec::new();
        {
            let mut outgoing = Outgoing::new(&mut buffer, GENERATION);
            outgoing.send(&message).unwrap();
        }
        buffer.flush().unwrap();
        let mut incoming = FrameReader::new(Cursor::new(buffer), GENERATION);
        prop_assert_eq!(incoming.receive().unwrap(), Some(message));
    }
}
