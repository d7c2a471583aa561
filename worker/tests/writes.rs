//! Tests of `write_file`, `edit_file`, and of the preparation and writing of changes, on real files.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use ipc::effect::{Effect, FileEffect, FileState, Patch};
use ipc::message::{ToWorker, Work};
use ipc::tool::{ToolErrorKind, ToolOutput, WrittenFile};
use support::{Worker, command, edit_file, hello, write_file};

/// Test case: a file's bytes, an edit (old and new text), and the bytes after it.
type EditOfBytes = (&'static [u8], (&'static str, &'static str), &'static [u8]);

type Change = &'static dyn Fn(&Worker);

fn written(output: ToolOutput) -> WrittenFile {
    match output {
        ToolOutput::Written(mut written) => written.files.remove(0),
        other => panic!("{other:?}"),
    }
}

fn mode(worker: &Worker, path: &str) -> u32 {
    worker.project.join(path).metadata().unwrap().mode() & 0o7777
}

#[test]
fn write_file_makes_files_and_their_directories() {
    let mut worker = Worker::new();
    let file = written(worker.run(write_file("new/deep/ä.txt", "grün\n")).unwrap());
    assert_eq!(
        (file.created, file.bytes, file.path.as_path()),
        (true, 6, &*worker.project.join("new/deep/ä.txt"))
    );
    assert_eq!(worker.bytes("new/deep/ä.txt"), "grün\n".as_bytes());
    assert_eq!(
        mode(&worker, "new/deep/ä.txt") & 0o7133,
        0,
        "no file is made executable or writable for others"
    );
    let file = written(worker.run(write_file("new/deep/ä.txt", "")).unwrap());
    assert_eq!((file.created, file.bytes), (false, 0));
    assert_eq!(worker.names(), ["new"]);
}

#[test]
fn permission_bits_survive_a_write_and_an_edit() {
    let mut worker = Worker::new();
    for bits in [0o755, 0o600, 0o644, 0o640] {
        worker.write("tool", "#!/bin/sh\necho old");
        std::fs::set_permissions(worker.project.join("tool"), PermissionsExt::from_mode(bits)).unwrap();
        worker.run(edit_file("tool", &[("old", "new")])).unwrap();
        assert_eq!((mode(&worker, "tool"), worker.bytes("tool")), (bits, b"#!/bin/sh\necho new".to_vec()));
        worker.run(write_file("tool", "x")).unwrap();
        assert_eq!(mode(&worker, "tool"), bits);
    }
}

#[test]
fn an_edit_goes_to_the_target_of_a_link() {
    let mut worker = Worker::new();
    worker.write("real/file", "old");
    symlink("real/file", worker.project.join("link")).unwrap();
    symlink("real", worker.project.join("dir")).unwrap();
    worker.run(edit_file("link", &[("old", "new")])).unwrap();
    worker.run(edit_file("dir/file", &[("new", "newer")])).unwrap();
    assert_eq!(worker.bytes("real/file"), b"newer");
    assert!(worker.project.join("link").is_symlink());
}

#[test]
fn line_ends_marks_and_odd_bytes_are_kept() {
    let mut worker = Worker::new();
    let table: [EditOfBytes; 4] = [
        (b"a\r\nb\r\nc", ("a\nb", "x\ny"), b"x\r\ny\r\nc"),
        (b"last line", ("last", "the last"), b"the last line"),
        (b"\xef\xbb\xbfmark", ("mark", "m"), b"\xef\xbb\xbfm"),
        (b"\xff\xfe\xfd \xe4 word", ("\u{e4}", "e"), b""),
    ];
    for (old, edit, new) in table {
        worker.write("file", old);
        match worker.run(edit_file("file", &[edit])) {
            Ok(_) => assert_eq!(worker.bytes("file"), new),
            Err(error) => {
                assert!(new.is_empty(), "{error}");
                assert_eq!(worker.bytes("file"), old);
            }
        }
    }
    worker.write("latin", b"na\xefve caf\xe9 \x81\n");
    worker.run(edit_file("latin", &[("café", "thé")])).unwrap();
    assert_eq!(worker.bytes("latin"), b"na\xefve th\xe9 \x81\n");
}

#[test]
fn several_edits_happen_or_none() {
    let mut worker = Worker::new();
    worker.write("file", "one two three");
    let file = written(worker.run(edit_file("file", &[("one", "1"), ("three", "3")])).unwrap());
    assert_eq!((worker.bytes("file"), file.replacements), (b"1 two 3".to_vec(), 2));
    let error = worker.run(edit_file("file", &[("two", "2"), ("four", "4")])).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::NoUniqueMatch);
    assert!(error.message.starts_with("Edit 2 of 2:"), "{error}");
    assert_eq!(worker.bytes("file"), b"1 two 3");
}

#[test]
fn absent_and_ambiguous_text_is_refused_with_lines() {
    let mut worker = Worker::new();
    worker.write("file", "def total(values):\n    return sum(values)\n\nx = 1\nx = 1\n");
    let error = worker.run(edit_file("file", &[("x = 1", "y")])).unwrap_err();
    assert!(error.message.contains("2 times, at lines 4, 5;"), "{error}");
    let error = worker.run(edit_file("file", &[("return sum(value)", "y")])).unwrap_err();
    assert!(error.message.contains("     2\t    return sum(values)\n"), "{error}");
    let error = worker.run(edit_file("file", &[("  return  sum(values)", "y")])).unwrap_err();
    assert!(error.message.contains("Only white space differs"), "{error}");
}

#[test]
fn what_is_no_regular_file_is_not_written() {
    let mut worker = Worker::new();
    std::fs::create_dir(worker.project.join("dir")).unwrap();
    nix::unistd::mkfifo(&worker.project.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    worker.write("file", "x");
    for (path, kind) in [
        ("dir", ToolErrorKind::WrongKind),
        ("fifo", ToolErrorKind::WrongKind),
        ("/dev/null", ToolErrorKind::WrongKind),
        ("file/below", ToolErrorKind::WrongKind),
        ("none/../x", ToolErrorKind::InvalidArgument),
    ] {
        assert_eq!(worker.run(write_file(path, "y")).unwrap_err().kind, kind, "{path}");
    }
    assert_eq!(worker.run(edit_file("missing", &[("a", "b")])).unwrap_err().kind, ToolErrorKind::NotFound);
    assert_eq!(worker.names(), ["dir", "fifo", "file"]);
}

#[test]
fn preparation_changes_nothing_and_commit_does_exactly_that() {
    let mut worker = Worker::new();
    worker.write("file", "old\n");
    let large = "x".repeat(3 << 20);
    for call in [edit_file("file", &[("old", "new")]), write_file("made/large", &large)] {
        let before = worker.names();
        let effect = worker.prepare(call).unwrap();
        assert_eq!(worker.names(), before);
        worker.one_shot(&effect).unwrap();
        let Effect::Patch(patch) = effect else { panic!() };
        let file = &patch.files[0];
        assert_eq!(std::fs::read(file.path.as_path()).unwrap(), file.new.as_ref().unwrap().bytes);
    }
    assert_eq!(worker.bytes("file"), b"new\n");
}

#[test]
fn commit_refuses_a_file_that_changed_and_leaves_no_litter() {
    let mut worker = Worker::new();
    worker.write("file", "old");
    let edit = worker.prepare(edit_file("file", &[("old", "new")])).unwrap();
    let make = worker.prepare(write_file("made", "new")).unwrap();
    let changes: [(&str, Change); 4] = [
        ("other bytes", &|worker| worker.write("file", "odd")),
        ("a link", &|worker| {
            std::fs::remove_file(worker.project.join("file")).unwrap();
            worker.write("elsewhere", "old");
            symlink("elsewhere", worker.project.join("file")).unwrap();
        }),
        ("gone", &|worker| {
            std::fs::remove_file(worker.project.join("file")).unwrap();
        }),
        ("another mode", &|worker| {
            worker.write("file", "old");
            std::fs::set_permissions(worker.project.join("file"), PermissionsExt::from_mode(0o755)).unwrap();
        }),
    ];
    for (what, change) in changes {
        change(&worker);
        assert_eq!(worker.one_shot(&edit).unwrap_err().kind, ToolErrorKind::Changed, "{what}");
    }
    worker.write("made", "by someone else");
    assert_eq!(worker.one_shot(&make).unwrap_err().kind, ToolErrorKind::Changed);
    assert_eq!(worker.bytes("made"), b"by someone else");
    assert_eq!(worker.bytes("elsewhere"), b"old");
    assert_eq!(worker.names(), ["elsewhere", "file", "made"]);
}

#[test]
fn a_patch_of_several_files_is_refused_whole() {
    let worker = Worker::new();
    worker.write("a", "a");
    worker.write("b", "b");
    let state = |bytes: &[u8]| Some(FileState { bytes: bytes.to_vec(), mode: 0o644 });
    let file = |name: &str, old: &[u8], new| FileEffect {
        path: (&worker.project.join(name)).into(),
        old: state(old),
        new,
        replacements: 0,
    };
    let outdated =
        Effect::Patch(Patch { files: vec![file("a", b"a", state(b"A")), file("b", b"outdated", None)] });
    let fresh = Effect::Patch(Patch { files: vec![file("a", b"a", state(b"A")), file("b", b"b", None)] });
    assert_eq!(worker.one_shot(&outdated).unwrap_err().kind, ToolErrorKind::Changed);
    assert_eq!((worker.bytes("a"), worker.names()), (b"a".to_vec(), vec!["a".to_owned(), "b".to_owned()]));
    worker.one_shot(&fresh).unwrap();
    assert_eq!((worker.bytes("a"), worker.names()), (b"A".to_vec(), vec!["a".to_owned()]));
}

#[test]
fn reads_have_no_effect_to_prepare() {
    let mut worker = Worker::new();
    let error = worker.prepare(support::read_file("file")).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::InvalidArgument);
}

#[test]
fn a_worker_takes_one_effect_and_nothing_after_it() {
    for again in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let mut worker = Worker::start(command(), hello(&directory.path().canonicalize().unwrap()));
        let effect = worker.prepare(write_file("made", "new")).unwrap();
        worker.commit(&effect).unwrap();
        let other = worker.project.join("other");
        if again {
            let state = FileState { bytes: b"x".to_vec(), mode: 0o644 };
            let path = (&other).into();
            let file = FileEffect { path, old: None, new: Some(state), replacements: 0 };
            let call = worker.fresh_call();
            for part in Effect::Patch(Patch { files: vec![file] }).to_parts().unwrap() {
                worker.send(&ToWorker::Commit { call, part });
            }
        } else {
            worker.call(Work::Run(write_file("other", "x")));
        }
        let (code, said) = worker.end();
        assert_eq!(code, Some(1), "{said}");
        let what = if again {
            "a second Commit is not allowed now"
        } else {
            "a call after a Commit is not allowed now"
        };
        assert!(said.contains(what), "{said}");
        assert!(!other.exists());
    }
}

#[test]
fn a_write_tells_the_lines_that_changed() {
    let mut worker = Worker::new();
    let mut change = |call| written(worker.run(call).unwrap()).change.unwrap();
    let made = change(write_file("new.txt", "a\nb\n"));
    assert_eq!((made.first_line, made.old, made.new.as_str()), (1, None, "a\nb\n"));
    let over = change(write_file("new.txt", "a\nc\n"));
    assert_eq!((over.old.as_deref(), over.new.as_str()), (Some("a\nb\n"), "a\nc\n"));
    let long: String = (1..=20_000).fold(String::new(), |text, n| text + "line " + &n.to_string() + "\n");
    worker.write("long.txt", &long);
    let edited = written(worker.run(edit_file("long.txt", &[("line 9000\n", "")])).unwrap()).change.unwrap();
    assert_eq!((edited.first_line, edited.new.lines().count()), (8_997, 6));
    worker.write("bytes", b"\xe9t\xe9, one");
    let edited = written(worker.run(edit_file("bytes", &[("one", "two")])).unwrap());
    assert_eq!(edited.change, None, "no text");
}
