//! Tests that git turns the base into the new tree by applying the patch, and back by reversing it.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use supervisor::journal::changes::patch;

use crate::git;
use crate::tree::{Node, Tree, change_set, file, program};

/// Checks that git can apply and reverse the patch between two trees. Returns the patch.
fn round_trip(old: &Tree, new: &Tree) -> Result<String, String> {
    let mut text = Vec::new();
    patch::write(&change_set(old, new, &[]), b"", &mut text).unwrap();
    let shown = String::from_utf8_lossy(&text).into_owned();
    let repository = git::repository(old);
    let directory = repository.path();
    if text.is_empty() {
        return if old == new { Ok(shown) } else { Err("no patch for a change".to_owned()) };
    }
    let apply = |options: &[&str]| {
        git::apply(directory, options, &text).map_err(|error| format!("{options:?}: {error}\n{shown}"))?;
        Ok::<_, String>(Tree::read(directory))
    };
    let same = |tree: Tree, expected: &Tree| {
        if tree == *expected { Ok(()) } else { Err(format!("{tree:?}, not {expected:?}\n{shown}")) }
    };
    same(apply(&["--check"])?, old)?;
    same(apply(&[])?, new)?;
    if !some_directory_came_or_went(old, new) {
        same(without_modes(&apply(&["-R"])?), &without_modes(old))?;
    }
    Ok(shown)
}

/// Returns the tree without file modes. `apply -R` of git 2.47 does not restore the mode of a deleted file, even for
/// git's own patches.
fn without_modes(tree: &Tree) -> Tree {
    let mut tree = tree.clone();
    for node in tree.0.values_mut() {
        *node = match node {
            Node::File { bytes, .. } | Node::Link(bytes) => file(bytes),
        };
    }
    tree
}

/// True if a path is a directory in one tree and something else in the other. Git applies such a change, but cannot
/// always reverse it.
fn some_directory_came_or_went(old: &Tree, new: &Tree) -> bool {
    let is_directory =
        |tree: &Tree, path: &[u8]| tree.0.keys().any(|inner| inner.starts_with(&[path, b"/"].concat()));
    old.0.keys().any(|path| is_directory(new, path)) || new.0.keys().any(|path| is_directory(old, path))
}

fn check(old: impl Into<Tree>, new: impl Into<Tree>) -> String {
    round_trip(&old.into(), &new.into()).unwrap()
}

#[test]
fn every_kind_of_change_is_one_that_git_applies() {
    if git::is_missing() {
        return;
    }
    let link = |target: &str| Node::Link(target.into());
    let binary: Vec<u8> = (0..70_000u32).flat_map(|n| n.wrapping_mul(n).to_le_bytes()).collect();
    for (old, new) in [
        (Tree::from([("a", file("x\n"))]), Tree::from([("a", file("y\n"))])),
        (Tree::from([("a", file(""))]), Tree::from([("a", file("y"))])),
        (Tree::from([("a", file("x"))]), Tree::from([("a", file(""))])),
        (Tree::from([("a", file(""))]), Tree::default()),
        (Tree::default(), Tree::from([("d/e", file(""))])),
        (Tree::from([("a", file("x\n"))]), Tree::from([("a", program("x\n"))])),
        (Tree::from([("a", file("x\n"))]), Tree::from([("a", program("y\n"))])),
        (Tree::from([("a", file("x\0"))]), Tree::from([("a", program("y\0"))])),
        (Tree::from([("a", file("x\r\ny\r\n"))]), Tree::from([("a", file("x\r\nz\r\n"))])),
        (Tree::from([("a", file("x\0"))]), Tree::from([("a", file(&binary))])),
        (Tree::from([("a", file("x"))]), Tree::from([("b", file(&binary)), ("c", file("\0"))])),
        (Tree::from([("a", link("x"))]), Tree::from([("a", link("y z\n"))])),
        (Tree::from([("a", link("x"))]), Tree::from([("a", file("x"))])),
        (Tree::from([("a", program("x"))]), Tree::from([("a", link("x"))])),
        (Tree::from([("d/a", file("x")), ("d/b", file("y"))]), Tree::from([("d", file("z"))])),
        (Tree::from([("d", link("/"))]), Tree::from([("d/a", file("z"))])),
        (Tree::from([("a", file("same\n"))]), Tree::from([("a/a", program("same\n"))])),
        (Tree::from([("a/a", file("same\0"))]), Tree::from([("a", file("same\0"))])),
    ] {
        check(old, new);
    }
}

#[test]
fn names_of_every_kind_survive() {
    if git::is_missing() {
        return;
    }
    for name in [
        b"a b" as &[u8],
        b" lead",
        b"trail ",
        b"tab\t",
        b"line\nfeed",
        b"quote\"",
        b"back\\slash",
        "\u{fc}/\u{1f600}".as_bytes(),
        b"latin-\xfc",
        b"-option",
        b"b/x",
        b"a/ b/c",
        b"\x01\x1b[31m",
        b"dev/null",
    ] {
        let moved = [name, b".moved"].concat();
        let texts = [file("1\n"), file("2\n"), file("2\0")];
        check(Tree::default(), [(name, texts[0].clone())]);
        check([(name, texts[0].clone())], [(name, texts[1].clone())]);
        check([(name, texts[1].clone())], [(name, texts[2].clone())]);
        check([(name, texts[0].clone())], [(moved.as_slice(), texts[0].clone())]);
        check([(name, texts[0].clone())], [(name, program("1\n"))]);
    }
}

#[test]
fn a_rename_is_said_in_four_lines() {
    if git::is_missing() {
        return;
    }
    let patch = check([("src/a b", file("text\n"))], [("lib/\u{fc}", program("text\n"))]);
    insta::assert_snapshot!(patch, @r#"
    diff --git a/src/a b "b/lib/\303\274"
    old mode 100644
    new mode 100755
    similarity index 100%
    rename from src/a b
    rename to "lib/\303\274"
    "#);
}

#[test]
fn a_repository_that_converts_line_ends_takes_the_patch() {
    if git::is_missing() {
        return;
    }
    let attributes = (".gitattributes", file("* text=auto eol=crlf\n"));
    let old = Tree::from([attributes.clone(), ("a", file("x\r\ny\r\n"))]);
    let new = Tree::from([attributes, ("a", file("x\r\nz\r\n")), ("b", file("new\r\n"))]);
    round_trip(&old, &new).unwrap();
}

fn any_path() -> impl Strategy<Value = Vec<u8>> {
    let component = select(vec![b"a" as &[u8], b"b", b"c d", "\u{fc}".as_bytes(), b"\xff\"", b"-x\t"]);
    vec(component, 1..4).prop_map(|components| components.join(&b"/"[..]))
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let line = select(vec![
        b"1\n" as &[u8],
        b"2\n",
        b"3\r\n",
        b"",
        b"\n",
        b"\xff\n",
        b"no newline",
        b"-- x\n",
        b"@@ -1 +1 @@\n",
    ]);
    prop_oneof![
        8 => vec(line, 0..30).prop_map(|lines| lines.concat()),
        1 => vec(any::<u8>(), 0..300),
        1 => vec(any::<u8>(), 20_000..20_100),
    ]
}

fn any_node() -> impl Strategy<Value = Node> {
    prop_oneof![
        8 => (any_bytes(), any::<bool>()).prop_map(|(bytes, executable)| Node::File { bytes, executable }),
        // No link leads to itself. Git cannot turn such a link into a directory, even with its own patch.
        1 => any_path().prop_map(|path| Node::Link([b"to/", path.as_slice()].concat())),
    ]
}

/// An edit of a tree. The indices select among the paths that exist.
#[derive(Clone, Debug)]
enum Edit {
    Put(Vec<u8>, Node),
    Remove(usize),
    Rename(usize, Vec<u8>),
    Chmod(usize),
    Splice(usize, usize, Vec<u8>),
}

fn any_edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (any_path(), any_node()).prop_map(|(path, node)| Edit::Put(path, node)),
        any::<usize>().prop_map(Edit::Remove),
        (any::<usize>(), any_path()).prop_map(|(index, path)| Edit::Rename(index, path)),
        any::<usize>().prop_map(Edit::Chmod),
        (any::<usize>(), any::<usize>(), any_bytes())
            .prop_map(|(index, at, bytes)| Edit::Splice(index, at, bytes)),
    ]
}

fn edit(tree: &mut Tree, edit: Edit) {
    let chosen = |tree: &Tree, index: usize| tree.0.keys().nth(index % tree.0.len().max(1)).cloned();
    match edit {
        Edit::Put(path, node) => tree.put(&path, node),
        Edit::Remove(index) => drop(chosen(tree, index).and_then(|path| tree.0.remove(&path))),
        Edit::Rename(index, to) => {
            if let Some(node) = chosen(tree, index).and_then(|path| tree.0.remove(&path)) {
                tree.put(&to, node);
            }
        }
        Edit::Chmod(index) => {
            if let Some(Node::File { executable, .. }) =
                chosen(tree, index).and_then(|path| tree.0.get_mut(&path))
            {
                *executable = !*executable;
            }
        }
        Edit::Splice(index, at, new) => {
            if let Some(Node::File { bytes, .. }) = chosen(tree, index).and_then(|path| tree.0.get_mut(&path))
            {
                let at = at % (bytes.len() + 1);
                bytes.splice(at..(at + 5).min(bytes.len()), new);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn any_edits_round_trip(
        nodes in vec((any_path(), any_node()), 0..12),
        edits in vec(any_edit(), 1..8),
    ) {
        if git::is_missing() {
            return Ok(());
        }
        let mut old = Tree::default();
        for (path, node) in nodes {
            old.put(&path, node);
        }
        let mut new = old.clone();
        for step in edits {
            edit(&mut new, step);
        }
        round_trip(&old, &new).map_err(TestCaseError::fail)?;
    }
}
