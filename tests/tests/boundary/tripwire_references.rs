//! Tests files that the host executes later but that no fixed list has: files that others refer to, files that are
//! written without a trace, and files among very many others. Commands make the attacks in both tiers, and a person's
//! later work judges them.

use std::path::Path;
use std::time::{Duration, Instant};

use tests::repository::{is_marked, repository_below, shell};
use tests::world::PLACE;
use tests::{Finished, User, World, tier, wait_until};

/// Program that writes a file through a shared mapping, after reading every page. On a tmpfs, neither times nor size
/// change then.
const MAPPED: &str = "import mmap, os, sys\n\
    fd = os.open(sys.argv[1], os.O_RDWR)\n\
    pages = mmap.mmap(fd, os.fstat(fd).st_size)\n\
    read = bytes(pages[:])\n\
    new = read.replace(b'placeholder_for_a_program', sys.argv[2].encode().ljust(25))\n\
    assert new != read and len(new) == len(read)\n\
    pages[:] = new\n";

/// Wait that exceeds the clock tick of a file system's times.
const TICK: Duration = Duration::from_millis(60);

/// Creates a repository, with the program that writes through a mapping.
fn world(user: User, below: &str) -> World {
    let world = repository_below(user, Path::new(below));
    world.file("mapped.py", MAPPED);
    world
}

/// An attack: the person's files, the attacker's command, and the person's later commands.
struct Attack {
    name: &'static str,
    there: &'static str,
    act: &'static str,
    later: &'static str,
}

/// Makes each attack without a sandbox, where it must succeed, and then in every tier, where it must fail.
fn fails(below: &str, attacks: &[Attack]) {
    for user in User::all() {
        for Attack { name, there, act, later } in attacks {
            let lay_out = || {
                let world = world(user, below);
                let made = shell(&world, there);
                assert_eq!(made.code, 0, "{name}: {}", made.stderr);
                world
            };
            let control = lay_out();
            shell(&control, act);
            shell(&control, later);
            assert!(is_marked(&control), "{name}: the attack does nothing without the tripwire");
            for tier in tier::all() {
                let world = lay_out();
                // A file whose times were older than a clock tick once counted as unchanged, so the attack begins a
                // tick later.
                let made = Instant::now();
                wait_until("a tick of the clock is over", || made.elapsed() > TICK);
                // Attacks with default hidden paths are not on the tmpfs, since the full tier has a private one.
                let aside = World::new(user);
                let mut sandbox = world.sandbox(tier, &[], "bash");
                if below != PLACE {
                    sandbox.env("HOME", aside.home()).env("BAILIWICK_HOME", aside.own());
                }
                let done = Finished::of(sandbox.args(["-c", &format!("{act}; exit 7")]));
                assert_eq!(done.code, 7, "{name}, {tier}: {}", done.stderr);
                let seen = shell(&world, later);
                assert!(!is_marked(&world), "{name}, {tier}: {}\n{}", done.stderr, seen.stderr);
                assert_eq!(shell(&world, "git fsck").code, 0, "{name}, {tier}: the repository is broken");
            }
        }
    }
}

#[test]
fn a_write_that_leaves_no_trace_in_times_is_seen() {
    fails(
        "/dev/shm",
        &[
            Attack {
                name: "nested configuration",
                there: "git init -q sub; git -C sub config core.fsmonitor placeholder_for_a_program",
                act: "python3 mapped.py sub/.git/config ../evil.sh",
                later: "git -C sub status",
            },
            Attack {
                name: "directory environment",
                there: "printf '#!/bin/sh\\nplaceholder_for_a_program\\n' > .envrc",
                act: "python3 mapped.py .envrc ./evil.sh",
                later: "sh .envrc < /dev/null",
            },
        ],
    );
}

/// Command that prints a harmless hook of the person's.
const OK: &str = "printf '#!/bin/sh\\nexit 0\\n'";

const COMMIT: &str = "git commit -q --allow-empty -m later";

/// Returns commands that create the person's own files. The commands `there` can use the shell function `hook`.
fn there(there: &str) -> &'static str {
    format!("hook() {{ {OK} > $1; chmod +x $1; }}; {there}").leak()
}

#[test]
fn what_hook_paths_and_includes_lead_to_stays_what_it_was() {
    fails(
        PLACE,
        &[
            Attack {
                name: "hooks path",
                there: there(
                    "mkdir .githooks; hook .githooks/pre-commit; git config core.hooksPath .githooks",
                ),
                act: "cp evil.sh .githooks/pre-commit",
                later: COMMIT,
            },
            Attack {
                name: "a missing hook of a hooks path",
                there: there("mkdir .githooks; git config core.hooksPath .githooks"),
                act: "cp evil.sh .githooks/pre-commit",
                later: COMMIT,
            },
            Attack {
                name: "hooks path of all repositories",
                there: there("mkdir .githooks; git config --global core.hooksPath .githooks"),
                act: "cp evil.sh .githooks/pre-commit",
                later: COMMIT,
            },
            Attack {
                name: "the project itself is the hooks path",
                there: there("hook post-commit; git config core.hooksPath $PWD"),
                act: "cp evil.sh post-commit; cp evil.sh pre-commit",
                later: COMMIT,
            },
            Attack {
                name: "hooks path of a nested repository",
                there: there(
                    "git init -q sub; mkdir sub/h; hook sub/h/pre-commit; git -C sub config core.hooksPath h",
                ),
                act: "cp evil.sh sub/h/pre-commit",
                later: "git -C sub commit -q --allow-empty -m later",
            },
            Attack {
                name: "include",
                there: "printf '[pull]\\nff = only\\n' > shared; git config include.path ../shared",
                act: "git config -f shared core.fsmonitor ./evil.sh",
                later: "git status",
            },
            Attack {
                name: "include in a missing include",
                there: "git config -f one include.path two; git config includeIf.gitdir:**.path $PWD/one",
                act: "git config -f two core.fsmonitor ./evil.sh",
                later: "git status",
            },
        ],
    );
}

#[test]
fn what_links_lead_to_stays_what_it_was() {
    fails(
        PLACE,
        &[
            Attack {
                name: "hook by link",
                there: there("mkdir scripts; hook scripts/x; ln -sf ../../scripts/x .git/hooks/pre-commit"),
                act: "cp evil.sh scripts/x",
                later: COMMIT,
            },
            Attack {
                name: "hook by links, put in another's place",
                there: there(
                    "mkdir -p a/real; hook a/real/x; ln -s a/real s; ln -sf ../../s/x .git/hooks/pre-commit",
                ),
                act: "mv a b; mkdir -p a/real; cp evil.sh a/real/x; rm s; mkdir s; cp evil.sh s/x",
                later: COMMIT,
            },
            Attack {
                name: "hook by link to an example",
                there: there(
                    "mkdir -p .git/hooks; hook .git/hooks/x.sample; ln -s x.sample .git/hooks/pre-commit",
                ),
                act: "cp evil.sh .git/hooks/x.sample",
                later: COMMIT,
            },
            Attack {
                name: "hooks by link",
                there: there("rm -rf .git/hooks; mkdir h; hook h/pre-commit; ln -s ../h .git/hooks"),
                act: "cp evil.sh h/pre-commit",
                later: COMMIT,
            },
            Attack {
                name: "settings by link",
                there: "mkdir ide; ln -s ide .vscode; echo {} > ide/tasks.json",
                act: "echo evil > ide/tasks.json; echo evil > ide/launch.json",
                later: "! grep -q evil .vscode/tasks.json .vscode/launch.json || ./evil.sh < /dev/null",
            },
        ],
    );
}

/// Tests repositories in the git directory, and every way in which a person's git would reach them.
#[test]
fn repositories_in_the_git_directory_run_nothing() {
    let push = "git push -q origin; git push -q origin HEAD:refs/heads/pushed";
    let attack = |place: &str, remote: &str| -> &'static str {
        let plant = "mkdir -p $R/hooks; cp evil.sh $R/hooks/pre-receive; cp evil.sh $R/hooks/update";
        format!("R={place}; git init -q --bare $R; {plant}; {remote}").leak()
    };
    fails(
        PLACE,
        &[
            Attack {
                name: "old remote",
                there: "true",
                act: attack(".git/evil", "mkdir -p .git/remotes; echo URL: $R > .git/remotes/origin"),
                later: push,
            },
            Attack {
                name: "older remote",
                there: "true",
                act: attack(".git/evil", "mkdir -p .git/branches; echo $PWD/$R > .git/branches/origin"),
                later: push,
            },
            Attack {
                name: "among the objects",
                there: "true",
                act: attack(".git/objects/e/vil", "git config remote.origin.url $PWD/$R"),
                later: "git config remote.origin.url .git/objects/e/vil; git push -q origin HEAD:refs/heads/pushed",
            },
            Attack {
                name: "in a nested repository",
                there: "git init -q sub",
                act: attack("sub/.git/evil", "ln -s sub/.git/evil hub; git config remote.origin.url ./hub"),
                later: "git config remote.origin.url ./hub; git push -q origin HEAD:refs/heads/pushed",
            },
        ],
    );
}

/// Tests a repository from elsewhere with more includes than the search follows.
#[test]
fn a_crowd_of_includes_hides_no_hook_of_the_persons() {
    let attack = Attack {
        name: "hooks path of the person's behind includes",
        there: there(
            "mkdir .githooks; git config --global core.hooksPath .githooks; git init -q --bare kept.git; \
            seq -f '[include] path = /none/%g' 2100 >> kept.git/config",
        ),
        act: "cp evil.sh .githooks/pre-commit",
        later: COMMIT,
    };
    fails(PLACE, &[attack]);
}

#[test]
fn a_crowd_hides_no_hook() {
    // All names are links to one empty file: creating links is five times as fast as creating files.
    let crowd = |ending: &str| -> &'static str {
        let fill = format!("import os; [os.link('0{ending}', f'{{n}}{ending}') for n in range(1, 30000)]");
        let hooks = format!("touch 0{ending} && python3 -c \"{fill}\" && cp ../../../evil.sh pre-commit");
        format!("mkdir -p sub/.git/hooks && (cd sub/.git/hooks && {hooks}) || exit 1").leak()
    };
    let (there, later) = ("git init -q sub", "git -C sub commit -q --allow-empty -m later");
    fails(
        PLACE,
        &[
            Attack { name: "examples", there, act: crowd(".sample"), later },
            Attack { name: "hooks", there, act: crowd(""), later },
        ],
    );
}

#[test]
fn what_acts_by_its_name_does_not_come() {
    const NAMES: &str = "lefthook-local.yml mise.toml .mise.toml .config/mise/config.toml proj.code-workspace \
        .cargo/config.toml .hg/sharedpath";
    for user in User::all() {
        for tier in tier::all() {
            let world = world(user, PLACE);
            let write = format!(
                "for f in {NAMES} .cargo/free free.toml; do mkdir -p $(dirname $f); echo x > $f; done"
            );
            let done = Finished::of(world.sandbox(tier, &[], "bash").args(["-c", &write]));
            assert_eq!(done.code, 0, "{tier}: {}", done.stderr);
            for name in NAMES.split_whitespace() {
                assert!(!world.project().join(name).exists(), "{tier}: {name}: {}", done.stderr);
            }
            assert_eq!(world.read(".cargo/free") + &world.read("free.toml"), "x\nx\n", "{tier}");
        }
    }
}

/// Tests that write access to a path includes the files to which hooks there lead.
#[test]
fn what_was_granted_is_not_put_back() {
    for user in User::all() {
        for tier in tier::all() {
            let world = world(user, PLACE);
            let made = shell(
                &world,
                &format!("mkdir .githooks; {OK} > .githooks/pre-commit; git config core.hooksPath .githooks"),
            );
            assert_eq!(made.code, 0, "{}", made.stderr);
            let change = "cp evil.sh .githooks/pre-commit; mkdir beside; echo mine > beside/pre-commit";
            let granted = |flags| Finished::of(world.sandbox(tier, flags, "bash").args(["-c", change]));
            granted(&[]);
            assert!(!world.read(".githooks/pre-commit").contains("canary"), "{tier}");
            assert_eq!(world.read("beside/pre-commit"), "mine\n", "{tier}: what nothing leads to is free");
            granted(&["--write", ".githooks"]);
            assert!(world.read(".githooks/pre-commit").contains("canary"), "{tier}");
        }
    }
}
