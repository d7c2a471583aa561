//! Tests submodules, worktrees and `.git` files: repositories in other directories than the one in which git runs.

use std::fs;

use ipc::confinement::Tier;
use serde_json::json;
use tests::replies::model;
use tests::repository::{is_marked, repository, shell};
use tests::world::tool_results;
use tests::{User, World, tier};

use crate::tripwire::attack::{IDENTITY, attack, attack_with, is_known, restored, run};

/// Tests the git directories of a submodule and a worktree. Git does not run in them, but reads them.
#[test]
fn modules_and_worktrees_are_watched() {
    for user in User::all() {
        let lay_out = |world: &World| {
            let made = shell(
                world,
                "git init -q ~/lib && git -C ~/lib commit -q --allow-empty -m x && \
                 git -c protocol.file.allow=always submodule --quiet add ~/lib a/lib && git commit -qm m && \
                 git worktree add -q wt && git config extensions.worktreeConfig true",
            );
            assert_eq!(made.code, 0, "{}", made.stderr);
        };
        for (name, attack_command, use_it) in [
            (
                "module hook",
                "cp evil.sh .git/modules/a/lib/hooks/post-commit",
                "cd a/lib && git commit -q --allow-empty -m y",
            ),
            ("module config", "git -C a/lib config core.fsmonitor $E", "git -C a/lib status"),
            ("worktree config", "git -C wt config --worktree core.fsmonitor $E", "git -C wt status"),
            (
                "worktree's common directory",
                "cp -r .git c; git config -f c/config core.fsmonitor $E; echo ../../../c > .git/worktrees/wt/commondir",
                "git -C wt status",
            ),
            (
                "worktree, renamed",
                "sed -i s,worktrees,wt2, wt/.git; cp -r .git copy; mv copy .git/wt2; cp -r .git/worktrees/wt/* .git/wt2; \
                rm .git/wt2/commondir; mkdir -p .git/wt2/wt; cp -r .git/wt2/HEAD .git/wt2/objects .git/wt2/refs .git/wt2/wt; \
                git config -f .git/wt2/wt/config core.fsmonitor $E",
                "git -C wt status",
            ),
        ] {
            let command = format!("E=$PWD/evil.sh; {attack_command}; true");
            let control = repository(user);
            lay_out(&control);
            shell(&control, &command);
            shell(&control, use_it);
            assert!(is_marked(&control), "{name}: the attack does nothing without us");
            for tier in tier::all() {
                let world = repository(user);
                lay_out(&world);
                let (done, told) = attack(&world, tier, &command);
                let seen = shell(&world, use_it);
                assert!(!is_marked(&world), "{name}, {tier}: {}", done.stdout);
                assert_eq!(seen.code, 0, "{name}, {tier}: {}", seen.stderr);
                assert!(is_known(tier, &done, &told), "{name}, {tier}: {told}");
            }
        }
    }
}

/// Tests a repository with submodules and worktrees: git keeps working, and their hooks and configurations are
/// restored.
#[test]
fn modules_and_worktrees_that_were_there_before_work_on() {
    for (user, tier) in tier::everywhere() {
        let world = repository(user);
        let made = shell(
            &world,
            "git init -q ~/lib && git -C ~/lib commit -q --allow-empty -m x && \
             git -c protocol.file.allow=always submodule --quiet add ~/lib lib && git commit -qm m && \
             git worktree add -q wt && git worktree add -q gone",
        );
        assert_eq!(made.code, 0, "{}", made.stderr);
        let update = "git submodule update";
        let (_, told) = attack(&world, tier, update);
        assert_eq!(told["is_error"] == true, tier == Tier::Full, "{tier} {user:?}: {told}");
        let grant = ["--write", ".git/modules/lib/config"];
        if tier == Tier::Full {
            // `git submodule update` writes the module's configuration even if nothing changes.
            assert!(told.to_string().contains(&grant.join(" ")), "{told}");
        }
        let (_, told) = attack_with(&world, tier, &grant, update);
        assert_ne!(told["is_error"], true, "{tier} {user:?}: {told}");
        let command = "git submodule status && git submodule foreach 'git status' && \
            git -C lib commit -q --allow-empty -m y && git add lib && git commit -qm bump && \
            git -C wt commit -q --allow-empty -m z && git worktree remove gone && git worktree prune && \
            git gc -q && git -C lib gc -q && git clone -q . copy && git -C copy log -1";
        let (done, told) = attack(&world, tier, &format!("{IDENTITY}{command}"));
        assert_ne!(told["is_error"], true, "{tier} {user:?}: {told}");
        assert_eq!(restored(&done), Vec::<String>::new(), "{tier} {user:?}: {told}");
        assert!(!world.project().join("gone").exists());
        assert_eq!(shell(&world, "git fsck && git -C lib fsck && git -C wt status").code, 0);
    }
}

/// Tests a linked worktree as the project: git works in it, and the hooks and the configuration of its repository are
/// watched.
#[test]
fn a_linked_worktree_can_be_committed_to_and_its_repository_is_watched() {
    for (user, tier) in tier::everywhere() {
        let world = World::new(user);
        let made = shell(
            &world,
            "git init -q ~/main && cd ~/main && git config user.name t && git config user.email t@e && \
             echo kept > kept.txt && git add -A && git commit -qm x && git worktree add -q \"$OLDPWD\" && \
             git worktree add -q ~/other && git config extensions.worktreeConfig true",
        );
        assert_eq!(made.code, 0, "{}", made.stderr);
        let server = model(&[
            (
                "shell_exec",
                json!({"command": "echo a > a && git add a && git commit -qm a && git stash list && git branch x && git branch -d x"}),
            ),
            (
                "shell_exec",
                json!({"command": "cp a ~/main/.git/hooks/pre-commit; chmod +x ~/main/.git/hooks/pre-commit; \
                git config core.editor vi; git config -f ~/main/.git/worktrees/other/config.worktree core.editor vi"}),
            ),
            ("shell_exec", json!({"command": "echo out > ~/main/kept.txt"})),
        ]);
        let done = run(&world, tier, &server, &[]);
        let first = tool_results(&server, 1)[0].to_string();
        assert!(first.contains("exit code 0"), "{first}\n{}", done.stderr);
        let main = world.home().join("main");
        if tier == Tier::Floor {
            assert_eq!(restored(&done).len(), 3, "{:?}", restored(&done));
        }
        let second = tool_results(&server, 2)[0].clone();
        assert!(is_known(tier, &done, &second), "{second}");
        let grant = format!("--write {}", world.home().join("main/.git/config").display());
        assert!(second.to_string().contains(&grant), "{tier}: {second}");
        assert!(!main.join(".git/hooks/pre-commit").exists());
        assert!(!fs::read_to_string(main.join(".git/config")).unwrap().contains("editor"));
        assert!(!main.join(".git/worktrees/other/config.worktree").exists());
        assert_eq!(
            fs::read_to_string(main.join("kept.txt")).unwrap(),
            "kept\n",
            "the other checkout is not the project"
        );
    }
}

/// Tests a `.git` file that names another repository: it gives no access to that repository.
#[test]
fn a_git_file_that_lies_widens_no_right() {
    for tier in tier::all() {
        let world = World::new(User::Myself);
        let made =
            shell(&world, "git init -q ../main && cd ../main && git worktree add -q --orphan ../other");
        assert_eq!(made.code, 0, "{}", made.stderr);
        let victim = world.root().join("main/.git");
        for target in ["", "/worktrees/other"] {
            world.file(".git", format!("gitdir: {}{target}\n", victim.display()));
            let server = model(&[(
                "shell_exec",
                json!({"command": format!("echo x > {}/planted", victim.display())}),
            )]);
            let done = run(&world, tier, &server, &[]);
            assert!(!victim.join("planted").exists(), "{target:?}: {}", done.stdout);
            assert!(done.stderr.contains("does not name the project"), "{target:?}: {}", done.stderr);
        }
    }
}
