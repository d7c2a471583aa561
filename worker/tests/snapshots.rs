#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use ipc::message::{CallOutcome, SnapshotEntry, SnapshotKind, Work};
use ipc::rights::Execution;
use ipc::tool::Ignored;
use support::{Worker, command, hello};

fn git(directory: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"];
    let status = Command::new("git").current_dir(directory).args(identity).args(arguments).output().unwrap();
    assert!(status.status.success(), "{status:?}");
}

fn names(entries: &[(SnapshotEntry, Vec<u8>)]) -> Vec<String> {
    entries.iter().map(|(entry, _)| entry.path.to_string()).collect()
}

const STAMPS: Work = Work::Snapshot { contents: false };
const CONTENTS: Work = Work::Snapshot { contents: true };

#[test]
fn a_repository_is_what_git_would_consider() {
    let mut worker = Worker::new();
    let project = worker.project.clone();
    git(&project, &["init", "-q"]);
    worker.write(".gitignore", "*.log\n/build/\n");
    worker.write(".ignore", "seen.txt\n");
    worker.write(".git/info/exclude", "private\n");
    for path in
        ["seen.txt", "kept.log", "lost.log", "build/tracked", "build/untracked", "private", "sub/new.txt"]
    {
        worker.write(path, path);
    }
    git(&project, &["add", "-f", "kept.log", "build/tracked", "seen.txt"]);
    worker.write("nested/file", "");
    git(&project.join("nested"), &["init", "-q"]);
    symlink("seen.txt", project.join("link")).unwrap();
    nix::unistd::mkfifo(&project.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::fs::remove_file(project.join("seen.txt")).unwrap();
    let (entries, notes) = worker.entries(STAMPS);
    assert_eq!(
        names(&entries),
        [".gitignore", ".ignore", "build/tracked", "kept.log", "link", "sub/new.txt"]
    );
    assert_eq!(notes, ["`nested` is a separate repository, and is left out."]);
    let first = ["build", "lost.log", "private"].map(Into::into).to_vec();
    assert_eq!(worker.ignored(), Ignored { count: 3, first });
}

#[test]
fn contents_modes_links_and_odd_names_are_exact() {
    let mut worker = Worker::new();
    let odd = OsStr::from_bytes(b"n\xff");
    let large: Vec<u8> = (0..3_000_000_u32).map(|index| index.to_le_bytes()[1]).collect();
    worker.write("large", &large);
    worker.write(odd, b"\0\xff");
    worker.write("tool", "#!");
    std::fs::set_permissions(worker.project.join("tool"), PermissionsExt::from_mode(0o755)).unwrap();
    symlink(odd, worker.project.join("link")).unwrap();
    let (entries, notes) = worker.entries(CONTENTS);
    assert_eq!(
        (names(&entries), notes),
        (vec!["large".into(), "link".into(), "n\u{fffd}".into(), "tool".into()], vec![])
    );
    let file = |size, executable: bool| SnapshotKind::File {
        mode: if executable { 0o755 } else { 0o644 },
        size,
        omitted: false,
    };
    let kinds: Vec<_> = entries.iter().map(|(entry, _)| entry.kind.clone()).collect();
    let link = SnapshotKind::Symlink(odd.into());
    assert_eq!(kinds, [file(3_000_000, false), link, file(2, false), file(2, true)]);
    let contents: Vec<_> = entries.iter().map(|(_, bytes)| bytes.as_slice()).collect();
    assert_eq!(contents, [&large[..], b"", b"\0\xff", b"#!"]);
    let metadata = worker.project.join("tool").metadata().unwrap();
    assert_eq!(entries[3].0.stamp.inode, metadata.ino());
    assert_eq!(entries[3].0.stamp.changed_ns, metadata.ctime() * 1_000_000_000 + metadata.ctime_nsec());
}

#[test]
fn too_large_a_file_has_an_entry_without_content() {
    let mut worker = Worker::new();
    let file = std::fs::File::create(worker.project.join("sparse")).unwrap();
    file.set_len(33 << 20).unwrap();
    let (entries, _) = worker.entries(CONTENTS);
    assert_eq!(entries[0].0.kind, SnapshotKind::File { mode: 0o644, size: 33 << 20, omitted: true });
    assert!(entries[0].1.is_empty());
}

#[test]
fn fetch_leaves_out_what_is_missing_or_beyond_a_link() {
    let mut worker = Worker::new();
    worker.write("a", "A");
    worker.write("real/b", "B");
    symlink("real", worker.project.join("dir")).unwrap();
    symlink("/etc/hostname", worker.project.join("out")).unwrap();
    let paths = ["a", "real/b", "missing", "dir/b", "../x", "/etc/hostname", "a/b", "", "out", "real"];
    let (entries, notes) = worker.entries(Work::Fetch { paths: paths.iter().map(Into::into).collect() });
    assert_eq!((names(&entries), notes), (vec!["a".into(), "real/b".into(), "out".into()], vec![]));
    assert_eq!((entries[1].1.as_slice(), entries[2].1.as_slice()), (&b"B"[..], &b""[..]));
}

#[test]
fn without_a_repository_the_own_ignore_file_counts() {
    let mut worker = Worker::new();
    worker.write(".gitignore", "node_modules\n");
    worker.write("node_modules/x", "");
    worker.write("a", "");
    assert_eq!(names(&worker.entries(STAMPS).0), [".gitignore", "a"]);
    assert_eq!(worker.ignored(), Ignored { count: 1, first: vec!["node_modules".into()] });
}

#[test]
fn where_git_cannot_be_asked_a_note_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let project = directory.path().canonicalize().unwrap();
    git(&project, &["init", "-q"]);
    let mut hello = hello(&project);
    hello.rights.exec = Execution::Denied;
    let mut worker = Worker::start(command(), hello);
    worker.write("a", "");
    let (entries, notes) = worker.entries(STAMPS);
    assert_eq!((names(&entries), notes.len()), (vec!["a".to_owned()], 1));
    assert!(
        notes[0].starts_with("Files that git tracks although they are ignored are not included"),
        "{notes:?}"
    );
}

#[test]
fn nothing_that_a_repository_configures_is_run() {
    let mut worker = Worker::new();
    let project = worker.project.clone();
    git(&project, &["init", "-q"]);
    worker.write("a", "");
    git(&project, &["add", "a"]);
    let hook = project.join("hook");
    worker.write("hook", format!("#!/bin/sh\ntouch {}/ran\n", project.display()));
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    git(&project, &["config", "core.fsmonitor", hook.to_str().unwrap()]);
    assert_eq!(names(&worker.entries(STAMPS).0), ["a", "hook"]);
    assert!(!project.join("ran").exists());
    git(&project, &["status"]);
    assert!(project.join("ran").exists(), "the control: an unconfined git does run it");
}

#[test]
fn a_tree_of_thousands_of_files_takes_well_under_a_second() {
    let mut worker = Worker::new();
    for index in 0..6_000 {
        worker.write(format!("d{:02}/f{index}", index % 60), "content\n");
    }
    let begun = Instant::now();
    let (entries, _) = worker.entries(CONTENTS);
    eprintln!("snapshot with contents of {} files: {:?}", entries.len(), begun.elapsed());
    assert_eq!(entries.len(), 6_000);
    assert!(entries.iter().all(|(_, content)| content == b"content\n"));
}

#[test]
fn a_snapshot_is_cancelled_while_it_is_sent() {
    let mut worker = Worker::new();
    for index in 0..2_000 {
        worker.write(format!("f{index}"), "");
    }
    let call = worker.call(CONTENTS);
    let _first = worker.next_of(call);
    worker.cancel(call);
    let (_, _, outcome) = worker.all_of(call);
    assert!(matches!(outcome, CallOutcome::Cancelled | CallOutcome::Done(_)), "{outcome:?}");
}
