//! The fixed list of what the host runs later, and how a git directory is looked at.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::references::References;
use super::repository::{Depth, REMOTES};
use super::state::{Kind, Listing, Look, State};

/// Names at the top of a project, and in directories there, that a program of the user's reads and acts on by itself:
/// when a directory is opened or entered, at a commit, at the start of an editor or of an agent.
const WATCHED: &[&str] = &[
    // Shells and debuggers.
    ".envrc",
    ".gdbinit",
    ".lldbinit",
    // Editors.
    ".vscode/tasks.json",
    ".vscode/settings.json",
    ".vscode/launch.json",
    ".vscode/mcp.json",
    ".vscode/extensions.json",
    ".idea/runConfigurations",
    ".idea/workspace.xml",
    ".idea/tools",
    ".run",
    ".fleet/run.json",
    ".fleet/settings.json",
    ".zed/settings.json",
    ".zed/tasks.json",
    ".zed/debug.json",
    ".devcontainer",
    ".devcontainer.json",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".dir-locals.el",
    // Agents.
    ".mcp.json",
    ".claude",
    ".codex",
    ".gemini",
    ".cursor",
    ".windsurf",
    ".continue",
    ".roo",
    ".kiro",
    ".qwen",
    ".amazonq",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".aider.conf.yml",
    // What runs at a commit.
    ".husky",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    "lefthook.yaml",
    "lefthook.toml",
    "lefthook.json",
    ".lefthook.yml",
    ".lefthook.yaml",
    ".lefthook.toml",
    ".lefthook.json",
    "lefthook-local.yml",
    "lefthook-local.yaml",
    "lefthook-local.toml",
    "lefthook-local.json",
    ".lefthook-local.yml",
    ".lefthook-local.yaml",
    ".lefthook-local.toml",
    ".lefthook-local.json",
    ".lefthook",
    ".lefthook-local",
    ".overcommit.yml",
    // What a shell's hook reads in a directory that is entered: tools, and commands to run.
    "mise.toml",
    ".mise.toml",
    "mise.local.toml",
    ".mise.local.toml",
    "mise/config.toml",
    ".mise",
    ".config/mise.toml",
    ".config/mise",
    // A build that an editor starts by itself, and what it runs in place of the compiler.
    ".cargo/config.toml",
    ".cargo/config",
    // Other version control.
    ".hg/hgrc",
    ".hg/sharedpath",
    ".jj/repo/config.toml",
];

/// Our own files, whatever follows.
pub(super) const OURS: &[u8] = b".bailiwick";

/// What an editor opens as a project, with its tasks and settings.
pub(super) const WORKSPACE: &[u8] = b".code-workspace";

/// The git directory of a project.
pub(super) const GIT: &str = ".git";

/// What a root is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    /// A project.
    Project,
    /// A git directory that lies elsewhere.
    GitDirectory,
}

impl Root {
    /// Looks at everything that is watched beneath it.
    pub(super) fn look(self, root: &OwnedFd, references: &References, before: Option<&State>) -> State {
        let mut look = Look::new(before);
        match self {
            Self::Project => look.project(root),
            Self::GitDirectory => look.git_directory(root, Path::new(""), Depth::OWN),
        }
        for (path, kind) in references {
            // What is watched for itself is judged as what it is.
            if !look.state.places.contains_key(path) {
                look.watched(root, path, *kind);
            }
        }
        look.state
    }
}

impl Look<'_> {
    fn project(&mut self, root: &OwnedFd) {
        for name in WATCHED {
            self.watched(root, Path::new(name), Kind::Whole);
        }
        for (name, _) in self.entries(root, Path::new(""), Listing::Top) {
            self.place(root, PathBuf::from(name), Kind::Whole);
        }
        if let Some(git) = self.enter(root, Path::new(GIT)) {
            self.git_directory(&git, Path::new(GIT), Depth::OWN);
        }
    }

    fn watched(&mut self, root: &OwnedFd, path: &Path, kind: Kind) {
        let mut held: Option<OwnedFd> = None;
        let mut way = PathBuf::new();
        for step in path.parent().into_iter().flat_map(Path::components) {
            way.push(step);
            match self.enter(held.as_ref().unwrap_or(root), &way) {
                Some(directory) => held = Some(directory),
                None => return,
            }
        }
        self.place(held.as_ref().unwrap_or(root), path.to_owned(), kind);
    }
}

/// What is watched in what the link at `path` leads to: all of it, or the names of the fixed list that it stands for.
pub(super) fn led_to(path: &Path) -> Vec<&'static Path> {
    let ends_in = |names: &[&str]| names.iter().any(|name| path.ends_with(name));
    // What these lead to are repositories, which are searched for.
    if ends_in(&[GIT, "modules", "worktrees"]) {
        return Vec::new();
    }
    let listed = WATCHED.iter().filter_map(|name| Path::new(*name).strip_prefix(path).ok());
    let mut inside: Vec<_> = listed.collect();
    if inside.is_empty() {
        inside.push(Path::new(""));
    }
    inside
}

/// Whether a change at `relative` is one of what the host runs later, wherever in a project that is: in a repository, at or in
/// a place of the fixed list. Case counts for nothing, since there are file systems where it does not.
pub(crate) fn is_acted_on(relative: &Path) -> bool {
    let names: Vec<Vec<u8>> =
        relative.iter().map(|name| name.as_encoded_bytes().to_ascii_lowercase()).collect();
    let is_one =
        |name: &Vec<u8>| name == GIT.as_bytes() || name.starts_with(OURS) || name.ends_with(WORKSPACE);
    let listed = |from: &[Vec<u8>]| WATCHED.iter().any(|place| begins_with(from, place));
    names.iter().any(is_one) || (0..names.len()).any(|start| names.get(start..).is_some_and(listed))
}

fn begins_with(names: &[Vec<u8>], place: &str) -> bool {
    let mut steps = place.split('/').map(|step| step.to_ascii_lowercase().into_bytes());
    let mut names = names.iter();
    steps.all(|step| names.next() == Some(&step))
}

/// What of the watched places is there and can be protected by the kernel: relative to the root, and nothing that a
/// link leads to.
pub(super) fn to_protect(state: &State) -> Vec<PathBuf> {
    let is_whole = |path: &PathBuf| {
        let of_repository = path.parent().is_some_and(|git| state.repositories.contains(git));
        of_repository
            && path.file_name().is_some_and(|name| name == "hooks" || REMOTES.iter().any(|own| name == *own))
    };
    let directories = state.directories.iter().filter(|path| is_whole(path)).cloned();
    let is_judged_whole = |kind| matches!(kind, Kind::Whole | Kind::Config);
    let solid = state.places.iter().filter(|(_, place)| is_judged_whole(place.kind) && place.is_solid());
    directories.chain(solid.map(|(path, _)| path.clone())).collect()
}
