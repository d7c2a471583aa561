#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use ipc::tool::{EntryKind, ListDirectory, ReadFile, SearchFiles, ToolCall, ToolErrorKind, ToolOutput};
use support::{Worker, read_file};

fn list(worker: &mut Worker, path: &str, depth: Option<u32>) -> Vec<String> {
    let call = ToolCall::ListDirectory(ListDirectory { path: path.into(), depth });
    match worker.run(call).unwrap() {
        ToolOutput::Listing(listing) => listing
            .entries
            .iter()
            .map(|entry| format!("{} {:?} {}", entry.path, entry.kind, entry.size))
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn text_is_read_in_its_encoding() {
    let mut worker = Worker::new();
    let table: [(&[u8], &str, &str, u64, usize); 8] = [
        (b"", "", "UTF-8", 0, 0),
        (b"one\ntwo", "one\ntwo", "UTF-8", 2, 0),
        (b"one\r\ntwo\r\n", "one\r\ntwo\r\n", "UTF-8", 2, 0),
        ("\u{feff}grün →\n".as_bytes(), "grün →\n", "UTF-8", 1, 0),
        (b"\xff\xfea\0\n\0\xfc\0", "a\nü", "UTF-16LE", 2, 0),
        (b"\xfe\xff\0a\0\n", "a\n", "UTF-16BE", 1, 0),
        (b"gr\xfcn\n", "grün\n", "windows-1252", 1, 1),
        ("äö \u{fffd}".as_bytes(), "äö \u{fffd}", "UTF-8", 1, 0),
    ];
    for (bytes, text, encoding, lines, notes) in table {
        worker.write("file", bytes);
        let read = worker.read("file").unwrap();
        assert_eq!((read.text.as_str(), read.encoding.as_str(), read.lines), (text, encoding, lines));
        assert_eq!(
            (read.total_lines, read.notes.len(), read.first_line),
            (Some(lines), notes, 1),
            "{bytes:x?}"
        );
    }
}

#[test]
fn ranges_and_their_ends() {
    let mut worker = Worker::new();
    worker.write("file", "1\n2\n3\n4\n");
    let mut read = |offset, limit| {
        let call =
            ToolCall::ReadFile(ReadFile { path: "file".into(), offset: Some(offset), limit, inside: false });
        worker.run(call).map(|output| match output {
            ToolOutput::File(text) => (text.text, text.first_line, text.total_lines),
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(read(2, Some(2)).unwrap(), ("2\n3\n".to_owned(), 2, Some(4)));
    assert_eq!(read(4, None).unwrap(), ("4\n".to_owned(), 4, Some(4)));
    for (offset, limit, part) in
        [(5, None, "has 4 lines"), (0, None, "at least 1"), (1, Some(0), "at least 1")]
    {
        let error = read(offset, limit).unwrap_err();
        assert!(error.kind == ToolErrorKind::InvalidArgument && error.message.contains(part), "{error}");
    }
}

#[test]
fn what_is_no_text_file_is_refused_with_a_reason() {
    let mut worker = Worker::new();
    worker.write("binary", b"\x7fELF\0\0\0");
    std::fs::create_dir(worker.project.join("dir")).unwrap();
    nix::unistd::mkfifo(&worker.project.join("fifo"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    symlink("loop", worker.project.join("loop")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(worker.project.join("socket")).unwrap();
    let table = [
        ("binary", ToolErrorKind::Unreadable, "binary file of 7 bytes"),
        ("dir", ToolErrorKind::WrongKind, "list_directory"),
        ("fifo", ToolErrorKind::WrongKind, "a fifo"),
        ("socket", ToolErrorKind::WrongKind, "is a socket"),
        ("loop", ToolErrorKind::WrongKind, "too many symbolic links"),
        ("missing", ToolErrorKind::NotFound, "does not exist"),
        ("binary/x", ToolErrorKind::WrongKind, "not a directory"),
        ("/dev/null", ToolErrorKind::WrongKind, "a device"),
    ];
    for (path, kind, part) in table {
        let error = worker.read(path).unwrap_err();
        assert!(error.kind == kind && error.message.contains(part), "{path}: {error:?}");
    }
}

#[test]
fn paths_mean_what_the_kernel_says() {
    let mut worker = Worker::new();
    let odd = OsStr::from_bytes(b"n\xff\xfe.txt");
    worker.write("a/b/file", "found\n");
    worker.write(odd, "odd\n");
    symlink("a/b", worker.project.join("link")).unwrap();
    let absolute = worker.project.join("a/b/file");
    for path in ["a/b/file", "./a//b/file", "a/b/../b/file", "link/file", absolute.to_str().unwrap()] {
        assert_eq!(worker.read(path).unwrap().text, "found\n", "{path}");
    }
    // `link/..` is the target's parent, not the link's.
    assert_eq!(worker.read("link/../b/file").unwrap().text, "found\n");
    assert_eq!(worker.read(odd).unwrap().text, "odd\n");
}

#[test]
fn a_huge_file_is_streamed_and_cut() {
    let mut worker = Worker::new();
    let file = std::fs::File::create(worker.project.join("huge")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, "line\n".repeat(100_000).as_bytes(), 0).unwrap();
    file.set_len(3 << 30).unwrap();
    let read = worker.read("huge").unwrap();
    assert_eq!((read.lines, read.total_lines), (2_000, None));
    let long = worker.project.join("long");
    std::fs::write(&long, "x".repeat(300_000)).unwrap();
    let read = worker.read(&long).unwrap();
    assert_eq!((read.text.len(), read.total_lines), (2_000, Some(1)));
    assert_eq!(read.notes, ["Line 1 cut after 2000 characters."]);
}

#[test]
fn files_of_proc_have_no_size_but_content() {
    let mut worker = Worker::new();
    assert!(worker.read("/proc/self/status").unwrap().text.contains("bailiwick-work"));
}

#[test]
fn a_listing_is_sorted_and_leaves_out_what_is_ignored() {
    let mut worker = Worker::new();
    for path in ["src/b.rs", "src/deep/c.rs", "a.txt", ".hidden", "target/x", ".git/HEAD", "z.log"] {
        worker.write(path, "12345");
    }
    worker.write(".gitignore", "/target\n*.log\n");
    symlink("src/b.rs", worker.project.join("link")).unwrap();
    assert_eq!(
        list(&mut worker, "", None),
        [
            ".git Directory 0",
            ".gitignore File 14",
            ".hidden File 5",
            "a.txt File 5",
            "link Symlink(\"src/b.rs\") 0",
            "src Directory 0",
        ]
    );
    assert_eq!(list(&mut worker, "src", Some(9)), ["b.rs File 5", "deep Directory 0", "deep/c.rs File 5"]);
    assert!(!list(&mut worker, ".", Some(9)).iter().any(|line| line.starts_with(".git/")));
}

#[test]
fn a_listing_has_a_cap_and_counts_the_rest() {
    let mut worker = Worker::new();
    for index in 0..2_050 {
        worker.write(format!("f{index:04}"), "");
    }
    let call = ToolCall::ListDirectory(ListDirectory { path: ".".into(), depth: None });
    let ToolOutput::Listing(listing) = worker.run(call).unwrap() else { panic!() };
    assert_eq!((listing.entries.len(), listing.omitted), (2_000, 50));
    assert_eq!(listing.entries[1_999].path.as_path().to_str(), Some("f1999"));
    assert_eq!(listing.entries[0].kind, EntryKind::File);
}

#[test]
fn a_listing_of_no_directory_is_an_error() {
    let mut worker = Worker::new();
    worker.write("file", "");
    for (path, depth, kind) in [
        ("file", None, ToolErrorKind::WrongKind),
        ("missing", None, ToolErrorKind::NotFound),
        (".", Some(0), ToolErrorKind::InvalidArgument),
    ] {
        let call = ToolCall::ListDirectory(ListDirectory { path: path.into(), depth });
        assert_eq!(worker.run(call).unwrap_err().kind, kind, "{path}");
    }
}

#[test]
fn a_refusal_by_mode_is_told_apart_from_the_sandbox() {
    let mut worker = Worker::new();
    worker.write("secret", "x");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o000);
    std::fs::set_permissions(worker.project.join("secret"), mode).unwrap();
    if nix::unistd::geteuid().is_root() {
        eprintln!("skipped: uid 0 with capabilities reads every file");
        return;
    }
    let access = worker.run(read_file("secret")).unwrap_err().access.unwrap();
    assert_eq!((access.errno, access.permitted_by_mode), (13, false));
}

#[test]
fn a_call_that_stays_inside_follows_no_link_out_of_the_project() {
    let mut worker = Worker::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("f"), "name: theirs\n").unwrap();
    worker.write("docs/f", "name: ours\n");
    for (link, to) in [("in.md", "docs/f".into()), ("abs.md", worker.project.join("docs/f"))] {
        symlink::<std::path::PathBuf, _>(to, worker.project.join(link)).unwrap();
    }
    symlink(outside.path().join("f"), worker.project.join("out.md")).unwrap();
    symlink(outside.path(), worker.project.join("out")).unwrap();
    let read = |path: &str, inside| {
        ToolCall::ReadFile(ReadFile { path: path.into(), offset: None, limit: None, inside })
    };
    let search = |path: &str, inside| {
        let (pattern, path) = ("name".to_owned(), Some(path.into()));
        ToolCall::SearchFiles(SearchFiles { pattern, path, glob: None, inside })
    };
    for (path, leads_out) in
        [("docs/f", false), ("in.md", false), ("abs.md", false), ("out.md", true), ("out/f", true)]
    {
        for call in [read, search] {
            assert!(worker.run(call(path, false)).is_ok(), "the control: {path}");
            let kind = worker.run(call(path, true)).map_err(|error| error.kind);
            let expected = leads_out.then_some(ToolErrorKind::WrongKind);
            assert_eq!(kind.err(), expected, "{path}");
        }
    }
}
