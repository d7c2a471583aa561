use std::fs;
use std::path::Path;
use std::time::SystemTime;

use ipc::effect::{DIRECTORY, LINK};
use ipc::id::{ConversationId, EventId};
use ipc::message::{Chunk, SnapshotEntry, SnapshotKind, Stamp};
use ipc::path::WirePath;

use super::*;
use crate::journal::changes::{Intake, ProjectPath, Snapshot, SnapshotLimits};

#[derive(Clone)]
enum Node<'a> {
    File(&'a [u8], u32),
    Link(&'a str),
}

type Project<'a> = Vec<(&'a str, Node<'a>)>;

fn path(path: &str) -> ProjectPath {
    WirePath::from(path).try_into().unwrap()
}

fn snapshot(project: &Project<'_>, only: Option<&[&str]>, time_ns: i64) -> Snapshot {
    let mut intake = match only {
        None => Intake::of_manifest(SnapshotLimits::default()),
        Some(_) => Intake::of_contents(tempfile::tempfile().unwrap(), SnapshotLimits::default()),
    };
    for (path, node) in project.iter().filter(|(path, _)| only.is_none_or(|only| only.contains(path))) {
        let kind = match node {
            Node::Link(target) => SnapshotKind::Symlink((*target).into()),
            Node::File(bytes, mode) => {
                SnapshotKind::File { mode: *mode, size: bytes.len() as u64, omitted: false }
            }
        };
        let stamp = Stamp { inode: 1, modified_ns: time_ns, changed_ns: time_ns };
        intake
            .accept(Chunk::Entries(vec![SnapshotEntry { path: (*path).into(), kind, stamp, born_ns: None }]))
            .unwrap();
        if let (Node::File(bytes, _), Some(_)) = (node, only) {
            intake.accept(Chunk::Content(bytes.to_vec())).unwrap();
        }
    }
    intake.finish().unwrap()
}

/// Makes a checkpoint of a project. The stamps of all files are the current time.
fn take(checkpoints: &mut Checkpoints, at: At, project: &Project<'_>) {
    let asked = SystemTime::now();
    let since = asked.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let now = i64::try_from(since.as_nanos()).unwrap();
    let manifest = snapshot(project, None, now);
    let wanted = checkpoints.wanted(&manifest);
    let names: Vec<String> = wanted.fetches().concat().iter().map(ToString::to_string).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let fetched = snapshot(project, Some(&names), now);
    checkpoints.take(at, asked, &manifest, &wanted, &fetched).unwrap();
}

fn said(id: u64) -> At {
    At::Messages(vec![EventId(id)])
}

fn open(state: &Path) -> Checkpoints {
    Checkpoints::open(state, &ConversationId::from("s")).unwrap()
}

fn file(text: &str) -> Node<'_> {
    Node::File(text.as_bytes(), 0o644)
}

fn restored(rewinding: &Rewinding) -> Vec<String> {
    rewinding.restored.iter().map(|restore| restore.path.to_string()).collect()
}

#[test]
fn checkpoints_are_the_same_when_they_are_read_again_and_a_torn_line_is_cut_off() {
    let state = tempfile::tempdir().unwrap();
    let mut first = open(state.path());
    take(&mut first, said(3), &vec![("a", file("1")), ("l", Node::Link("a"))]);
    take(&mut first, At::End, &vec![("a", file("2")), ("b", Node::File(b"\0", 0o755))]);
    let lines = state.path().join("checkpoints/s/looks.jsonl");
    let whole = fs::read(&lines).unwrap();
    fs::write(&lines, [&whole[..], b"{\"at\":\"end\",\"asked"].concat()).unwrap();
    let again = open(state.path());
    assert_eq!(fs::read(&lines).unwrap(), whole);
    let (first, again) = (first.rewinding(0, |_, _| false), again.rewinding(0, |_, _| false));
    assert_eq!(
        (restored(&first), &first.restored),
        (vec!["a".into(), "b".into(), "l".into()], &again.restored)
    );
}

#[test]
fn a_checkpoint_after_a_call_leaves_its_turn_the_agents_own() {
    let state = tempfile::tempdir().unwrap();
    let mut checkpoints = open(state.path());
    for (at, text) in [(said(3), "1"), (At::Call, "2"), (At::Call, "3"), (At::End, "4")] {
        take(&mut checkpoints, at, &vec![("a", file(text))]);
    }
    for checkpoints in [checkpoints, open(state.path())] {
        let rewinding = checkpoints.rewinding(0, |_, _| false);
        assert_eq!((restored(&rewinding), rewinding.left.len()), (vec!["a".to_owned()], 0));
    }
}

#[test]
fn a_content_that_was_changed_is_not_written_back() {
    let state = tempfile::tempdir().unwrap();
    let mut checkpoints = open(state.path());
    take(&mut checkpoints, said(3), &vec![("a", file("one"))]);
    take(&mut checkpoints, At::End, &vec![("a", file("two"))]);
    fs::write(state.path().join("checkpoints/s/contents"), "oneTWO").unwrap();
    let rewinding = checkpoints.rewinding(0, |_, _| false);
    let error = checkpoints.patches(&"/p".into(), &rewinding).unwrap_err().to_string();
    assert_eq!(error, "the saved copy of a file is damaged: it differs from its digest");
}

#[test]
fn what_changed_between_turns_is_somebody_elses_and_what_changed_in_them_is_not() {
    let state = tempfile::tempdir().unwrap();
    let mut checkpoints = open(state.path());
    take(&mut checkpoints, said(3), &vec![("agents", file("1")), ("theirs", file("1")), ("hook", file("1"))]);
    take(&mut checkpoints, At::End, &vec![("agents", file("2")), ("theirs", file("2")), ("hook", file("2"))]);
    take(&mut checkpoints, said(9), &vec![("agents", file("2")), ("theirs", file("3")), ("hook", file("2"))]);
    take(&mut checkpoints, At::End, &vec![("agents", file("4")), ("theirs", file("4")), ("hook", file("2"))]);
    take(
        &mut checkpoints,
        At::BeforeRewind,
        &vec![("agents", file("4")), ("theirs", file("4")), ("hook", file("2"))],
    );
    assert_eq!(
        (
            checkpoints.checkpoint_of(EventId(3)),
            checkpoints.checkpoint_of(EventId(5)),
            checkpoints.checkpoint_of(EventId(10))
        ),
        (Some(0), Some(2), None)
    );
    let rewinding = checkpoints.rewinding(0, |protected, _| *protected == path("hook"));
    assert_eq!(restored(&rewinding), ["agents"]);
    assert_eq!(rewinding.left, [(path("hook"), Why::Protected), (path("theirs"), Why::Foreign)]);
    // At the second message, the file `theirs` was already as it is now.
    let rewinding = checkpoints.rewinding(2, |_, _| false);
    assert_eq!(
        (restored(&rewinding), checkpoints.checkpoint_to_undo()),
        (vec!["agents".into(), "theirs".into()], None)
    );
}

#[test]
fn directories_go_when_nothing_is_left_in_them_and_kinds_change_in_two_steps() {
    let state = tempfile::tempdir().unwrap();
    let mut checkpoints = open(state.path());
    take(&mut checkpoints, said(3), &vec![("a", file("1")), ("d/kept", file("1")), ("l", Node::Link("a"))]);
    let after = vec![
        ("a/b/c", file("new")),
        ("d/e/f", file("new")),
        ("d/kept", file("1")),
        ("l", file("no link")),
        ("ro", Node::File(b"x", 0o444)),
    ];
    take(&mut checkpoints, At::End, &after);
    take(&mut checkpoints, At::BeforeRewind, &after);
    let patches = checkpoints.patches(&"/p".into(), &checkpoints.rewinding(0, |_, _| false)).unwrap();
    let mode = |state: &Option<ipc::effect::FileState>| match state {
        None => "-",
        Some(state) if state.mode == LINK => "link",
        Some(state) if state.mode == DIRECTORY => "directory",
        Some(_) => "file",
    };
    let rows = patches.iter().flat_map(|(patch, write)| {
        let row = move |file: &ipc::effect::FileEffect| {
            format!("{} {} > {} in {write:?}", file.path, mode(&file.old), mode(&file.new))
        };
        patch.files.iter().map(row)
    });
    insta::assert_snapshot!(rows.collect::<Vec<_>>().join("\n"), @r#"
    /p/a/b/c file > - in ["/p", "/p/a/b", "/p/d/e"]
    /p/d/e/f file > - in ["/p", "/p/a/b", "/p/d/e"]
    /p/l file > - in ["/p", "/p/a/b", "/p/d/e"]
    /p/ro file > - in ["/p", "/p/a/b", "/p/d/e"]
    /p/d/e directory > - in ["/p", "/p/a", "/p/d"]
    /p/a/b directory > - in ["/p", "/p/a", "/p/d"]
    /p/a directory > - in ["/p", "/p/a", "/p/d"]
    /p/a - > file in ["/p"]
    /p/l - > link in ["/p"]
    "#);
}

#[test]
fn old_checkpoints_go_with_their_sessions_and_beyond_the_bound() {
    let state = tempfile::tempdir().unwrap();
    let keep = ConversationId::from("present");
    fs::create_dir_all(state.path().join("sessions")).unwrap();
    for name in ["gone", "held", "old", "present"] {
        let mut checkpoints = Checkpoints::open(state.path(), &ConversationId::from(name)).unwrap();
        take(&mut checkpoints, said(1), &vec![("a", file("12345"))]);
        if name != "gone" {
            fs::write(state.path().join(format!("sessions/{name}.jsonl")), "").unwrap();
        }
    }
    let names = || {
        let entries = fs::read_dir(state.path().join("checkpoints")).unwrap().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let held = fs::File::open(state.path().join("sessions/held.jsonl")).unwrap();
    held.lock().unwrap();
    remove_old(state.path(), &keep, 5).unwrap();
    assert_eq!(names(), ["held", "old", "present"]);
    remove_old(state.path(), &keep, 4).unwrap();
    assert_eq!(names(), ["held", "present"]);
}

#[test]
fn a_name_that_leads_elsewhere_opens_copies_and_removes_nothing() {
    let state = tempfile::tempdir().unwrap();
    let outside = state.path().join("outside");
    fs::create_dir(&outside).unwrap();
    for name in ["looks.jsonl", "contents"] {
        fs::write(outside.join(name), "mine").unwrap();
    }
    for name in ["../outside", "", ".", "..", "a/b", "/etc", "a\u{0}b"] {
        let (session, other) = (ConversationId::from(name), ConversationId::from("s-2"));
        assert!(Checkpoints::open(state.path(), &session).is_err(), "{name:?}");
        assert!(
            copy(state.path(), &session, &other).is_err() && copy(state.path(), &other, &session).is_err()
        );
        assert!(remove(state.path(), name).is_err());
    }
    assert_eq!(fs::read_to_string(outside.join("contents")).unwrap(), "mine");
    assert!(!state.path().join("checkpoints").exists());
}

#[test]
fn beyond_the_room_of_a_session_nothing_is_fetched_and_nothing_fails() {
    let state = tempfile::tempdir().unwrap();
    let mut checkpoints = open(state.path());
    checkpoints.end = MOST_OF_A_SESSION - 4;
    let project = vec![("a", file("1234")), ("b", file("5678")), ("c", file(""))];
    let manifest = snapshot(&project, None, 1);
    assert_eq!(checkpoints.wanted(&manifest).fetches().concat(), ["a".into(), "c".into()]);
    checkpoints.written = MOST_OF_LINES;
    let wanted = checkpoints.wanted(&manifest);
    let fetched = snapshot(&project, Some(&["a", "c"]), 1);
    let error = checkpoints.take(At::End, SystemTime::now(), &manifest, &wanted, &fetched).unwrap_err();
    assert!(error.to_string().starts_with("too many changes in this session"), "{error}");
    assert!(checkpoints.is_empty());
}
