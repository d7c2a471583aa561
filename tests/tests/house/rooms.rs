//! The storeys of the supervisor, as ARCHITECTURE.md has them: a room imports rooms of lower storeys and no other. And no
//! Rust file is too long to be read at once.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most lines of a Rust file.
const MOST_LINES: usize = 500;

/// The heading of the table in ARCHITECTURE.md.
const HEADING: &str = "### Storeys of the supervisor";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The rooms and their storeys; the ground is 0.
fn storeys() -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, after) = text.split_once(HEADING).unwrap();
    let rows =
        after.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let mut storeys = BTreeMap::new();
    for row in rows.skip(2) {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let storey: usize = cells[0].parse().unwrap();
        for room in cells[1].split(", ").map(|room| room.trim_matches('`')) {
            assert_eq!(storeys.insert(room.to_owned(), storey), None, "{room} is in two storeys");
        }
    }
    storeys
}

/// The rooms that there are: what `lib.rs` declares.
fn rooms() -> BTreeSet<String> {
    let lib = std::fs::read_to_string(root().join("supervisor/src/lib.rs")).unwrap();
    let names = lib.lines().filter_map(|line| {
        line.strip_prefix("pub mod ").or_else(|| line.strip_prefix("mod "))?.strip_suffix(';')
    });
    names.map(str::to_owned).collect()
}

/// The production part of a file, without comments.
fn production(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.collect::<Vec<_>>().join("\n")
}

/// The first names behind `crate::` and behind each chain of `super::` that leads to the crate from a module of this depth.
fn imported(code: &str, depth: usize) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let ways = ["crate::".to_owned(), "super::".repeat(depth)];
    for way in ways.iter().filter(|way| !way.is_empty()) {
        for (at, _) in code.match_indices(way.as_str()) {
            let is_whole =
                !code[..at].ends_with(|before: char| before.is_alphanumeric() || "_:".contains(before));
            if is_whole {
                names.extend(first_names(&code[at + way.len()..]));
            }
        }
    }
    names
}

/// The first name of a path, or of each path of a group.
fn first_names(path: &str) -> Vec<String> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(group) = path.strip_prefix('{') else { return vec![word(path)] };
    let mut names = Vec::new();
    let (mut depth, mut part) = (0, String::new());
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(word(std::mem::take(&mut part).trim())),
            _ => {}
        }
        if depth == 0 && !matches!(c, ',' | '}') {
            part.push(c);
        }
    }
    names.push(word(part.trim()));
    names
}

/// Each arrow between two rooms, with the files that draw it.
fn arrows(rooms: &BTreeSet<String>) -> BTreeMap<(String, String), BTreeSet<String>> {
    let source = root().join("supervisor/src");
    let mut arrows: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for file in files().into_iter().filter(|file| !is_test(file)) {
        let Ok(inner) = root().join(&file).strip_prefix(&source).map(Path::to_owned) else { continue };
        let mut module: Vec<_> =
            inner.with_extension("").iter().map(|name| name.to_str().unwrap().to_owned()).collect();
        module.pop_if(|name| name == "mod");
        let text = std::fs::read_to_string(root().join(&file)).unwrap();
        for target in imported(&production(&text), module.len()) {
            if rooms.contains(&target) && target != module[0] {
                arrows.entry((module[0].clone(), target)).or_default().insert(file.clone());
            }
        }
    }
    arrows
}

fn is_test(file: &str) -> bool {
    file.split('/').any(|part| part == "tests" || part == "tests.rs")
}

/// Every Rust file of the workspace, by its path from the root.
fn files() -> Vec<String> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"];
    let output = Command::new("git").args(arguments).current_dir(root()).output().unwrap();
    let listing = String::from_utf8(output.stdout).unwrap();
    let there = listing.lines().filter(|file| root().join(file).is_file());
    let files: Vec<_> = there.map(str::to_owned).collect();
    assert!(!files.is_empty(), "git lists no Rust file");
    files
}

#[test]
fn every_room_stands_in_one_storey() {
    let storeys: BTreeSet<_> = storeys().into_keys().collect();
    assert_eq!(storeys, rooms());
}

#[test]
fn rooms_import_only_rooms_of_lower_storeys() {
    let storeys = storeys();
    let arrows = arrows(&rooms());
    assert!(arrows.len() > 60, "only {} arrows were found", arrows.len());
    let mut wrong = Vec::new();
    for ((from, to), files) in &arrows {
        if storeys[from] <= storeys[to] {
            wrong.push(format!("{from} ({}) imports {to} ({}): {files:?}", storeys[from], storeys[to]));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn imports_are_found_in_every_form() {
    let code =
        "use crate::{a, b::{c, d},\n    e};\nfn f() -> crate::g::H { super::super::i::j() }\nsuper::k();";
    let found: Vec<_> = imported(code, 2).into_iter().collect();
    assert_eq!(found, ["a", "b", "e", "g", "i"]);
    assert!(!production("use x; // crate::y\n#[cfg(test)]\nmod tests {\n crate::z").contains("crate"));
}

#[test]
fn no_rust_file_is_too_long() {
    let lines = |file: &String| std::fs::read_to_string(root().join(file)).unwrap().lines().count();
    let files = files().into_iter().map(|file| (lines(&file), file));
    let long: Vec<_> = files.filter(|(lines, _)| *lines > MOST_LINES).collect();
    assert!(long.is_empty(), "more than {MOST_LINES} lines: {long:?}");
}
