//! Tests that a comparison of trees requests exactly the file contents that it needs, and detects every change.

use ipc::message::{Chunk, SnapshotEntry, SnapshotKind, Stamp};
use protocol::event::ChangeKind;
use supervisor::journal::changes::{Base, ChangeSet, Comparison, Snapshot, SnapshotLimits, patch};

use crate::tree::{
    Node, Tree, asked, change_set, file, manifest, program, project_path, stamp, take, with_contents,
};

const OLD: i64 = -60;
const RACY: i64 = -1;
const LATER: i64 = 60;

fn base(nodes: &[(&str, &str, Stamp)]) -> Base {
    Base::new(with_contents(chunks(nodes, true)), asked())
}

fn chunks(nodes: &[(&str, &str, Stamp)], contents: bool) -> Vec<Chunk> {
    let tree = |path: &str, text: &str| Tree::from([(path, file(text))]);
    nodes.iter().flat_map(|(path, text, stamp)| tree(path, text).chunks(contents, *stamp)).collect()
}

fn fetched_paths(comparison: &Comparison<'_>) -> Vec<String> {
    comparison.fetches().into_iter().flatten().map(|path| path.to_string()).collect()
}

fn resolve(comparison: Comparison<'_>, fetched: &[(&str, &str, Stamp)]) -> ChangeSet {
    let intake = comparison.intake(tempfile::tempfile().unwrap(), SnapshotLimits::default());
    let fetched = take(intake, chunks(fetched, true));
    comparison.resolve(&fetched).unwrap()
}

fn summary(set: &ChangeSet) -> Vec<String> {
    let word = |change: ChangeKind| match change {
        ChangeKind::Added => "added".to_owned(),
        ChangeKind::Deleted => "deleted".to_owned(),
        ChangeKind::Modified => "modified".to_owned(),
        ChangeKind::RenamedFrom(from) => format!("from {from}"),
    };
    set.files().into_iter().map(|file| format!("{} {}", file.path, word(file.change))).collect()
}

#[test]
fn only_what_may_have_changed_is_fetched() {
    let base = base(&[
        ("gone", "x", stamp(1, OLD)),
        ("racy", "x", stamp(2, RACY)),
        ("same", "x", stamp(3, OLD)),
        ("touched", "x", stamp(4, OLD)),
    ]);
    let now = [
        ("new", "x", stamp(5, LATER)),
        ("racy", "x", stamp(2, RACY)),
        ("same", "x", stamp(3, OLD)),
        ("touched", "x", stamp(4, LATER)),
    ];
    let comparison = base.compare(manifest(chunks(&now, false)), &[]);
    assert_eq!(fetched_paths(&comparison), ["gone", "new", "racy", "touched"]);
    let set = resolve(comparison, &[now[0], now[1], now[3]]);
    assert_eq!(summary(&set), ["new from gone"]);
}

#[test]
fn a_change_within_the_clock_tick_of_the_base_is_seen() {
    let base = base(&[("racy", "x", stamp(2, RACY))]);
    let comparison = base.compare(manifest(chunks(&[("racy", "y", stamp(2, RACY))], false)), &[]);
    assert_eq!(summary(&resolve(comparison, &[("racy", "y", stamp(2, RACY))])), ["racy modified"]);
}

#[test]
fn a_file_that_git_ignores_now_is_not_deleted() {
    let base = base(&[("log", "x", stamp(1, OLD))]);
    let comparison = base.compare(Snapshot::default(), &[]);
    assert_eq!(fetched_paths(&comparison), ["log"]);
    let set = resolve(comparison, &[("log", "x", stamp(1, OLD))]);
    assert!(set.is_empty(), "{set:?}");
}

#[test]
fn a_file_that_git_ignored_before_is_not_the_tasks() {
    let base = base(&[("a", "x", stamp(1, OLD))]);
    let now = [("a", "x", stamp(1, OLD)), (".env", "secret", stamp(2, OLD))];
    let comparison = base.compare(manifest(chunks(&now, false)), &[]);
    assert_eq!(fetched_paths(&comparison), [""; 0]);
    let set = resolve(comparison, &[]);
    assert!(set.is_empty());
    assert_eq!(
        set.notes(),
        [".env is not in the patch: the file existed before the session, and git ignored it then"]
    );
}

#[test]
fn files_of_a_renamed_directory_are_renamed_though_their_stamps_are_old() {
    let base = base(&[("old/a", "x", stamp(1, OLD)), ("old/b", "y", stamp(2, OLD))]);
    let now = [("new/a", "x", stamp(1, OLD)), ("new/b", "y", stamp(2, OLD))];
    let comparison = base.compare(manifest(chunks(&now, false)), &[]);
    assert_eq!(summary(&resolve(comparison, &now)), ["new/a from old/a", "new/b from old/b"]);
}

#[test]
fn nothing_is_fetched_through_a_link_that_was_a_directory() {
    let base = base(&[("d/passwd", "x", stamp(1, OLD))]);
    let link = Tree::from([("d", Node::Link("/etc".into()))]);
    let comparison = base.compare(manifest(link.chunks(false, stamp(2, LATER))), &[]);
    assert_eq!(fetched_paths(&comparison), [""; 0]);
    assert_eq!(summary(&resolve(comparison, &[])), ["d added", "d/passwd deleted"]);
}

#[test]
fn the_patch_itself_is_not_in_the_patch() {
    let old = Tree::from([("out.diff", file("old")), ("a", file("x"))]);
    let new = Tree::from([("out.diff", file("new")), ("a", file("y"))]);
    assert_eq!(summary(&change_set(&old, &new, &[project_path("out.diff")])), ["a modified"]);
    let deleted = Tree::from([("a", file("x"))]);
    assert!(change_set(&old, &deleted, &[project_path("out.diff")]).is_empty());
}

#[test]
fn of_equal_contents_the_one_of_the_same_name_was_renamed() {
    let old =
        Tree::from([("a/x", file("same")), ("b/y", file("same")), ("c", file("")), ("d", file("other"))]);
    let new = Tree::from([("n/y", program("same")), ("n/e", file("")), ("d", file("other"))]);
    let set = change_set(&old, &new, &[]);
    assert_eq!(summary(&set), ["a/x deleted", "c deleted", "n/e added", "n/y from b/y"]);
}

#[test]
fn a_content_that_was_not_taken_is_named_and_not_in_the_patch() {
    let huge = |seconds| {
        let kind = SnapshotKind::File { mode: 0o644, size: 1 << 40, omitted: true };
        let stamp = stamp(1, seconds);
        Chunk::Entries(vec![SnapshotEntry { path: "huge".into(), kind, stamp, born_ns: None }])
    };
    let base = Base::new(with_contents(vec![huge(RACY)]), asked());
    assert!(resolve(base.compare(manifest(vec![huge(RACY)]), &[]), &[]).is_empty());
    let set = resolve(base.compare(manifest(vec![huge(LATER)]), &[]), &[]);
    assert_eq!(summary(&set), ["huge modified"]);
    assert_eq!(
        set.notes(),
        ["huge changed, but is not in the patch: the file is too large or could not be read"]
    );
    let mut text = Vec::new();
    patch::write(&set, b"", &mut text).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), "");
}

#[test]
fn a_file_that_could_not_be_read_changed_only_if_its_stamp_did() {
    let closed = |seconds, mode, omitted| {
        let kind = SnapshotKind::File { mode, size: 5, omitted };
        let stamp = stamp(1, seconds);
        Chunk::Entries(vec![SnapshotEntry { path: "closed".into(), kind, stamp, born_ns: None }])
    };
    let base = Base::new(with_contents(vec![closed(RACY, 0, true)]), asked());
    // A manifest has no contents, so it cannot show that this content cannot be read.
    let compare = |now| base.compare(manifest(vec![now]), &[]);
    assert!(compare(closed(RACY, 0, false)).fetches().is_empty());
    assert!(resolve(compare(closed(RACY, 0, false)), &[]).is_empty());
    for now in [closed(LATER, 0, false), closed(RACY, 0o600, false)] {
        assert_eq!(fetched_paths(&compare(now)), ["closed"]);
    }
}

#[test]
fn a_path_that_git_refuses_does_not_spoil_the_patch() {
    let old = Tree::from([("a", file("x\n"))]);
    let new = Tree::from([(".GIT/config", file("x\n")), ("b", file("y\n"))]);
    let set = change_set(&old, &new, &[]);
    assert_eq!(summary(&set), [".GIT/config added", "a deleted", "b added"]);
    assert_eq!(set.notes(), [".GIT/config changed, but is not in the patch: git refuses such a path"]);
}

#[test]
fn notes_are_bounded() {
    let base = base(&[]);
    let names: Vec<_> = (0..100).map(|n| format!(".env{n:02}")).collect();
    let now: Vec<_> = names.iter().map(|name| (name.as_str(), "x", stamp(2, OLD))).collect();
    let set = resolve(base.compare(manifest(chunks(&now, false)), &[]), &[]);
    assert_eq!((set.notes().len(), set.notes()[20].as_str()), (21, "80 more files are not in the patch"));
}

#[test]
fn many_fetches_fit_their_frames() {
    let base = base(&[]);
    let names: Vec<_> = (0..3000).map(|n| format!("{n:04}{}", "x".repeat(1000))).collect();
    let now: Vec<_> = names.iter().map(|name| (name.as_str(), "x", stamp(2, LATER))).collect();
    let calls = base.compare(manifest(chunks(&now, false)), &[]).fetches();
    assert_eq!((calls.len(), calls.iter().map(Vec::len).sum::<usize>()), (3, 3000));
}
