//! Tests the dependency table of the design: the imports and packages that each crate may use are those that it uses.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

struct Row {
    name: &'static str,
    place: &'static str,
    ours: &'static [&'static str],
    /// Packages that the crate depends on directly.
    packages: &'static [&'static str],
    /// Beginnings of names of packages that must not be among the crate's dependencies, direct or not.
    never: &'static [&'static str],
}

const NETWORK: &[&str] = &["reqwest", "hyper", "h2", "rustls", "native-tls", "openssl", "ring", "webpki"];
/// Network packages that a client of a single connection does not need.
const HTTP_STACKS: &[&str] = &["reqwest", "h2", "native-tls", "openssl-sys", "aws-lc"];
const TERMINAL: &[&str] = &["ratatui", "crossterm"];
const CONFINEMENT: &[&str] = &["landlock", "seccompiler", "caps"];
const RUNTIME: &[&str] = &["tokio", "async-std", "smol"];

const TABLE: &[(Row, &[&[&str]])] = &[
    (
        Row {
            name: "ipc",
            place: "ipc",
            ours: &[],
            packages: &["serde", "bincode", "tokio-serde", "tokio"],
            never: &[],
        },
        &[NETWORK, TERMINAL, CONFINEMENT],
    ),
    (
        Row {
            name: "protocol",
            place: "ipc/protocol",
            ours: &["ipc"],
            packages: &["ipc", "schemars", "serde"],
            never: &["nix"],
        },
        &[RUNTIME, NETWORK, TERMINAL, CONFINEMENT],
    ),
    (
        Row {
            name: "complaint",
            place: "ipc/complaint",
            ours: &["ipc"],
            packages: &["ipc", "libc"],
            never: &[],
        },
        &[RUNTIME, NETWORK, TERMINAL, CONFINEMENT],
    ),
    (
        Row { name: "picture", place: "ipc/picture", ours: &["ipc"], packages: &["ipc"], never: &[] },
        &[RUNTIME, NETWORK, TERMINAL, CONFINEMENT],
    ),
    (
        Row {
            name: "sandbox-exec",
            place: "sandbox-exec",
            ours: &["ipc"],
            packages: &["landlock", "seccompiler", "caps", "nix", "dlmalloc"],
            never: &["complaint", "mio", "picture", "protocol", "socket2"],
        },
        &[RUNTIME, NETWORK, TERMINAL],
    ),
    (
        Row {
            name: "worker",
            place: "worker",
            ours: &["complaint", "ipc", "picture", "sandbox-exec"],
            packages: &[
                "tokio",
                "grep-searcher",
                "html2text",
                "hyper",
                "ignore",
                "rmcp",
                "rustls",
                "tracing",
            ],
            never: &["protocol"],
        },
        &[HTTP_STACKS, TERMINAL],
    ),
    (
        Row {
            name: "tui",
            place: "tui",
            ours: &["ipc", "protocol"],
            packages: &["ratatui", "crossterm"],
            never: &[],
        },
        &[NETWORK, CONFINEMENT],
    ),
    (
        Row {
            name: "gate",
            place: "supervisor/gate",
            ours: &["complaint", "ipc", "protocol"],
            packages: &["ipc", "schemars", "similar"],
            never: &["nix"],
        },
        &[RUNTIME, NETWORK, TERMINAL, CONFINEMENT],
    ),
    (
        Row {
            name: "agent",
            place: "supervisor/agent",
            ours: &["gate", "ipc", "picture", "protocol"],
            packages: &["gate", "ipc"],
            never: &["nix"],
        },
        &[RUNTIME, NETWORK, TERMINAL, CONFINEMENT],
    ),
    (
        Row {
            name: "boundary",
            place: "supervisor/boundary",
            ours: &["complaint", "gate", "ipc", "picture", "protocol"],
            packages: &["gate", "ipc", "nix", "tokio"],
            never: &[],
        },
        &[NETWORK, TERMINAL, CONFINEMENT],
    ),
    (
        Row {
            name: "model",
            place: "supervisor/model",
            ours: &["agent", "gate", "ipc", "picture", "protocol"],
            packages: &["agent", "eventsource-stream", "hyper", "reqwest", "rustls", "secrecy"],
            never: &[],
        },
        &[TERMINAL, CONFINEMENT],
    ),
    (
        Row {
            name: "supervisor",
            place: "supervisor",
            ours: &["agent", "boundary", "complaint", "gate", "ipc", "model", "picture", "protocol", "tui"],
            packages: &["tokio", "nix", "tracing", "agent", "boundary", "gate", "model"],
            never: &[],
        },
        &[CONFINEMENT],
    ),
];

/// Network packages on which only `model` may depend directly.
const OF_THE_MODEL: &[&str] = &["reqwest", "hyper", "hyper-util", "rustls", "webpki-root-certs"];

const CRATES: &[&str] = &[
    "agent",
    "bench",
    "boundary",
    "complaint",
    "gate",
    "ipc",
    "model",
    "picture",
    "protocol",
    "sandbox-exec",
    "supervisor",
    "tests",
    "tui",
    "worker",
];

/// Directories at the top of the repository that contain crates or belong to them.
const TOP: &[&str] = &[".cargo", "fixtures", "ipc", "sandbox-exec", "supervisor", "tests", "tui", "worker"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn metadata() -> Value {
    serde_json::from_str(&cargo(&["metadata", "--format-version=1", "--no-deps", "--offline"])).unwrap()
}

/// Returns the names of a crate's direct dependencies of one kind.
fn direct(metadata: &Value, name: &str, kind: &Value) -> BTreeSet<String> {
    let package = metadata["packages"].as_array().unwrap().iter().find(|package| package["name"] == name);
    let dependencies =
        package.unwrap_or_else(|| panic!("no package {name}"))["dependencies"].as_array().unwrap();
    let of_kind = dependencies.iter().filter(|dependency| dependency["kind"] == *kind);
    of_kind.map(|dependency| dependency["name"].as_str().unwrap().to_owned()).collect()
}

/// Returns the names of all packages that are linked into a crate. Each crate is queried separately, because features
/// unify in a workspace.
fn tree(name: &str) -> BTreeSet<String> {
    let text =
        cargo(&["tree", "--offline", "-e", "normal", "-p", name, "--prefix", "none", "--format", "{p}"]);
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn sources(directory: &Path, text: &mut String) {
    walk(directory, &mut |path, source| {
        if !is_test(path) {
            text.push_str(source);
        }
    });
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests")
}

#[test]
fn no_code_directory_stands_beside_the_crates() {
    let output = Command::new("git").args(["ls-files"]).current_dir(root()).output().unwrap();
    let listing = String::from_utf8(output.stdout).unwrap();
    let with_code = listing.lines().filter(|path| [".rs", ".toml"].iter().any(|end| path.ends_with(end)));
    let tops: BTreeSet<_> = with_code.filter_map(|path| path.split_once('/')).map(|(top, _)| top).collect();
    for top in tops {
        assert!(TOP.contains(&top), "{top}/ holds code");
    }
}

#[test]
fn crates_import_only_what_the_table_allows() {
    let metadata = metadata();
    for (row, _) in TABLE {
        let direct = direct(&metadata, row.name, &Value::Null);
        for other in CRATES.iter().filter(|other| direct.contains(**other)) {
            assert!(row.ours.contains(other), "{} imports {other}", row.name);
        }
    }
}

// Maximum number of crates, of imports between them, and of crates in the longest chain of imports.
const MOST_CRATES: usize = 12;
const MOST_IMPORTS: usize = 40;
const MOST_FLOORS: usize = 7;

#[test]
fn the_graph_of_crates_is_small_and_flat() {
    let metadata = metadata();
    let mut imports = Vec::new();
    for (row, _) in TABLE {
        let direct = direct(&metadata, row.name, &Value::Null);
        imports
            .extend(CRATES.iter().filter(|other| direct.contains(**other)).map(|other| (row.name, *other)));
    }
    assert!(TABLE.len() <= MOST_CRATES, "{} crates", TABLE.len());
    assert!(imports.len() <= MOST_IMPORTS, "{} imports: {imports:?}", imports.len());
    // A crate without imports is on the lowest floor, every other one above all that it imports.
    let mut floors: Vec<Vec<&str>> = Vec::new();
    let mut left: Vec<_> = TABLE.iter().map(|(row, _)| row.name).collect();
    while !left.is_empty() {
        let is_above = |name: &&str| imports.iter().any(|(from, to)| from == name && left.contains(to));
        let (above, floor): (Vec<_>, Vec<_>) = left.iter().partition(|name| is_above(name));
        assert!(!floor.is_empty(), "imports in a circle among {above:?}");
        floors.push(floor);
        left = above;
    }
    assert!(floors.len() <= MOST_FLOORS, "{floors:?}");
}

#[test]
fn crates_never_link_what_the_table_forbids() {
    for (row, groups) in TABLE {
        let tree = tree(row.name);
        assert!(tree.contains(row.name), "cargo tree of {} is empty", row.name);
        for forbidden in groups.iter().flat_map(|group| group.iter()).chain(row.never) {
            let found: Vec<_> = tree.iter().filter(|name| name.starts_with(forbidden)).collect();
            // The asynchronous pipe ends of ipc consist of packages of tokio. With its default features, ipc has none
            // of these.
            assert!(found.is_empty(), "{} links {found:?}", row.name);
        }
    }
}

#[test]
fn only_the_model_and_the_fetch_speak_http() {
    let metadata = metadata();
    // The worker's program has a role that fetches pages in a separate sandbox.
    for (row, _) in TABLE.iter().filter(|(row, _)| !["model", "worker"].contains(&row.name)) {
        let direct = direct(&metadata, row.name, &Value::Null);
        let found: Vec<_> = OF_THE_MODEL.iter().filter(|package| direct.contains(**package)).collect();
        assert!(found.is_empty(), "{} names {found:?}", row.name);
    }
}

#[test]
fn ipc_by_itself_has_no_runtime() {
    let tree = tree("ipc");
    assert!(!tree.iter().any(|name| name.starts_with("tokio")), "{tree:?}");
}

#[test]
fn the_tables_packages_are_direct_and_used() {
    let metadata = metadata();
    for (row, _) in TABLE {
        let direct = direct(&metadata, row.name, &Value::Null);
        let mut text = String::new();
        sources(&root().join(row.place).join("src"), &mut text);
        for package in row.packages {
            assert!(direct.contains(*package), "{} does not depend on {package}", row.name);
        }
        for package in direct {
            let identifier = package.replace('-', "_");
            let used =
                text.contains(&format!("{identifier}::")) || text.contains(&format!("use {identifier};"));
            assert!(used, "{} depends on {package} and does not use it", row.name);
        }
    }
}

/// Tests that code with decisions does no input or output, so it can be tested and replayed. Exceptions: the gate reads
/// a clock for the time in an approval card, and the home directory for `~` in a tool's path.
#[test]
fn agent_gate_and_lattice_do_no_io() {
    const IO: &[&str] = &["std::fs", "std::net", "std::process", "tokio::"];
    const SURROUNDINGS: &[&str] = &["std::env", "Instant::now", "SystemTime::now"];
    for (place, sees_surroundings) in [
        ("supervisor/agent/src", false),
        ("supervisor/gate/src", true),
        ("supervisor/gate/src/judgement", false),
        ("ipc/src/rights", false),
        ("ipc/src/phase.rs", false),
    ] {
        let path = root().join(place);
        let mut text = String::new();
        if path.is_dir() {
            walk(&path, &mut |path, source| {
                let production = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
                text.push_str(if is_test(path) { "" } else { production });
            });
        } else {
            text = std::fs::read_to_string(path).unwrap();
        }
        let surroundings = SURROUNDINGS.iter().filter(|_| !sees_surroundings);
        for forbidden in IO.iter().chain(surroundings) {
            assert!(!text.contains(forbidden), "{place} uses {forbidden}");
        }
    }
}

/// Tests that only the monitor starts processes, except for listed files with a reason.
#[test]
fn only_the_monitor_starts_processes() {
    let mut offenders = Vec::new();
    for name in TABLE.iter().map(|(row, _)| row.place) {
        walk(&root().join(name).join("src"), &mut |path, text| {
            let production = text.split("#[cfg(test)]").next().unwrap_or_default();
            let starts = ["Command::new(", "posix_spawn("].iter().any(|call| production.contains(call));
            if !is_test(path) && starts {
                offenders.push(path.strip_prefix(root()).unwrap().display().to_string());
            }
        });
    }
    offenders.sort();
    // A worker executes itself as a reaper. The guest around an MCP server starts that server, with the guest's access.
    // The demo starts the session that it attacks, and git for new repositories that only the demo has written. The
    // terminal UI starts the editor that the person's environment names, on a copy of a plan or of a message; `show`
    // starts the pager that the environment names, on its standard input. Ctrl+V starts a fixed program that prints the
    // clipboard. A batch starts its own program, as `exec` and as `sandbox`.
    assert_eq!(
        offenders,
        [
            "sandbox-exec/src/command/start.rs",
            "supervisor/boundary/src/monitor/child.rs",
            "supervisor/src/front/batch/command.rs",
            "supervisor/src/front/demo/attack/session.rs",
            "supervisor/src/front/demo/project.rs",
            "supervisor/src/process/clipboard.rs",
            "supervisor/src/process/editor.rs",
            "supervisor/src/process/pager.rs",
            "worker/src/mcp/server.rs",
        ]
    );
}

fn walk(directory: &Path, visit: &mut impl FnMut(&Path, &str)) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, visit);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            visit(&path, &std::fs::read_to_string(&path).unwrap());
        }
    }
}
