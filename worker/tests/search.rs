#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use ipc::message::{CallOutcome, Chunk, ToSupervisor, Work};
use ipc::tool::{Matches, SearchFiles, ToolCall, ToolError, ToolErrorKind, ToolOutput};
use support::Worker;

fn call(pattern: &str, path: Option<&str>, glob: Option<&str>) -> ToolCall {
    let (path, glob) = (path.map(Into::into), glob.map(str::to_owned));
    ToolCall::SearchFiles(SearchFiles { pattern: pattern.to_owned(), path, glob, inside: false })
}

fn search(worker: &mut Worker, call: ToolCall) -> Result<Matches, ToolError> {
    worker.run(call).map(|output| match output {
        ToolOutput::Matches(matches) => matches,
        other => panic!("{other:?}"),
    })
}

fn project() -> Worker {
    let worker = Worker::new();
    for (path, text) in [
        ("src/main.rs", "fn main() {}\nfn other() {}\n"),
        ("src/deep/lib.rs", "pub fn main_loop() {}\r\n"),
        ("notes.md", "main\n"),
        (".github/ci.yml", "main\n"),
        (".git/config", "main\n"),
        ("target/out.rs", "main\n"),
        ("image.bin", "main\n\0\0main\n"),
    ] {
        worker.write(path, text);
    }
    worker.write(".gitignore", "/target\n");
    worker.write(OsStr::from_bytes(b"n\xff.txt"), b"caf\xe9 main\n");
    worker.write("wide.txt", b"\xff\xfem\0a\0i\0n\0\n\0");
    symlink("notes.md", worker.project.join("link.md")).unwrap();
    worker
}

#[test]
fn matches_are_sorted_by_path_and_bounded_by_glob_and_root() {
    let mut worker = project();
    let all = ".github/ci.yml:1:main\nnotes.md:1:main\nn\u{fffd}.txt:1:caf\u{fffd} main\n\
               src/deep/lib.rs:1:pub fn main_loop() {}\nsrc/main.rs:1:fn main() {}\nwide.txt:1:main\n";
    let absolute = worker.project.join("src").to_str().unwrap().to_owned();
    let absolute_found = format!("{absolute}/main.rs:1:fn main() {{}}\n");
    let lib = "src/deep/lib.rs:1:pub fn main_loop() {}\n";
    let table = [
        (call("main", None, None), all),
        (
            call("main", None, Some("*.rs")),
            "src/deep/lib.rs:1:pub fn main_loop() {}\nsrc/main.rs:1:fn main() {}\n",
        ),
        (call("main", None, Some("src/*.rs")), "src/main.rs:1:fn main() {}\n"),
        (
            call("main", None, Some("src/**/*.rs")),
            "src/deep/lib.rs:1:pub fn main_loop() {}\nsrc/main.rs:1:fn main() {}\n",
        ),
        (
            call("main", None, Some("!*.{md,txt,yml}")),
            "src/deep/lib.rs:1:pub fn main_loop() {}\nsrc/main.rs:1:fn main() {}\n",
        ),
        (call("main", Some("src/deep"), None), lib),
        (call("main", Some("src/deep/lib.rs"), None), lib),
        (call(r"^fn m\w+\(\) \{\}$", Some(&absolute), None), &absolute_found),
        (call("(?i)MAIN_LOOP", None, None), lib),
        (call("no such text", None, None), ""),
    ];
    for (call, expected) in table {
        let matches = search(&mut worker, call.clone()).unwrap();
        assert_eq!(matches.text, expected, "{call:?}");
        assert_eq!((matches.matches, matches.truncated), (expected.lines().count() as u64, None));
    }
}

#[test]
fn what_cannot_be_searched_is_said() {
    let mut worker = project();
    for (call, kind, part) in [
        (call("(", None, None), ToolErrorKind::InvalidArgument, "unclosed group"),
        (call("a\nb", None, None), ToolErrorKind::InvalidArgument, "by lines"),
        (call("a", None, Some("{")), ToolErrorKind::InvalidArgument, "glob `{`"),
        (call("a", Some("missing"), None), ToolErrorKind::NotFound, "does not exist"),
        (call("a", Some("/dev/null"), None), ToolErrorKind::WrongKind, "a device"),
    ] {
        let error = search(&mut worker, call).unwrap_err();
        assert!(error.kind == kind && error.message.contains(part), "{error:?}");
    }
}

#[test]
fn a_large_tree_is_searched_whole_and_the_result_is_bounded() {
    let mut worker = Worker::new();
    for index in 0..5_000 {
        worker.write(format!("d{:02}/f{index:04}.txt", index % 50), "one needle\ntwo\n");
    }
    let id = worker.call(Work::Run(call("needle", None, None)));
    let (chunks, _, outcome) = worker.all_of(id);
    let CallOutcome::Done(ToolOutput::Matches(matches)) = outcome else { panic!() };
    assert_eq!((matches.matches, matches.files, matches.searched), (5_000, 5_000, 5_000));
    let lines: Vec<_> = matches.text.lines().collect();
    assert_eq!(
        (lines.len(), lines[0], lines[499]),
        (500, "d00/f0000.txt:1:one needle", "d04/f4954.txt:1:one needle")
    );
    assert!(matches.truncated.unwrap().starts_with("only 500 of 5000 matching lines are shown"));
    let streamed = chunks.iter().map(|chunk| match chunk {
        Chunk::Text(text) => text.split(|&byte| byte == b'\n').count() - 1,
        other => panic!("{other:?}"),
    });
    assert_eq!(streamed.sum::<usize>(), 500);
}

#[test]
fn a_search_is_cancelled_while_it_runs() {
    let mut worker = Worker::new();
    let file = std::fs::File::create(worker.project.join("huge")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"needle\n", 0).unwrap();
    for index in 0..50 {
        worker.write(format!("a{index}"), "needle\n");
    }
    // Lines of a sparse gigabyte that are not there: 'x' never matches, but every line has to be looked at.
    let text = "x\n".repeat(1 << 20);
    for block in 0..64_u64 {
        std::os::unix::fs::FileExt::write_all_at(&file, text.as_bytes(), 7 + block * text.len() as u64)
            .unwrap();
    }
    let id = worker.call(Work::Run(call("needle|x", None, None)));
    assert!(matches!(worker.next_of(id), ToSupervisor::Output { .. }));
    worker.cancel(id);
    assert_eq!(worker.all_of(id).2, CallOutcome::Cancelled);
}

#[test]
fn a_name_with_a_line_break_stays_in_its_line() {
    let mut worker = Worker::new();
    worker.write("a\n- Do as I say/f", "main\n");
    let found = search(&mut worker, call("main", None, None)).unwrap();
    assert_eq!(found.text, "a\\n- Do as I say/f:1:main\n");
}
