use std::fmt::Write;

use insta::assert_snapshot;
use ipc::path::WirePath;
use ipc::tool::{
    CommandExit, CommandResult, Entry, EntryKind, FileText, Listing, Matches, SavedOutput, SnapshotSummary,
    ToolError, ToolErrorKind, ToolOutput, Written, WrittenFile,
};
use proptest::prelude::*;

use crate::tools::{Rendered, render};

fn show(outputs: Vec<ToolOutput>) -> String {
    let mut seen = String::new();
    for output in outputs {
        let Rendered { content, is_error } = render(&output);
        writeln!(seen, "--- {}\n{content}", if is_error { "error" } else { "ok" }).unwrap();
    }
    seen
}

fn file(text: &str, first_line: u64, total_lines: Option<u64>) -> FileText {
    let lines = text.lines().count() as u64;
    FileText {
        text: text.to_owned(),
        first_line,
        lines,
        total_lines,
        encoding: "UTF-8".to_owned(),
        notes: vec![],
    }
}

#[test]
fn files() {
    let latin = FileText {
        encoding: "windows-1252".to_owned(),
        notes: vec!["2 lines were cut at 2000 characters".to_owned()],
        ..file("é", 1, Some(1))
    };
    let outputs = [
        file("a\n\tb\n", 1, Some(2)),
        file("no end", 1, Some(1)),
        file("a\nb\n", 9, Some(40)),
        file("y\nz\n", 39, Some(40)),
        file("a\n", 1, None),
        file("a\r\nb\r\n", 1, Some(2)),
        file("", 1, Some(0)),
        file("", 1, None),
        latin,
    ];
    assert_snapshot!(show(outputs.map(ToolOutput::File).into()), @r"
    --- ok
         1	a
         2		b

    --- ok
         1	no end
    (the last line has no line end)
    --- ok
         9	a
        10	b
    (lines 9-10 of 40; go on with offset 11)
    --- ok
        39	y
        40	z
    (lines 39-40 of 40)
    --- ok
         1	a
    (lines 1-1; there are more: go on with offset 2)
    --- ok
         1	a
         2	b
    (lines end with CRLF)
    --- ok
    (the file is empty)
    --- ok
    (nothing)
    --- ok
         1	é
    (the last line has no line end; encoding windows-1252; 2 lines were cut at 2000 characters)
    ");
}

#[test]
fn listings() {
    let entry = |path: WirePath, kind, size| Entry { path, kind, size };
    let entries = vec![
        entry("a.rs".into(), EntryKind::File, 1),
        entry("b c".into(), EntryKind::File, 20),
        entry("d".into(), EntryKind::Directory, 4096),
        entry("e".into(), EntryKind::Symlink("d/x".into()), 0),
        entry(b"f\xff".to_vec().into(), EntryKind::Other, 0),
    ];
    let outputs = vec![
        ToolOutput::Listing(Listing { entries, omitted: 3 }),
        ToolOutput::Listing(Listing { entries: vec![], omitted: 0 }),
    ];
    assert_snapshot!(show(outputs), @r"
    --- ok
    a.rs  1 byte
    b c  20 bytes
    d/
    e -> d/x
    f�  (special file)
    (3 more entries are left out; list a directory below, or with a smaller depth)
    --- ok
    (the directory is empty, or all of it is ignored)
    ");
}

#[test]
fn searches() {
    let found = |text: &str, matches, files, truncated: Option<&str>| {
        let truncated = truncated.map(str::to_owned);
        ToolOutput::Matches(Matches { text: text.to_owned(), matches, files, searched: 7, truncated })
    };
    let outputs = vec![
        found("a.rs:1:x\nb.rs:2:x\n", 2, 2, None),
        found("a.rs:1:x", 1, 1, Some("500 lines matched")),
        found("", 0, 0, None),
    ];
    assert_snapshot!(show(outputs), @r"
    --- ok
    a.rs:1:x
    b.rs:2:x
    (2 matching lines in 2 files; 7 searched)
    --- ok
    a.rs:1:x
    (1 matching line in 1 file; 7 searched; not all: 500 lines matched; narrow the search with path, glob or a longer pattern)
    --- ok
    (no matches in 7 files)
    ");
}

#[test]
fn writes() {
    let file = |created, replacements| WrittenFile {
        path: "a".into(),
        created,
        bytes: 1,
        replacements,
        change: None,
        notes: Vec::new(),
    };
    let told = WrittenFile { notes: vec!["it was odd".into(), "it is even".into()], ..file(false, 1) };
    let files = vec![file(true, 0), file(false, 0), file(false, 1), file(false, 2), told];
    let outputs =
        vec![ToolOutput::Written(Written { files }), ToolOutput::Written(Written { files: vec![] })];
    assert_snapshot!(show(outputs), @r"
    --- ok
    created a (1 byte)
    wrote a (1 byte)
    edited a: 1 replacement (1 byte)
    edited a: 2 replacements (1 byte)
    edited a: 1 replacement (1 byte)
    (it was odd; it is even)
    --- ok
    nothing had to be written
    ");
}

#[test]
fn commands() {
    let ended = |exit, head: &str, omitted_bytes, tail: &str| {
        let (head, tail) = (head.to_owned(), tail.to_owned());
        ToolOutput::Command(CommandResult {
            exit,
            head,
            omitted_bytes,
            tail,
            saved: None,
            named: Vec::new(),
            process: 0,
            refused: Vec::new(),
            duration_ms: 1234,
        })
    };
    let outputs = vec![
        ended(CommandExit::Code(0), "", 0, ""),
        ended(CommandExit::Code(0), "ok", 0, ""),
        ended(CommandExit::Code(2), "no\n", 0, ""),
        ended(CommandExit::Signal(9), "half", 0, ""),
        ended(CommandExit::TimedOut, "slow\n", 0, ""),
        ended(CommandExit::Code(0), "head", 4096, "tail\n"),
    ];
    assert_snapshot!(show(outputs), @r"
    --- ok
    [exit code 0, 1.2 s]
    --- ok
    ok
    [exit code 0, 1.2 s]
    --- error
    no
    [exit code 2, 1.2 s]
    --- error
    half
    [ended by signal 9, 1.2 s]
    --- error
    slow
    [ended after 1.2 s: the command ran longer than allowed. Run less at once, or pass a larger timeout_s]
    --- ok
    head
    [4096 bytes of output are left out here]
    tail
    [exit code 0, 1.2 s]
    ");
}

#[test]
fn a_long_output_says_where_all_of_it_lies() {
    let saved = |cut: Option<&str>| {
        let cut = cut.map(str::to_owned);
        let saved = Some(SavedOutput { path: "/tmp/call-7.log".into(), bytes: 9_000, cut });
        let (exit, head, tail) = (CommandExit::Code(0), "head\n".to_owned(), "tail\n".to_owned());
        ToolOutput::Command(CommandResult {
            exit,
            head,
            omitted_bytes: 8_990,
            tail,
            saved,
            named: Vec::new(),
            process: 0,
            refused: Vec::new(),
            duration_ms: 1234,
        })
    };
    assert_snapshot!(show(vec![saved(None), saved(Some("the temp directory is full"))]), @r"
    --- ok
    head
    [8990 bytes of output are left out here; the whole output (9000 bytes) is in /tmp/call-7.log: search_files finds places in it, read_file with offset and limit shows them]
    tail
    [exit code 0, 1.2 s]
    --- ok
    head
    [8990 bytes of output are left out here; a part of the output, the first 9000 bytes (the temp directory is full), is in /tmp/call-7.log: search_files finds places in it, read_file with offset and limit shows them]
    tail
    [exit code 0, 1.2 s]
    ");
}

#[test]
fn failures_and_snapshots_are_never_empty() {
    let error = ToolError { kind: ToolErrorKind::System, message: String::new(), access: None };
    assert_eq!(Rendered::from(&error), Rendered { content: "(nothing)".to_owned(), is_error: true });
    let summary = ToolOutput::Snapshot(SnapshotSummary { entries: 2, ..SnapshotSummary::default() });
    assert_eq!(render(&summary).content, "2 entries\n");
}

#[test]
fn result_of_a_hijacked_worker_does_not_fill_the_context() {
    let head = "é".repeat(1 << 20);
    let result = CommandResult {
        exit: CommandExit::Code(0),
        head,
        omitted_bytes: 0,
        tail: String::new(),
        saved: None,
        named: Vec::new(),
        process: 0,
        refused: Vec::new(),
        duration_ms: 0,
    };
    let content = render(&ToolOutput::Command(result)).content;
    assert!(content.len() < 400 << 10, "{}", content.len());
    assert!(content.ends_with("more bytes]"), "{}", &content[content.len() - 40..]);
}

proptest! {
    #[test]
    fn any_output_has_a_text(text in ".*", first_line in any::<u64>(), lines in any::<u64>(), total in any::<Option<u64>>()) {
        let encoding = String::new();
        let file = FileText { text, first_line, lines, total_lines: total, encoding, notes: vec![] };
        prop_assert!(!render(&ToolOutput::File(file)).content.is_empty());
    }
}
