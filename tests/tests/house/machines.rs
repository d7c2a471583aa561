//! Tests the structure of the agent core and the session driver. Each consists of state machines. Only files in a
//! machine's own directory name its fields. The modules are in layers (floors), and import only from lower ones.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Module with state machines in it, and types that only route between them.
struct Hall {
    root: &'static str,
    /// Path of the module within its crate.
    module: &'static str,
    /// File and type of each state machine.
    machines: &'static [(&'static str, &'static str)],
    /// True if the router's field for a state machine has the name of its directory.
    has_folder_names: bool,
    routers: &'static [&'static str],
    /// Modules by floor, the lowest first. A module may import only modules of lower floors.
    floors: &'static [&'static [&'static str]],
}

const CORE: Hall = Hall {
    root: "supervisor/agent/src/core",
    module: "crate::core",
    machines: &[
        ("calls/machine.rs", "Calls"),
        ("conversation/machine.rs", "Conversation"),
        ("rights/machine.rs", "RightsState"),
        ("turn/machine.rs", "Turn"),
    ],
    has_folder_names: true,
    routers: &["Agent"],
    floors: &[
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
    ],
};

const DRIVER: Hall = Hall {
    root: "supervisor/src/engine/driver",
    module: "crate::engine::driver",
    machines: &[
        ("account.rs", "RunAccount"),
        ("approvals.rs", "Approvals"),
        ("calls/machine.rs", "OpenCalls"),
        ("calls/served.rs", "ServedCalls"),
        ("calls/write_queue.rs", "WriteQueue"),
        ("event_sink.rs", "EventSink"),
        ("flushes.rs", "Flushes"),
        ("guests.rs", "Guests"),
        ("model_stream.rs", "ModelStream"),
        ("modes.rs", "ModePlaces"),
        ("one_shots.rs", "OneShots"),
        ("own_calls/machine.rs", "OwnCalls"),
        ("run/machine.rs", "AgentRun"),
        ("session/agents.rs", "SessionAgents"),
        ("session/machine.rs", "Session"),
        ("session/rewind.rs", "OngoingRewind"),
        ("session/runs.rs", "AgentRuns"),
        ("session/tree.rs", "AgentTree"),
        ("session/user_actions.rs", "UserActions"),
        ("worker/live.rs", "LiveEntry"),
        ("worker/machine.rs", "SessionWorker"),
    ],
    has_folder_names: false,
    routers: &["AgentRun", "Session"],
    floors: &[
        &["account", "actions", "budget", "digest", "flushes", "models", "own_calls", "passing", "prepare"],
        &["sources", "timers", "tree_order", "tripwire", "write_turns"],
        &["boundary", "model_stream"],
        &["observer", "started"],
        &["changes", "one_shot", "written_files"],
        &["rewinder"],
        &["one_shots", "snapshots"],
        &["shared"],
        &["event_sink", "modes"],
        &["approvals", "calls", "worker"],
        &["guests"],
        &["run"],
        &["session"],
    ],
};

/// Maximum number of methods of a type that only routes.
const MOST_METHODS: usize = 40;

/// Maximum number of files that contain a type's methods.
const MOST_FILES: usize = 4;

impl Hall {
    fn root(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(self.root)
    }

    /// Returns the production code of each file, by its path in the directory.
    fn sources(&self) -> BTreeMap<String, String> {
        let mut sources = BTreeMap::new();
        walk(&self.root(), &mut |path| {
            let name = path.strip_prefix(self.root()).unwrap().display().to_string();
            if !name.split('/').any(|part| part == "tests" || part == "tests.rs") {
                sources.insert(name, production(&std::fs::read_to_string(path).unwrap()));
            }
        });
        assert!(sources.len() > 30, "only {} files were found", sources.len());
        sources
    }
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

/// Returns the production part of a file, without comments.
fn production(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.collect::<Vec<_>>().join("\n")
}

/// Returns the name of the module, directly below the root, that a file belongs to.
fn module(file: &str) -> &str {
    let first = file.split('/').next().unwrap_or_default();
    first.strip_suffix(".rs").unwrap_or(first)
}

/// Returns the text from `head` to the next closing brace at the beginning of a line. `None` without `head`.
fn block<'a>(text: &'a str, head: &str) -> Option<&'a str> {
    let (_, after) = text.split_once(head)?;
    after.split("\n}").next()
}

/// Returns the fields of a type, each with its visibility.
fn fields(text: &str, name: &str) -> Vec<(String, String)> {
    let body = block(text, &format!(" struct {name} {{")).unwrap();
    let field = |line: &str| {
        let (before, _) = line.trim().split_once(": ")?;
        let (visibility, name) = before.rsplit_once(' ').unwrap_or(("", before));
        Some((visibility.to_owned(), name.to_owned()))
    };
    body.lines().filter_map(field).collect()
}

/// Returns the number of a type's methods, and the files that contain them.
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
    for hall in [CORE, DRIVER] {
        let sources = hall.sources();
        for (file, name) in hall.machines {
            let fields = fields(&sources[*file], name);
            assert!(fields.len() > 1, "{name}: {fields:?}");
            let has_folder = file.contains('/');
            for (visibility, field) in &fields {
                let is_private = visibility.is_empty() || has_folder && visibility == "pub(super)";
                assert!(is_private, "{name}::{field} is {visibility}");
            }
            let holder = module(file);
            for (other, text) in
                sources.iter().filter(|(other, _)| hall.has_folder_names && module(other) != holder)
            {
                for (_, field) in &fields {
                    let named = format!("{holder}.{field}");
                    let mut uses = text.match_indices(&named).map(|(at, _)| &text[at + named.len()..]);
                    let is_field =
                        |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '(');
                    assert!(!uses.any(is_field), "{other} names {named}");
                }
            }
        }
    }
}

#[test]
fn a_router_only_routes() {
    for hall in [CORE, DRIVER] {
        let sources = hall.sources();
        for router in hall.routers {
            let (count, _) = methods(&sources, router);
            assert!((20..=MOST_METHODS).contains(&count), "{router} has {count} methods");
        }
    }
}

#[test]
fn methods_of_a_type_stand_in_at_most_four_files() {
    for hall in [CORE, DRIVER] {
        let sources = hall.sources();
        for name in hall.machines.iter().map(|(_, name)| *name).chain(hall.routers.iter().copied()) {
            let (count, files) = methods(&sources, name);
            assert!(count > 0 && files.len() <= MOST_FILES, "{name}: {files:?}");
        }
    }
}

#[test]
fn modules_import_lower_floors_alone() {
    for hall in [CORE, DRIVER] {
        let sources = hall.sources();
        let floor: BTreeMap<&str, usize> = (0..)
            .zip(hall.floors)
            .flat_map(|(floor, modules)| modules.iter().map(move |name| (*name, floor)))
            .collect();
        let known: BTreeSet<_> =
            sources.keys().map(|file| module(file)).filter(|name| *name != "mod").collect();
        assert_eq!(floor.keys().copied().collect::<BTreeSet<_>>(), known);
        let exported = exported(&sources["mod.rs"]);
        let (mut found, mut wrong) = (0, Vec::new());
        for (file, text) in sources.iter().filter(|(file, _)| *file != "mod.rs") {
            let from = module(file);
            let steps = file.matches('/').count();
            let depth = if file.ends_with("mod.rs") { steps } else { steps + 1 };
            for name in imported(text, hall.module, depth) {
                let to = exported.get(&name).map_or(name.as_str(), String::as_str);
                let Some(above) = floor.get(to).filter(|_| to != from) else { continue };
                found += 1;
                if *above >= floor[from] {
                    let own = floor[from];
                    wrong.push(format!("{file} (floor {own}) imports {name} of {to} (floor {above})"));
                }
            }
        }
        assert!(found > 60, "{}: only {found} imports were found", hall.root);
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    }
}

/// Returns the names that a module exports, each with the submodule that defines it.
fn exported(text: &str) -> BTreeMap<String, String> {
    let mut exported = BTreeMap::new();
    // `use` and `pub use` both count as exports.
    for (at, _) in text.match_indices(" use ") {
        let path = text[at + " use ".len()..].split(';').next().unwrap_or_default();
        let Some((module, names)) = path.split_once("::") else { continue };
        for name in names.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()) {
            exported.insert(name.to_owned(), module.to_owned());
        }
    }
    exported
}

/// Returns the first names after a module's path, and after the `super::` chain that leads to the module from `depth`
/// levels below.
fn imported(text: &str, root: &str, depth: usize) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for way in [format!("{root}::"), "super::".repeat(depth)] {
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

/// Returns the first name of each path in a braced group.
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
fn imports_are_found_in_every_form() {
    let code = "use super::super::{a, b::{c, d},\n    e};\nuse crate::core::f::G;\nfn x() -> super::super::H { super::i() }";
    assert_eq!(imported(code, "crate::core", 2).into_iter().collect::<Vec<_>>(), ["H", "a", "b", "e", "f"]);
    let text = "impl A {\n    fn a() {\n        let fn_b = 1;\n    }\n\n    pub(super) const fn c() {}\n}\n";
    let sources = BTreeMap::from([("a.rs".to_owned(), format!("\n{text}"))]);
    assert_eq!(methods(&sources, "A").0, 2);
}
