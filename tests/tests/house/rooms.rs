//! Tests the layers of the supervisor (its wings) against ARCHITECTURE.md: a wing imports only lower ones, and the
//! modules of a wing do not import each other in a cycle. Also tests that no Rust file is too long.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

const MOST_LINES: usize = 700;

/// Heading of the table in ARCHITECTURE.md.
const HEADING: &str = "### Wings of the supervisor";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

struct Wing {
    floor: usize,
    modules: BTreeSet<String>,
}

fn table() -> BTreeMap<String, Wing> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, after) = text.split_once(HEADING).unwrap();
    let rows =
        after.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let mut wings = BTreeMap::new();
    for row in rows.skip(2) {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let modules = cells[2].split(", ").map(|module| module.trim_matches('`').to_owned()).collect();
        let wing = Wing { floor: cells[0].parse().unwrap(), modules };
        let name = cells[1].trim_matches('`').to_owned();
        assert!(wings.insert(name.clone(), wing).is_none(), "{name} is there twice");
    }
    wings
}

/// Returns the modules that a file declares, except those of tests.
fn declared(file: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("supervisor/src").join(file)).unwrap();
    let module = |line: &str| {
        let (_, name) = line.strip_suffix(';')?.split_once("mod ")?;
        (!line.starts_with("//")).then(|| name.to_owned())
    };
    text.lines().filter_map(module).collect()
}

/// Returns the production part of a file, without comments.
fn production(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.collect::<Vec<_>>().join("\n")
}

/// Returns the first names after `crate::OUTER`, and after the `super::` chain that leads to `OUTER` from `depth`
/// levels below.
fn imported(code: &str, outer: &str, depth: usize) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let ways = [format!("crate::{outer}"), "super::".repeat(depth)];
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

/// Returns the first name of a path, or of each path in a braced group.
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

type Arrows = BTreeMap<(String, String), BTreeSet<String>>;

/// Returns each import between two modules directly below `outer` (`""` or `"front::"`), with the files that have it.
fn arrows(outer: &str) -> Arrows {
    let source = root().join("supervisor/src").join(outer.trim_end_matches("::"));
    let mut arrows = Arrows::new();
    for file in files().into_iter().filter(|file| !is_test(file)) {
        let Ok(inner) = root().join(&file).strip_prefix(&source).map(Path::to_owned) else { continue };
        let mut module: Vec<_> =
            inner.with_extension("").iter().map(|name| name.to_str().unwrap().to_owned()).collect();
        module.pop_if(|name| name == "mod");
        let Some(from) = module.first() else { continue };
        let text = production(&std::fs::read_to_string(root().join(&file)).unwrap());
        for target in imported(&text, outer, module.len()).into_iter().filter(|target| target != from) {
            arrows.entry((from.clone(), target)).or_default().insert(file.clone());
        }
    }
    arrows
}

fn is_test(file: &str) -> bool {
    file.split('/').any(|part| part == "tests" || part == "tests.rs")
}

/// Returns the paths of all Rust files of the workspace, relative to the root.
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
fn every_module_stands_in_one_wing() {
    let table = table();
    assert_eq!(table.keys().cloned().collect::<BTreeSet<_>>(), declared("lib.rs"));
    for (name, wing) in table {
        assert_eq!(wing.modules, declared(&format!("{name}/mod.rs")), "{name}");
    }
}

#[test]
fn wings_import_only_wings_of_lower_floors() {
    let table = table();
    let arrows: Arrows = arrows("").into_iter().filter(|((_, to), _)| table.contains_key(to)).collect();
    assert!(arrows.len() > 12, "only {} arrows were found", arrows.len());
    let mut wrong = Vec::new();
    for ((from, to), files) in arrows.iter().filter(|((from, _), _)| table.contains_key(from)) {
        let floors = (table[from].floor, table[to].floor);
        if floors.0 <= floors.1 {
            wrong.push(format!("{from} ({}) imports {to} ({}): {files:?}", floors.0, floors.1));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Repeatedly removes the modules that import none of the remaining ones. If any remain, they form a cycle.
#[test]
fn no_modules_of_a_wing_import_each_other_in_a_circle() {
    let mut found = 0;
    for (name, wing) in table() {
        let arrows = arrows(&format!("{name}::"));
        found += arrows.len();
        let mut left = wing.modules;
        loop {
            let imports = |module: &&String| {
                arrows.keys().any(|(from, to)| from == *module && left.contains(to) && from != to)
            };
            let above: BTreeSet<_> = left.iter().filter(imports).cloned().collect();
            if above.len() == left.len() {
                break;
            }
            left = above;
        }
        let circle: Vec<_> =
            arrows.iter().filter(|((a, b), _)| left.contains(a) && left.contains(b)).collect();
        assert!(left.is_empty(), "{name}: {circle:#?}");
    }
    assert!(found > 10, "only {found} arrows were found");
}

#[test]
fn imports_are_found_in_every_form() {
    let code =
        "use crate::{a, b::{c, d},\n    e};\nfn f() -> crate::g::H { super::super::i::j() }\nsuper::k();";
    let found = |outer, depth| imported(code, outer, depth).into_iter().collect::<Vec<_>>();
    assert_eq!(found("", 2), ["a", "b", "e", "g", "i"]);
    assert_eq!(found("g::", 2), ["H", "i"]);
    assert!(!production("use x; // crate::y\n#[cfg(test)]\nmod tests {\n crate::z").contains("crate"));
}

#[test]
fn no_rust_file_is_too_long() {
    let lines = |file: &String| std::fs::read_to_string(root().join(file)).unwrap().lines().count();
    let files = files().into_iter().map(|file| (lines(&file), file));
    let long: Vec<_> = files.filter(|(lines, _)| *lines > MOST_LINES).collect();
    assert!(long.is_empty(), "more than {MOST_LINES} lines: {long:?}");
}
