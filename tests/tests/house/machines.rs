//! The agent core: four machines, each with fields that no file beyond its folder names, on floors that no import climbs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The machines, by their folders.
const MACHINES: [(&str, &str); 4] =
    [("calls", "Calls"), ("conversation", "Conversation"), ("rights", "RightsState"), ("turn", "Turn")];

/// The modules of the core from the ground up. A module imports modules of lower floors, and no others.
const FLOORS: [&[&str]; 10] = [
    &["change", "phase", "tariff"],
    &["end", "model", "call"],
    &["plan"],
    &["port"],
    &["outbox"],
    &["conversation", "rights"],
    &["calls", "turn"],
    &["config"],
    &["agent"],
    &["restore", "turns", "working"],
];

/// The most methods of `Agent`, which only routes.
const MOST_METHODS: usize = 40;

/// The most files that the methods of a type stand in.
const MOST_FILES: usize = 4;

fn core() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("supervisor/agent/src/core")
}

/// The production text of each file of the core, by its path below it.
fn sources() -> BTreeMap<String, String> {
    let mut sources = BTreeMap::new();
    walk(&core(), &mut |path| {
        let name = path.strip_prefix(core()).unwrap().display().to_string();
        if !name.split('/').any(|part| part == "tests" || part == "tests.rs") {
            sources.insert(name, production(&std::fs::read_to_string(path).unwrap()));
        }
    });
    assert!(sources.len() > 30, "only {} files were found", sources.len());
    sources
}

fn walk(directory: &Path, visit: &mut impl FnMut(&Path)) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, visit);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            visit(&path);
        }
    }
}

/// The production part of a file, without comments.
fn production(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.collect::<Vec<_>>().join("\n")
}

/// The module directly below the core that a file belongs to.
fn module(file: &str) -> &str {
    let first = file.split('/').next().unwrap_or_default();
    first.strip_suffix(".rs").unwrap_or(first)
}

/// The text between the brace at the end of this head and its closing brace at the beginning of a line.
fn block<'a>(text: &'a str, head: &str) -> Option<&'a str> {
    let (_, after) = text.split_once(head)?;
    after.split("\n}").next()
}

/// The fields of a type, each with its visibility.
fn fields(text: &str, name: &str) -> Vec<(String, String)> {
    let body = block(text, &format!("pub(in crate::core) struct {name} {{")).unwrap();
    let field = |line: &str| {
        let (before, _) = line.trim().split_once(": ")?;
        let (visibility, name) = before.rsplit_once(' ').unwrap_or(("", before));
        Some((visibility.to_owned(), name.to_owned()))
    };
    body.lines().filter_map(field).collect()
}

/// The number of methods of a type, and the files that they stand in.
fn methods<'a>(sources: &'a BTreeMap<String, String>, name: &str) -> (usize, BTreeSet<&'a str>) {
    let (mut count, mut files) = (0, BTreeSet::new());
    for (file, text) in sources {
        let mut rest = text.as_str();
        while let Some((_, after)) = rest.split_once(&format!("\nimpl {name} {{")) {
            let body = after.split("\n}").next().unwrap_or_default();
            let is_method = |line: &&str| {
                line.strip_prefix("    ").is_some_and(|line| !line.starts_with(' ') && line.contains("fn "))
            };
            count += body.lines().filter(is_method).count();
            files.insert(file.as_str());
            rest = after;
        }
    }
    (count, files)
}

#[test]
fn no_field_of_a_machine_is_visible_beyond_its_folder() {
    let sources = sources();
    for (folder, name) in MACHINES {
        let fields = fields(&sources[&format!("{folder}/machine.rs")], name);
        assert!(fields.len() > 2, "{name}: {fields:?}");
        for (visibility, field) in &fields {
            assert!(["", "pub(super)"].contains(&visibility.as_str()), "{name}::{field} is {visibility}");
        }
        for (file, text) in sources.iter().filter(|(file, _)| module(file) != folder) {
            for (_, field) in &fields {
                let named = format!("{folder}.{field}");
                let mut uses = text.match_indices(&named).map(|(at, _)| &text[at + named.len()..]);
                let is_field =
                    |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '(');
                assert!(!uses.any(is_field), "{file} names {named}");
            }
        }
    }
}

#[test]
fn agent_only_routes() {
    let sources = sources();
    let (count, _) = methods(&sources, "Agent");
    assert!((20..=MOST_METHODS).contains(&count), "Agent has {count} methods");
}

#[test]
fn methods_of_a_type_stand_in_at_most_four_files() {
    let sources = sources();
    for name in MACHINES.map(|(_, name)| name).into_iter().chain(["Agent"]) {
        let (count, files) = methods(&sources, name);
        assert!(count > 0 && files.len() <= MOST_FILES, "{name}: {files:?}");
    }
}

#[test]
fn modules_of_the_core_import_lower_floors_alone() {
    let sources = sources();
    let floor: BTreeMap<&str, usize> = (0..)
        .zip(FLOORS)
        .flat_map(|(floor, modules)| modules.iter().map(move |name| (*name, floor)))
        .collect();
    let known: BTreeSet<_> = sources.keys().map(|file| module(file)).filter(|name| *name != "mod").collect();
    assert_eq!(floor.keys().copied().collect::<BTreeSet<_>>(), known);
    let exported = exported(&sources["mod.rs"]);
    let (mut found, mut wrong) = (0, Vec::new());
    for (file, text) in sources.iter().filter(|(file, _)| *file != "mod.rs") {
        let from = module(file);
        let depth =
            if file.ends_with("mod.rs") { file.matches('/').count() } else { file.matches('/').count() + 1 };
        for name in imported(text, depth) {
            let to = exported.get(&name).map_or(name.as_str(), String::as_str);
            let Some(above) = floor.get(to).filter(|_| to != from) else { continue };
            found += 1;
            if *above >= floor[from] {
                wrong.push(format!("{file} (floor {}) imports {name} of {to} (floor {above})", floor[from]));
            }
        }
    }
    assert!(found > 80, "only {found} imports were found");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The names that the core exports, with the module of each.
fn exported(text: &str) -> BTreeMap<String, String> {
    let mut exported = BTreeMap::new();
    for (at, _) in text.match_indices("pub use ") {
        let path = text[at + "pub use ".len()..].split(';').next().unwrap_or_default();
        let (module, names) = path.split_once("::").unwrap();
        for name in names.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()) {
            exported.insert(name.to_owned(), module.to_owned());
        }
    }
    exported
}

/// The first names behind `crate::core::` and behind the chain of `super::` that leads to the core from a module so deep below it.
fn imported(text: &str, depth: usize) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for way in ["crate::core::".to_owned(), "super::".repeat(depth)] {
        for (at, _) in text.match_indices(&way) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || "_:".contains(c)) {
                continue;
            }
            let path = &text[at + way.len()..];
            match path.strip_prefix('{') {
                Some(group) => names.extend(first_names(group)),
                None => names.extend(first_names(path).into_iter().take(1)),
            }
        }
    }
    names
}

/// The first name of each path of a group.
fn first_names(group: &str) -> Vec<String> {
    let (mut names, mut depth, mut part) = (Vec::new(), 0, String::new());
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' | ';' | '(' | ')' | '>' | ' ' if depth == 0 && !part.trim().is_empty() => {
                names.push(std::mem::take(&mut part));
            }
            _ => {}
        }
        if depth == 0 && (c.is_alphanumeric() || "_:".contains(c)) {
            part.push(c);
        }
    }
    names.push(part);
    let first = |path: String| path.split("::").next().unwrap_or_default().to_owned();
    names.into_iter().map(first).filter(|name| !name.is_empty()).collect()
}

#[test]
fn imports_of_the_core_are_found_in_every_form() {
    let code = "use super::super::{a, b::{c, d},\n    e};\nuse crate::core::f::G;\nfn x() -> super::super::H { super::i() }";
    assert_eq!(imported(code, 2).into_iter().collect::<Vec<_>>(), ["H", "a", "b", "e", "f"]);
    let text = "impl A {\n    fn a() {\n        let fn_b = 1;\n    }\n\n    pub(super) const fn c() {}\n}\n";
    let sources = BTreeMap::from([("a.rs".to_owned(), format!("\n{text}"))]);
    assert_eq!(methods(&sources, "A").0, 2);
}
