//! Tests everyday uses of git by agents: they work, and the tripwire reports none of them.

use ipc::confinement::Tier;
use serde_json::Value;
use tests::repository::{repository, shell};
use tests::side_by_side::side_by_side;
use tests::{User, tier};

use crate::tripwire::attack::{IDENTITY, attack, attack_with, restored};

/// Access that git needs in the full tier in addition to the access that an agent has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// Permission to configure git.
    Configuration,
    /// Removal of a file that is a mount point in the full tier. Only the floor tier permits it.
    Floor,
}

/// Uses of git that people let agents make. The tripwire reports none of them, and all changes stay.
const LEGITIMATE: &[(Needs, &str)] = &[
    (
        Needs::Nothing,
        "echo a > a && git add a && git commit -qm a && git log --oneline && git branch b && git checkout -q b",
    ),
    (Needs::Configuration, "git branch b && git checkout -q b && git branch -m b c"),
    (
        Needs::Nothing,
        "echo b >> kept.txt && git stash && git stash pop && git tag t && git gc -q && git reflog && git repack -adq",
    ),
    (
        Needs::Configuration,
        "git remote add origin https://example.org/x.git && git branch main2 && git config branch.main2.remote origin",
    ),
    (
        Needs::Nothing,
        "git worktree add -q wt && git -C wt commit -q --allow-empty -m x && git worktree list && git worktree remove wt",
    ),
    (Needs::Nothing, "git worktree add -q kept-wt && test -f kept-wt/.git"),
    (
        Needs::Nothing,
        "git clone -q . copy && git -C copy log -1 && git clone -q --bare . copy.git && git clone -q copy.git again",
    ),
    (
        Needs::Nothing,
        "git init -q new && cd new && git config user.email a@b && touch f && git add f && git commit -qm f",
    ),
    (
        Needs::Nothing,
        "git init -q --bare hub.git && git push -q hub.git HEAD:refs/heads/main && git fetch -q hub.git main",
    ),
    (
        Needs::Configuration,
        "git clone -q . lib && git -c protocol.file.allow=always submodule --quiet add ./lib sub && git commit -qm sub \
        && git submodule update --init && git -C sub status",
    ),
    (Needs::Configuration, "git sparse-checkout set --cone . && git sparse-checkout disable"),
    (
        Needs::Nothing,
        "git rebase -q HEAD && git cherry-pick --allow-empty --keep-redundant-commits HEAD && git merge -q HEAD",
    ),
    (Needs::Configuration, "git config user.name me"),
    (Needs::Floor, "rm -rf .git && git init -q && git add -A && git commit -qm again"),
    (
        Needs::Nothing,
        "git commit -q --allow-empty -m more && GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -i HEAD~1",
    ),
    // Commits that are left to the patch.
    (
        Needs::Nothing,
        "mkdir -p .github/workflows && echo 'on: push' > .github/workflows/ci.yml && echo A=1 > .env && \
        touch flake.nix shell.nix devenv.nix Makefile package.json conftest.py .eslintrc.js AGENTS.md .tool-versions",
    ),
];

#[test]
fn what_people_let_agents_do_with_git_is_not_flagged() {
    let cases = LEGITIMATE.iter().enumerate();
    let cases = cases.flat_map(|(case, act)| tier::share(case).into_iter().map(move |place| (place, act)));
    side_by_side(cases, |((user, tier), (needs, command))| {
        let flags: &[&str] = match (tier, needs) {
            (Tier::Floor | Tier::FloorUnmediated, _) | (_, Needs::Nothing) => &[],
            (Tier::Full, Needs::Configuration) => &["--write", ".git/config"],
            (Tier::Full, Needs::Floor) => return,
        };
        let world = repository(user);
        let (done, told) = attack_with(&world, tier, flags, &format!("{IDENTITY}{command}"));
        assert_ne!(told["is_error"], true, "{tier}: {command}: {told}");
        assert_eq!(done.events_of("restored"), Vec::<Value>::new(), "{tier}: {command}: {told}");
        assert_eq!(shell(&world, "git fsck").code, 0, "{tier}: {command}");
    });
}

/// Some git commands exit with 0 although a write was refused, so the refusal must be reported.
#[test]
fn what_git_may_not_write_in_the_full_tier_is_said_with_the_right_to_it() {
    for user in tier::all().into_iter().filter(|tier| *tier == Tier::Full).flat_map(|_| User::all()) {
        let configured = LEGITIMATE.iter().filter(|(needs, _)| *needs == Needs::Configuration);
        let shrugged_off = "git branch b; git branch --set-upstream-to=b; git branch -m b c; true";
        for command in configured.map(|(_, command)| *command).chain([shrugged_off]) {
            let world = repository(user);
            let before = world.read(".git/config");
            let (done, told) = attack(&world, Tier::Full, &format!("{IDENTITY}{command}"));
            assert_eq!(world.read(".git/config"), before, "{command}");
            let said = told["content"].to_string();
            assert!(said.contains("--write .git/config"), "{user:?} {command}: {said}");
            assert_eq!(restored(&done), Vec::<String>::new());
            assert_eq!(shell(&world, "git fsck && git status").code, 0, "{command}");
        }
    }
}
