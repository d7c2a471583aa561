//! Tests that agents can neither change nor add settings of other programs than git.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use tests::repository::repository;
use tests::tier;

use crate::tripwire::attack::{attack, is_known};

/// Tests files that other programs execute: existing ones stay unchanged, and no new ones appear.
#[test]
fn settings_of_editors_shells_and_agents_stay_what_they_were() {
    const NAMES: &[&str] = &[
        ".envrc",
        ".mcp.json",
        ".vscode/tasks.json",
        ".vscode/settings.json",
        ".idea/workspace.xml",
        ".claude/settings.json",
        ".claude/hooks/deep/x",
        ".codex/config.toml",
        ".cursor/mcp.json",
        ".gemini/settings.json",
        ".devcontainer/devcontainer.json",
        ".husky/pre-commit",
        ".bailiwick",
        ".bailiwick.toml",
        ".bailiwick-next/policy",
    ];
    let all = NAMES.join(" ");
    for (user, tier) in tier::everywhere() {
        for (name, command) in [
            ("written", format!("for f in {all}; do mkdir -p $(dirname $f); echo evil > $f; done")),
            ("linked", format!("for f in {all}; do mkdir -p $(dirname $f); ln -sfn ../evil.sh $f; done")),
            (
                "linked above",
                format!("mkdir e; for f in {all}; do d=${{f%%/*}}; rm -rf $d; ln -sfn e $d; done"),
            ),
            (
                "replaced by fifos",
                format!("for f in {all}; do mkdir -p $(dirname $f); rm -f $f; mkfifo $f; done"),
            ),
            ("replaced by directories", format!("for f in {all}; do rm -rf $f; mkdir -p $f/x; done")),
            (
                "closed",
                format!("for f in {all}; do mkdir -p $(dirname $f); echo evil > $f; chmod 0 $f; done"),
            ),
            ("removed", format!("for f in {all}; do rm -rf ${{f%%/*}}; done; echo evil > .envrc")),
        ] {
            let missing = repository(user);
            let before = listing(missing.project().as_path());
            attack(&missing, tier, &command);
            let after = listing(missing.project().as_path());
            let news: Vec<_> = after.iter().filter(|line| !before.contains(line)).collect();
            assert!(
                news.iter().all(|line| line.starts_with("e ") || line.starts_with(".git")),
                "{name}, {tier}: {news:?}"
            );

            let existing = repository(user);
            for file in NAMES {
                // Bailiwick's own settings file is parsed, so it must be valid.
                let path = existing.file(file, format!("# the user's {file}\n"));
                fs::set_permissions(path, fs::Permissions::from_mode(0o640)).unwrap();
            }
            let before = listing(existing.project().as_path());
            let (done, told) = attack(&existing, tier, &command);
            let after = listing(existing.project().as_path());
            for line in before.iter().filter(|line| !line.starts_with(".git")) {
                assert!(after.contains(line), "{name}, {tier}: {line} is not in {after:?}\n{}", done.stdout);
            }
            assert!(is_known(tier, &done, &told), "{name}, {tier}: {told}");
        }
    }
}

/// Returns path, type, mode and content of all files except git's own.
fn listing(project: &Path) -> Vec<String> {
    fn walk(directory: &Path, base: &Path, lines: &mut Vec<String>) {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let content =
                if meta.is_file() { fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
            let name = path.strip_prefix(base).unwrap().display();
            lines.push(format!("{name} {:o} {content}", meta.mode()));
            if meta.is_dir() && name.to_string() != ".git" {
                walk(&path, base, lines);
            }
        }
    }
    let mut lines = Vec::new();
    walk(project, project, &mut lines);
    lines.sort();
    lines
}
