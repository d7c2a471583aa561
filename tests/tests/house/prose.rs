//! Tests that no doc comment is one word, that type names are unique, and that only listed files match approval modes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const CRATES: [&str; 12] = [
    "ipc/complaint/src",
    "ipc/picture/src",
    "ipc/protocol/src",
    "ipc/src",
    "sandbox-exec/src",
    "supervisor/agent/src",
    "supervisor/boundary/src",
    "supervisor/gate/src",
    "supervisor/model/src",
    "supervisor/src",
    "tui/src",
    "worker/src",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Returns the path and the code of each source of the product, without tests and comments.
pub(super) fn sources() -> Vec<(String, String)> {
    let listed = Command::new("git").args(["ls-files", "--"]).args(CRATES).current_dir(root()).output();
    let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
    let is_product = |path: &&str| {
        Path::new(path).extension().is_some_and(|kind| kind == "rs") && !path.contains("/tests")
    };
    let read = |path: &str| (path.to_owned(), code(&std::fs::read_to_string(root().join(path)).unwrap()));
    listed.lines().filter(is_product).map(read).collect()
}

fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Files that may compare an approval mode: those that define its words, the decision table and the flag, and those of
/// the terminal UI, since that crate does not link the decision table.
const OF_MODES: [&str; 6] = [
    "ipc/protocol/src/approval/scope.rs",
    "supervisor/gate/src/modes.rs",
    "supervisor/src/settings/args/values.rs",
    "tui/src/model/greeting.rs",
    "tui/src/update/access.rs",
    "tui/src/update/typed.rs",
];

/// True if a line compares with a variant of `ApprovalMode`, or matches one.
fn decides_by_mode(line: &str) -> bool {
    line.match_indices("ApprovalMode::").any(|(at, name)| {
        let before =
            line[..at].trim_end_matches(|c: char| c.is_alphanumeric() || "_:".contains(c)).trim_end();
        let after = &line[at + name.len()..];
        let is_variant = after.starts_with(|c: char| c.is_uppercase()) && !after.starts_with("ALL");
        let rest = after.trim_start_matches(char::is_alphanumeric).trim_start();
        let is_compared = ["==", "!="].iter().any(|sign| before.ends_with(sign) || rest.starts_with(sign));
        is_variant
            && (is_compared
                || after.contains("=>")
                || before.contains("matches!(")
                || before.contains("if let "))
    })
}

#[test]
fn a_mode_is_judged_by_the_table_alone() {
    let mut found = Vec::new();
    for (path, code) in sources() {
        let lines = code.lines().filter(|line| decides_by_mode(line));
        let is_allowed = OF_MODES.contains(&path.as_str());
        found.extend(lines.filter(|_| !is_allowed).map(|line| format!("{path}: {}", line.trim())));
    }
    assert!(found.is_empty(), "asked of gate::modes::permits:\n{}", found.join("\n"));
    for path in ["supervisor/gate/src/modes.rs", "tui/src/update/typed.rs"] {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        let by_default = code(&text).lines().any(|line| {
            line.contains("_ =>") && line.contains("ApprovalMode") || line.contains("== ApprovalMode::")
        });
        assert!(!by_default, "{path}");
    }
}

#[test]
fn comparisons_and_patterns_of_a_mode_are_found() {
    for line in [
        "if self.mode == ApprovalMode::Deny {",
        "(mode != crate::modes::ApprovalMode::Deny).then_some(project)",
        "if ApprovalMode::Ask == mode {",
        "(Activity::Execute, ApprovalMode::Deny) => first,",
        "matches!(mode, ApprovalMode::Auto)",
    ] {
        assert!(decides_by_mode(line), "{line}");
    }
    for line in ["Mode::fixed(ApprovalMode::Deny)", "modes: ApprovalMode::ALL.into(),", "mode == self.mode"] {
        assert!(!decides_by_mode(line), "{line}");
    }
}

/// True if a line compares with a state of the network, instead of calling a method that matches each state.
fn compares_network(line: &str) -> bool {
    ["== ", "!= "].iter().flat_map(|sign| line.split(sign).skip(1)).any(|right| {
        let right = right.trim_start_matches("Some(");
        let path =
            right.split(|c: char| !(c.is_alphanumeric() || "_:".contains(c))).next().unwrap_or_default();
        ["Network::On", "Network::Off", "NetworkState::On", "NetworkState::Off"]
            .iter()
            .any(|state| path.ends_with(state))
    }) || line.contains("matches!(") && (line.contains("Network::O") || line.contains("NetworkState::O"))
}

#[test]
fn the_network_is_asked_and_never_compared() {
    for line in [
        "if rights.net == Network::Off {",
        "call.network != Some(Network::On)",
        "(run.net == ipc::rights::Network::On).then(f)",
        "summary.net == NetworkState::Off",
        "matches!(net, Network::On)",
    ] {
        assert!(compares_network(line), "{line}");
    }
    assert!(!compares_network("Network::On => a == b,"));
    let mut found = Vec::new();
    for (path, code) in sources() {
        let lines = code.lines().filter(|line| compares_network(line));
        found.extend(lines.map(|line| format!("{path}: {}", line.trim())));
    }
    assert!(found.is_empty(), "asked by a method of Network:\n{}", found.join("\n"));
}

/// Tests that no doc comment consists of one word, since such a comment only repeats a name.
#[test]
fn no_doc_comment_is_a_single_word() {
    let mut found = Vec::new();
    let listed = Command::new("git").args(["ls-files", "--", "*.rs"]).current_dir(root()).output().unwrap();
    for path in String::from_utf8(listed.stdout).unwrap().lines() {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        let is_doc = |at: usize| {
            lines.get(at).is_some_and(|line| line.starts_with("///") && !line.starts_with("////"))
        };
        for at in (0..lines.len()).filter(|&at| is_doc(at)) {
            let is_alone = !is_doc(at + 1) && at.checked_sub(1).is_none_or(|before| !is_doc(before));
            if is_alone && lines[at].trim_start_matches('/').split_whitespace().count() < 2 {
                found.push(format!("{path}:{}: {}", at + 1, lines[at]));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Returns the name of the type that a line defines, else `None`. Types in functions count, associated types do not.
fn defined(line: &str) -> Option<&str> {
    let item = line.trim_start();
    let item = item.strip_prefix("pub").map_or(item, |rest| {
        let rest =
            rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest);
        rest.trim_start()
    });
    let (kind, rest) = item.split_once(' ')?;
    let is_type =
        matches!(kind, "struct" | "enum" | "trait" | "union") || (kind == "type" && !line.starts_with(' '));
    let name = rest.split(|character: char| !character.is_alphanumeric()).next()?;
    (is_type && name.starts_with(char::is_uppercase)).then_some(name)
}

/// Tests that a search for a type's name in a crate finds one type.
#[test]
fn no_two_types_of_a_crate_share_a_name() {
    assert_eq!(defined("    pub(super) struct Held<'a> {"), Some("Held"));
    assert_eq!(defined("    type Output = u8;"), None);
    let mut places = BTreeMap::<_, Vec<_>>::new();
    let sources = sources();
    for (path, code) in &sources {
        let name = path.split_once("/src/").map(|(name, _)| name);
        for defined in code.lines().filter_map(defined) {
            places.entry((name, defined)).or_default().push(path.as_str());
        }
    }
    assert!(places.len() > 1000, "{} types", places.len());
    let shared = places.iter().filter(|(_, paths)| paths.len() > 1);
    let shared: Vec<_> = shared.map(|((_, name), paths)| format!("{name}: {}", paths.join(", "))).collect();
    assert!(shared.is_empty(), "{}", shared.join("\n"));
}
