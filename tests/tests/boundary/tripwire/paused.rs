//! Tests that agents leave in git directories only git's own data, and nothing that git would act on now or when it
//! continues a paused operation.

use std::fs;
use std::path::Path;

use ipc::confinement::Tier;
use tests::repository::{is_marked, repository, shell};
use tests::{Finished, World, tier};

use crate::tripwire::attack::IDENTITY;

/// Returns `bailiwick sandbox` in the project.
fn sandbox(world: &World, tier: Tier, flags: &[&str], command: &str) -> Finished {
    Finished::of(world.sandbox(tier, flags, "bash").args(["-c", &format!("{IDENTITY}{command}")]))
}

/// Commands that make three commits and pause a rebase between them.
const PAUSED_REBASE: &str = "for f in a b c; do echo $f > $f; git add $f; git commit -qm $f; done; \
    c=$(git rev-parse HEAD); GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i HEAD~2 2>/dev/null; \
    echo pick $c c > .git/rebase-merge/git-rebase-todo;";

/// Commands that pause a cherry-pick of two commits, after the first one's conflict was resolved.
const PAUSED_PICK: &str = "git checkout -q -b other; echo o > kept.txt; git commit -qam o; echo p > p; git add p; git commit -qm p; \
    git checkout -q -; echo m > kept.txt; git commit -qam m; git cherry-pick other~1 other >/dev/null 2>&1; \
    echo r > kept.txt; git add kept.txt;";

/// Commands that pause `git am` at a conflict in the first patch.
const PAUSED_AM: &str = "git checkout -q -b other; echo o > kept.txt; git commit -qam o; echo p >> kept.txt; git commit -qam p; \
    git format-patch -q --full-index -2 -o patches; git checkout -q -; echo m > kept.txt; git commit -qam m; \
    git am -q patches/* >/dev/null 2>&1;";

/// Attacks: a paused state, an addition to it, and the command by which the host continues. It would run `evil.sh` or
/// write the canary.
const RUN_LATER: &[(&str, &str, &str, &str)] = &[
    (
        "strategy of a rebase",
        PAUSED_REBASE,
        "mkdir git-merge-x; cp evil.sh .git/x; echo x/../.git/x > .git/rebase-merge/strategy",
        "git rebase --continue",
    ),
    (
        "strategy of a cherry-pick",
        PAUSED_PICK,
        "mkdir git-merge-x; cp evil.sh .git/x; git config -f .git/sequencer/opts options.strategy x/../.git/x",
        "git cherry-pick --continue",
    ),
    (
        "options of am",
        PAUSED_AM,
        "echo \"'--build-fake-ancestor=$CANARY'\" > .git/rebase-apply/apply-opt",
        "git am --skip; git am --skip",
    ),
    (
        "command of a rebase",
        PAUSED_REBASE,
        "echo \"exec $E\" >> .git/rebase-merge/git-rebase-todo",
        "git rebase --continue",
    ),
    ("message behind a link", "", "ln -sfn $CANARY .git/COMMIT_EDITMSG", "git commit -q --allow-empty -m x"),
    ("log behind a link", "", "ln -sfn $CANARY .git/logs/HEAD", "git commit -q --allow-empty -m x"),
    (
        "branches behind a link",
        "",
        "mkdir .git/refs/own; ln -sfn \"${CANARY%/*}\" .git/refs/own/x",
        "git update-ref refs/own/x/canary HEAD",
    ),
    (
        "index behind a link",
        "",
        "mv .git/index i; ln -sfn $CANARY .git/index; cp i $CANARY 2>/dev/null",
        "rm -f $CANARY; git add -A",
    ),
    (
        "store of another repository",
        "git init -q --bare \"$C/r\";",
        "git init -q sub; echo \"$C/r/objects\" > sub/.git/objects/info/alternates",
        "[ -s sub/.git/objects/info/alternates ] && touch $CANARY",
    ),
];

fn variables(world: &World) -> String {
    format!("E=$PWD/evil.sh; CANARY={}/canary; ", world.home().display())
}

#[test]
fn what_an_agent_leaves_paused_runs_nothing_when_the_host_goes_on() {
    for (user, tier) in tier::everywhere() {
        for (name, state, plant, go_on) in RUN_LATER {
            let go_on = |world: &World| {
                shell(world, &format!("{}export GIT_EDITOR=true; {go_on}; true", variables(world)))
            };
            let control = repository(user);
            let unconfined = format!(
                "{IDENTITY}{}C={}/cache; {state} {plant}",
                variables(&control),
                control.home().display()
            );
            shell(&control, &unconfined);
            go_on(&control);
            assert!(is_marked(&control), "{name}: the attack does nothing without us");
            let world = repository(user);
            let confined = format!("{}C=$PIP_CACHE_DIR; {state} {plant}; true", variables(&world));
            let done = sandbox(&world, tier, &[], &confined);
            let seen = go_on(&world);
            assert!(!is_marked(&world), "{name}, {tier}, {user:?}: {}\n{}", done.stderr, seen.stderr);
            assert!(done.stderr.contains("changed and restored"), "{name}, {tier}: {}", done.stderr);
            let sound = shell(&world, "git fsck && git log -1 && git status");
            assert_eq!(sound.code, 0, "{name}, {tier}: the repository is broken: {}", sound.stderr);
        }
    }
}

/// Tests a planted list of conflicts. When the host's `git commit` records how a conflict was resolved, it reads the
/// listed file, also through a link.
#[test]
fn a_planted_list_of_conflicts_makes_the_host_copy_no_secret() {
    const PLANT: &str = "ln -s $SECRET link; id=0123456789012345678901234567890123456789; mkdir -p .git/rr-cache/$id; \
        echo x > .git/rr-cache/$id/preimage; printf '%s\\tlink\\0' $id > .git/MERGE_RR";
    let copied = |world: &World| {
        shell(world, "git commit -q --allow-empty -m x");
        shell(world, "grep -rl 'the secret' .git/rr-cache").code == 0
    };
    for (user, tier) in tier::everywhere() {
        let prepared = || {
            let world = repository(user);
            let secret = world.home().join("secret");
            fs::write(&secret, "the secret\n").unwrap();
            world.give(&secret);
            let plant = format!("SECRET={}; {PLANT}", secret.display());
            (world, plant)
        };
        let (control, plant) = prepared();
        shell(&control, &plant);
        assert!(copied(&control), "the attack does nothing without us");
        let (world, plant) = prepared();
        let done = sandbox(&world, tier, &[], &plant);
        assert!(!copied(&world), "{tier}, {user:?}: {}", done.stderr);
    }
}

/// Tests a file in a git directory that is not git's own: it is moved away, and the person can permit it to stay.
#[test]
fn what_has_no_part_in_a_git_directory_is_moved_aside_and_can_be_accepted() {
    const MAKE: &str = "mkdir -p .git/annex/deep; echo kept > .git/annex/deep/file; echo loose > .git/loose";
    for (user, tier) in tier::everywhere() {
        let world = repository(user);
        let done = sandbox(&world, tier, &[], MAKE);
        for (name, inside, content) in [("annex", "deep/file", "kept\n"), ("loose", "", "loose\n")] {
            assert!(!world.project().join(".git").join(name).exists(), "{tier}: {}", done.stderr);
            let told = format!("changed and restored: .git/{name} (not a part of a git directory; moved to ");
            let moved = done
                .stderr
                .lines()
                .find_map(|line| line.split_once(&told)?.1.split_once("; to accept the change"));
            let moved = moved.map(|(path, _)| path);
            let moved = Path::new(moved.unwrap_or_else(|| panic!("{}", done.stderr)));
            let file = if inside.is_empty() { moved.to_owned() } else { moved.join(inside) };
            assert_eq!(fs::read_to_string(&file).unwrap(), content, "{}", file.display());
        }
        fs::create_dir(world.project().join(".git/annex")).unwrap();
        world.give(&world.project().join(".git/annex"));
        let done = sandbox(&world, tier, &["--write", ".git/annex"], MAKE);
        assert_eq!(world.read(".git/annex/deep/file"), "kept\n", "{tier}: {}", done.stderr);
        assert!(!world.project().join(".git/loose").exists());
    }
}

/// Tests state that another tool keeps in a git directory: earlier content stays, and an agent's version is moved away.
#[test]
fn a_tools_own_state_in_a_git_directory_stays_what_it_was() {
    for (user, tier) in tier::everywhere() {
        let world = repository(user);
        let own = world.file(".git/branchless/state", "person\n");
        world.give(own.parent().unwrap());
        let done = sandbox(
            &world,
            tier,
            &[],
            "echo evil > .git/branchless/state; echo evil > .git/branchless/new; true",
        );
        assert_eq!(fs::read_to_string(&own).unwrap(), "person\n", "{tier}: {}", done.stderr);
        assert!(!world.project().join(".git/branchless/new").exists(), "{tier}: {}", done.stderr);
        assert!(done.stderr.contains("moved to"), "{tier}: {}", done.stderr);
    }
}

/// Tests that a paused rebase with the person's own commands continues in the sandbox, with these commands.
#[test]
fn a_persons_own_commands_stay_in_a_paused_rebase() {
    for (user, tier) in tier::everywhere() {
        let world = repository(user);
        let made = shell(
            &world,
            &format!("{PAUSED_REBASE} echo 'exec true' >> .git/rebase-merge/git-rebase-todo; git status"),
        );
        assert_eq!(made.code, 0, "{}", made.stderr);
        sandbox(&world, tier, &[], "sed -i '1iexec false' .git/rebase-merge/git-rebase-todo");
        let todo = world.read(".git/rebase-merge/git-rebase-todo");
        assert!(todo.contains("exec true") && !todo.contains("exec false"), "{tier}: {todo}");
    }
}
