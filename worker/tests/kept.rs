//! Tests that the metadata of a file stays when its content is replaced, or that the loss is reported. The replacement
//! never permits more access than before.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::fs::{self, Permissions};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use ipc::tool::{ToolOutput, WrittenFile};
use nix::unistd::geteuid;
use sandbox_exec::system::file::inode_flags;
use support::{Worker, attribute, command, edit_file, hello, set_attribute as set, write_file};

const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";
const OTHER: u32 = 1_234;

/// Function that sets metadata that a new file would not have; false if this machine or user cannot set it.
type Prepare = fn(&Path) -> bool;

/// Returns an access control list with permissions of the owner, another user, the group, the mask, and others
/// (`linux/posix_acl_xattr.h`).
fn list([owner, user, group, mask, others]: [u16; 5]) -> Vec<u8> {
    let entries = [
        (1, owner, u32::MAX),
        (2, user, OTHER),
        (4, group, u32::MAX),
        (16, mask, u32::MAX),
        (32, others, u32::MAX),
    ];
    let bytes = entries
        .iter()
        .flat_map(|(tag, rights, who): &(u16, u16, u32)| {
            [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &who.to_le_bytes()].concat()
        })
        .collect::<Vec<_>>();
    [&2_u32.to_le_bytes()[..], &bytes].concat()
}

fn list_of(path: &Path) -> Vec<u8> {
    attribute(path, ACCESS).unwrap()[4..].chunks(8).map(|entry| entry[2]).collect()
}

fn flags(path: &Path) -> i32 {
    inode_flags(fs::File::open(path).unwrap().as_fd()).unwrap_or(0)
}

/// Returns the metadata that must stay the same.
fn nature(path: &Path) -> (u32, u32, u32, u64, i32, Vec<Option<Vec<u8>>>) {
    let metadata = path.metadata().unwrap();
    let named = [ACCESS, "user.k", "user.long"].map(|name| attribute(path, name)).to_vec();
    (metadata.uid(), metadata.gid(), metadata.mode(), metadata.nlink(), flags(path), named)
}

fn written(output: ToolOutput) -> WrittenFile {
    match output {
        ToolOutput::Written(mut written) => written.files.remove(0),
        other => panic!("{other:?}"),
    }
}

fn mode(path: &Path, bits: u32) {
    fs::set_permissions(path, Permissions::from_mode(bits)).unwrap();
}

const FILES: &[(&str, Prepare)] = &[
    ("a user beside the group", |file| set(file, ACCESS, &list([6, 6, 4, 6, 0]))),
    ("a group that may nothing", |file| set(file, ACCESS, &list([6, 4, 0, 4, 4]))),
    ("a list that is no wider", |file| set(file, ACCESS, &list([6, 0, 0, 0, 0]))),
    ("an attribute", |file| set(file, "user.k", b"v")),
    ("a long attribute", |file| set(file, "user.long", &[7; 2_000])),
    ("an empty attribute", |file| set(file, "user.k", b"")),
    ("another owner", |file| {
        mode(file, 0o666);
        chown(file, Some(OTHER), None).is_ok()
    }),
    ("another group", |file| chown(file, None, Some(OTHER)).is_ok()),
    ("a second name", |file| fs::hard_link(file, file.with_extension("second")).is_ok()),
    ("the directory's group is another", |file| {
        mode(file, 0o640);
        let directory = file.parent().unwrap();
        let done = chown(directory, None, Some(OTHER)).is_ok();
        mode(directory, 0o2775);
        done
    }),
    ("the directory gives new files a list", |file| {
        mode(file, 0o640);
        set(file.parent().unwrap(), DEFAULT, &list([7, 7, 7, 7, 5]))
    }),
    ("a flag", |file| {
        Command::new("chattr").arg("+d").arg(file).status().is_ok_and(|status| status.success())
    }),
    ("a sticky bit", |file| {
        mode(file, 0o1644);
        true
    }),
];

#[test]
fn what_a_file_is_stays() {
    for (what, prepare) in FILES {
        for is_edit in [true, false] {
            let mut worker = Worker::new();
            worker.write("d/f.txt", "one\n");
            let path = worker.project.join("d/f.txt");
            if !prepare(&path) {
                eprintln!("skipped: {what}: not here");
                continue;
            }
            let before = (nature(&path), path.metadata().unwrap().ino());
            let call = if is_edit {
                edit_file("d/f.txt", &[("one", "two")])
            } else {
                write_file("d/f.txt", "two\n")
            };
            let file = written(worker.run(call).unwrap());
            assert_eq!(worker.bytes("d/f.txt"), b"two\n", "{what}");
            assert_eq!((nature(&path), path.metadata().unwrap().ino()), before, "{what}");
            assert_eq!(file.notes.len(), usize::from(before.0.3 > 1), "{what}: {:?}", file.notes);
            assert!(worker.names() == ["d"] && !has_temporary(path.parent().unwrap()), "{what}");
        }
    }
}

fn has_temporary(directory: &Path) -> bool {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.into_iter().any(|name| name.to_string_lossy().starts_with(".bw-"))
}

#[test]
fn a_plain_file_is_still_replaced_at_once() {
    let mut worker = Worker::new();
    worker.write("f", "one");
    let reader = fs::File::open(worker.project.join("f")).unwrap();
    let file = written(worker.run(edit_file("f", &[("one", "two")])).unwrap());
    assert_eq!((file.notes, worker.bytes("f")), (vec![], b"two".to_vec()));
    assert_eq!(std::io::read_to_string(reader).unwrap(), "one", "a reader sees one or the other");
}

#[test]
fn every_name_of_a_file_has_the_new_content_and_that_is_told() {
    let mut worker = Worker::new();
    worker.write("a", "one");
    fs::hard_link(worker.project.join("a"), worker.project.join("b")).unwrap();
    let file = written(worker.run(edit_file("a", &[("one", "two, longer")])).unwrap());
    assert_eq!(worker.bytes("b"), b"two, longer");
    assert_eq!(file.notes, ["the file has 2 names (hard links), and all of them have the new content"]);
    worker.run(write_file("b", "3")).unwrap();
    assert_eq!(worker.bytes("a"), b"3");
}

#[test]
fn a_bit_that_a_write_takes_away_is_told() {
    for (bits, left, told) in [
        (0o4755, 0o755, "the file lost its set-user-ID bit, as every written file does"),
        (0o2755, 0o755, "the file lost its set-group-ID bit, as every written file does"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let project = directory.path().canonicalize().unwrap();
        let path = project.join("tool");
        fs::write(&path, "#!/bin/sh\n").unwrap();
        if geteuid().is_root() {
            for place in [&project, &path] {
                chown(place, Some(OTHER), Some(OTHER)).unwrap();
            }
        }
        mode(&path, bits);
        // Root may leave the bits as they are: the loss is an ordinary user's.
        let programs = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut worker = Worker::start(as_other(command(), programs.path()), hello(&project));
        let file = written(worker.run(edit_file("tool", &[("/bin/sh", "/bin/bash")])).unwrap());
        assert_eq!((path.metadata().unwrap().mode() & 0o7777, file.notes), (left, vec![told.to_owned()]));
    }
}

/// Returns the worker's command for another user: a copy, since only root may be able to read the build directory.
fn as_other(command: Command, programs: &Path) -> Command {
    if !geteuid().is_root() {
        return command;
    }
    mode(programs, 0o755);
    let copy = programs.join("worker");
    assert!(Command::new("cp").arg(command.get_program()).arg(&copy).status().unwrap().success());
    let mut other = Command::new(&copy);
    other.args(command.get_args()).uid(OTHER).gid(OTHER);
    other.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    other
}

/// Tests new files in a directory with a default access control list, which determines their permissions. The mode of
/// `write_file` must not add any.
#[test]
fn a_new_file_has_the_access_that_its_directory_gives() {
    for given in [[7, 7, 0, 7, 0], [7, 0, 0, 0, 0], [6, 4, 4, 4, 0]] {
        let mut worker = Worker::new();
        worker.write("d/.keep", "");
        let directory = worker.project.join("d");
        if !set(&directory, DEFAULT, &list(given)) {
            eprintln!("skipped: no lists here");
            return;
        }
        fs::File::create(directory.join("by-hand")).unwrap();
        worker.run(write_file("d/new", "x")).unwrap();
        let access = |name: &str| list_of(&directory.join(name));
        let (new, by_hand) = (access("new"), access("by-hand"));
        assert!(new.iter().zip(&by_hand).all(|(new, by_hand)| new & !by_hand == 0), "{new:?} {by_hand:?}");
    }
}

#[test]
fn a_file_that_is_a_mount_point_is_overwritten_in_place() {
    let directory = tempfile::tempdir().unwrap();
    let project = directory.path().canonicalize().unwrap();
    fs::write(project.join("behind"), "one\n").unwrap();
    fs::write(project.join("mounted"), "").unwrap();
    let mut unshare = Command::new("unshare");
    unshare.args(if geteuid().is_root() { &["-m"][..] } else { &["-mr"][..] });
    unshare.args(["sh", "-c", "mount --bind behind mounted && exec \"$@\"", "sh"]).current_dir(&project);
    let mut tried = Command::new("unshare");
    tried
        .args(unshare.get_args().map(ToOwned::to_owned))
        .arg("true")
        .current_dir(&project)
        .stderr(Stdio::null());
    if !tried.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: no mounts for this user");
        return;
    }
    let worker = command();
    unshare.arg(worker.get_program()).args(worker.get_args());
    unshare.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut worker = Worker::start(unshare, hello(&project));
    for (call, content) in [
        (edit_file("mounted", &[("one", "two and more")]), "two and more\n"),
        (write_file("mounted", "3\n"), "3\n"),
        (write_file("mounted", "four\n"), "four\n"),
    ] {
        let file = written(worker.run(call).unwrap());
        assert_eq!(file.notes, ["the file is a mount point, and was overwritten in place"]);
        assert_eq!(fs::read_to_string(project.join("behind")).unwrap(), content);
    }
    assert_eq!(worker.names(), ["behind", "mounted"]);
}
