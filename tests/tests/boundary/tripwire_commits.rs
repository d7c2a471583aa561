//! Tests a person's branches with different versions of files that the host executes later. In both tiers, git can
//! check out these branches, but an agent cannot bring content into the files in this way.

use ipc::confinement::Tier;
use serde_json::json;
use tests::replies::model;
use tests::repository::{repository, shell};
use tests::{Finished, User, World, tier};

use crate::tripwire::attack::{IDENTITY, run};

/// Commands that create two branches of a person with newer commits, an older commit, and a file that git ignores.
const BRANCHES: &str = "git checkout -q -b main; mkdir .vscode .husky; echo .pdbrc > .gitignore; echo mine > .pdbrc; \
    echo 0 > .envrc; echo 1 > a; git add -A; git commit -qm 0; \
    echo 1 > .envrc; echo one > .vscode/settings.json; echo one > .husky/pre-commit; chmod +x .husky/pre-commit; \
    git add -A; git commit -qm 1; \
    git checkout -q -b other; echo 2 > .envrc; echo two > .vscode/settings.json; git rm -q .husky/pre-commit; \
    git commit -qam 2; git checkout -q main; echo 3 > b; git add b; git commit -qm 3";

/// Command of work after which the last commit changes only the edited file.
const WORK: &str = "echo 9 >> a && git add -A && git commit -qm work";

fn branches(user: User) -> World {
    let world = repository(user);
    shell(&world, BRANCHES).expect(0);
    world
}

fn sandbox(world: &World, tier: Tier, command: &str) -> Finished {
    Finished::of(world.sandbox(tier, &[], "bash").args(["-c", &format!("{IDENTITY}{command}")]))
}

fn seen(world: &World, command: &str) -> String {
    shell(world, command).stdout.trim().to_owned()
}

/// Commands of an agent's git, each with the content that `.envrc` has afterwards.
const MOVES: &[(&str, &str, &str)] = &[
    ("switch", "git checkout -q other", "2"),
    ("there and back", "git checkout -q other && git checkout -q main", "1"),
    ("merge", "git merge -q --no-edit other", "2"),
    ("rebase", "git checkout -q other && git rebase -q main", "2"),
    ("cherry-pick", "git cherry-pick other >/dev/null", "2"),
    ("reset", "git reset -q --hard other", "2"),
    ("an older commit", "git checkout -q main~2", "0"),
    ("revert", "git checkout -q other && git revert --no-edit HEAD >/dev/null", "1"),
    ("bisect", "git bisect start -q main main~2 >/dev/null && git bisect reset >/dev/null 2>&1", "1"),
];

#[test]
fn git_brings_what_commits_of_the_persons_hold() {
    for (user, tier) in tier::everywhere() {
        for (name, command, expected) in MOVES {
            let world = branches(user);
            let done = sandbox(&world, tier, &format!("{command} && {WORK}"));
            let what = format!("{name}, {tier}, {user:?}: {}", done.stderr);
            assert_eq!(done.code, 0, "{what}");
            assert_eq!(seen(&world, "cat .envrc"), *expected, "{what}");
            assert_eq!(seen(&world, "git status --porcelain"), "", "{what}");
            assert_eq!(seen(&world, "git show --format= --name-only HEAD"), "a", "{what}");
            let is_other = *expected != "1";
            assert_eq!(
                done.stderr.contains("now the same as in a commit of yours: .envrc"),
                is_other,
                "{what}"
            );
        }
    }
}

/// Tests uncommitted changes of the person. They go into a stash and come back.
#[test]
fn a_stash_takes_and_gives_back_what_was_not_committed() {
    for (user, tier) in tier::everywhere() {
        let world = branches(user);
        shell(&world, "echo 7 > .envrc").expect(0);
        let done = sandbox(&world, tier, "git stash -q && git checkout -q other && git checkout -q main");
        assert_eq!(seen(&world, "cat .envrc; git status --porcelain"), "1", "{tier}: {}", done.stderr);
        // The stash is older than this run.
        let done = sandbox(&world, tier, "git stash pop -q");
        assert_eq!(seen(&world, "cat .envrc"), "7", "{tier}: {}", done.stderr);
        let done = sandbox(&world, tier, "git stash -q && git stash pop -q");
        assert_eq!(seen(&world, "cat .envrc"), "7", "{tier}: {}", done.stderr);
    }
}

/// Attacks of an agent, each with a file that must stay unchanged, whatever git reports.
const TRICKS: &[(&str, &str, &str)] = &[
    ("written", "echo evil > .envrc", ".envrc"),
    ("a branch of its own", "git checkout -qb new; echo evil > .envrc; git commit -qam x", ".envrc"),
    (
        "a commit on top",
        "git checkout -q other; git checkout -q main; echo evil > .envrc; git commit -qam x",
        ".envrc",
    ),
    ("a stash of its own", "echo evil > .envrc; git stash -q; git stash pop -q", ".envrc"),
    ("executable", "chmod +x .envrc", ".envrc"),
    ("what every commit has", "rm .envrc", ".envrc"),
    ("what no commit has", "rm -f .pdbrc; git clean -fdxq", ".pdbrc"),
    ("from elsewhere in a commit", "cp .husky/pre-commit .vscode/tasks.json", ".vscode/tasks.json"),
    (
        "a tree that lies",
        "old=$(git rev-parse other^{tree}); echo evil > .envrc; git add -A; new=$(git write-tree); \
         f=.git/objects/${old:0:2}/${old:2}; chmod u+w $f; cp .git/objects/${new:0:2}/${new:2} $f",
        ".envrc",
    ),
];

#[test]
fn what_an_agent_made_is_restored_whatever_git_holds() {
    for (user, tier) in tier::everywhere() {
        for (name, command, place) in TRICKS {
            let world = branches(user);
            let look = format!("stat -c %A {place} 2>&1; cat {place} 2>&1");
            let before = seen(&world, &look);
            let done = sandbox(&world, tier, command);
            assert_eq!(seen(&world, &look), before, "{name}, {tier}, {user:?}: {}", done.stderr);
            assert!(!done.stderr.contains("a commit of yours"), "{name}, {tier}: {}", done.stderr);
        }
    }
}

/// Tests that an agent's commit in one tool call is not taken for the person's in the next call of the session.
#[test]
fn what_an_agent_committed_is_not_the_persons_later_on() {
    for tier in tier::all() {
        let world = branches(User::Myself);
        let plant = format!(
            "{IDENTITY}blob=$(echo evil | git hash-object -w --stdin); export GIT_INDEX_FILE=.git/index.new; \
             git read-tree other; git update-index --cacheinfo 100644,$blob,.envrc; \
             git update-ref refs/heads/new $(git commit-tree -m x -p other $(git write-tree)); rm .git/index.new"
        );
        let server = model(&[
            ("shell_exec", json!({"command": plant})),
            ("shell_exec", json!({"command": "git checkout -q new; cat .envrc"})),
            ("shell_exec", json!({"command": "git checkout -q -f other; cat .envrc"})),
        ]);
        let done = run(&world, tier, &server, &[]);
        assert_eq!(
            seen(&world, "git rev-parse --abbrev-ref HEAD; cat .envrc"),
            "other\n2",
            "{tier}: {}",
            done.stdout
        );
        let restored: Vec<_> =
            done.events_of("restored").iter().map(|event| event["places"].to_string()).collect();
        assert!(restored.len() == 1 && restored[0].contains(".envrc"), "{tier}: {restored:?}");
    }
}

/// Tests Bailiwick's settings file, and files that the settings protect: a change of branch leaves them unchanged.
#[test]
fn what_holds_the_agent_follows_no_commit() {
    for tier in tier::all() {
        let world = branches(User::Myself);
        let setup = "echo '# one' > .bailiwick.toml; git add -A; git commit -qm x; git checkout -q other";
        shell(&world, setup).expect(0);
        sandbox(&world, tier, "git checkout -q main");
        assert!(!world.project().join(".bailiwick.toml").exists(), "{tier}");
        shell(&world, "git checkout -q -f main").expect(0);
        sandbox(&world, tier, "git checkout -q other");
        assert_eq!(world.read(".bailiwick.toml"), "# one\n", "{tier}");
    }
}
