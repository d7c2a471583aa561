//! Tests limits of the tripwire that a hostile repository can exceed. The person's own files are protected all the
//! same, or the start fails and names the path. No existing file is removed.

use std::path::Path;

use ipc::confinement::Tier;
use tests::repository::{is_marked, repository_below, shell};
use tests::side_by_side::side_by_side;
use tests::world::PLACE;
use tests::{Finished, User, World, tier};

/// Very many files in a repository, with the path that the failing start names.
struct Crowd {
    name: &'static str,
    fill: &'static str,
    refused: Option<(&'static str, &'static str)>,
}

/// Programs in Python that create very many files in the project.
const CROWDS: &[Crowd] = &[
    Crowd {
        name: "links",
        fill: "os.mkdir('.agents'); [os.symlink(f'../kept/{n}', f'.agents/{n}') for n in range(2100)]",
        refused: Some((".agents", "this path leads to more than 2000 other paths")),
    },
    Crowd {
        name: "entries",
        fill: "os.mkdir('.agents'); [fill(f'.agents/{n}') for n in range(20_000)]",
        refused: None,
    },
    Crowd {
        name: "more entries",
        fill: "os.mkdir('.agents'); [fill(f'.agents/{n}') for n in range(100_001)]",
        refused: Some((".agents", "this path has more than 100000 files")),
    },
    Crowd {
        name: "bytes",
        fill: "os.mkdir('.agents'); [os.truncate(fill(f'.agents/{n}', True), 15 << 20) for n in range(5)]",
        refused: Some((".agents", "this path has more than 64 MiB")),
    },
    Crowd {
        name: "depth",
        fill: "os.makedirs('.agents/' + 'd/' * 41)",
        refused: Some((".agents/d/", "the directories below this path are more than 40 deep")),
    },
    Crowd {
        name: "a chain",
        fill: "os.mkdir('.agents'); os.symlink('../c0', '.agents/c'); \
            [(os.mkdir(f'c{n}'), os.symlink(f'../c{n + 1}', f'c{n}/c')) for n in range(20)]",
        refused: Some(("c12", "more than 12 links or includes lead to this path")),
    },
    Crowd {
        name: "includes",
        fill: "os.makedirs('bare/objects'); os.mkdir('bare/refs'); fill('bare/HEAD'); \
            open('bare/config', 'w').write(''.join(f'[include]path=../x{n}\\n' for n in range(2100)))",
        refused: Some(("bare/config", "this path leads to more than 2000 other paths")),
    },
    Crowd {
        name: "walk",
        fill: "[(os.makedirs(f'd/{n}/objects'), os.mkdir(f'd/{n}/refs'), fill(f'd/{n}/HEAD')) for n in range(2600)]",
        refused: None,
    },
    Crowd {
        name: "repositories",
        fill: "[(os.makedirs(f'd/{n}'), fill(f'd/{n}/HEAD'), fill(f'd/{n}/commondir')) for n in range(10_001)]",
        refused: Some(("d", "the project has more than 10000 repositories, most of them at this path")),
    },
    Crowd { name: "hooks", fill: "[fill(f'.git/hooks/h{n}') for n in range(20_000)]", refused: None },
    Crowd {
        name: "git-annex",
        fill: "[(os.makedirs(f'.git/annex/objects/{n % 97}/{n}/k'), fill(f'.git/annex/objects/{n % 97}/{n}/k/k')) \
            for n in range(30_000)]",
        refused: None,
    },
];

/// Program that creates empty files as hard links: that is five times as fast, and a file can have some 60,000 names.
const FILL: &str = "import os, sys\n\
    count = 0\n\
    def fill(path, own=False):\n\
    \x20   global count\n\
    \x20   base = f'.base{count // 30_000}'\n\
    \x20   if not os.path.exists(base): open(base, 'w').close()\n\
    \x20   count += 1\n\
    \x20   open(path, 'w').close() if own else os.link(base, path)\n\
    \x20   return path\n";

/// Commands that create the person's own files: an included configuration, a linked hook, a hook, and a repository two
/// levels down.
const OWN: &str = "hook() { printf '#!/bin/sh\\nexit 0\\n' > $1; chmod +x $1; }; \
    printf '[user]\\n\\tname = t\\n' > .gitconfig; git config include.path ../.gitconfig; mkdir dev; hook dev/pre-push; \
    ln -s ../../dev/pre-push .git/hooks/pre-push; hook .git/hooks/pre-commit; \
    git init -q --bare .git/../../remote.git; git remote add origin ../remote.git; mkdir -p z/z; git init -q z/z";

const ACT: &str = "cp evil.sh dev/pre-push; cp evil.sh .git/hooks/pre-commit; cp evil.sh z/z/.git/hooks/pre-commit; \
    printf '[core]\\n\\tfsmonitor = ./evil.sh\\n' > .gitconfig; true";

/// Later commands of the person. They must not execute anything of the agent.
const LATER: &[&str] = &[
    "git status",
    "git commit -q --allow-empty -m later",
    "git push -q origin HEAD",
    "git -C z/z commit -q --allow-empty -m later",
];

fn furnished(fill: &str, below: &str) -> World {
    let world = repository_below(User::Myself, Path::new(below));
    let python = format!("python3 - <<'END'\n{FILL}{fill}\nEND");
    for made in [shell(&world, OWN), shell(&world, &python)] {
        assert_eq!(made.code, 0, "{fill}: {}", made.stderr);
    }
    world
}

fn sandbox(world: &World, tier: Tier, flags: &[&str], command: &str) -> Finished {
    Finished::of(world.sandbox(tier, flags, "bash").args(["-c", command]))
}

/// Returns all names in the project.
fn names(world: &World) -> String {
    shell(world, "find . -path ./.git/objects -prune -o -print | sort").stdout
}

#[test]
fn without_us_each_of_the_persons_places_is_taken_over() {
    for later in LATER {
        let world = furnished("pass", PLACE);
        shell(&world, ACT);
        shell(&world, later);
        assert!(is_marked(&world), "{later}");
    }
}

#[test]
fn a_crowd_that_a_repository_brings_along_frees_nothing_of_the_persons() {
    // Snapshots are the same in both tiers. The full tier also protects existing files by mounts.
    let cases = CROWDS
        .iter()
        .map(|crowd| (crowd, Tier::Floor))
        .chain([(&CROWDS[0], Tier::Full), (&CROWDS[1], Tier::Full)]);
    let cases = cases.filter(|(_, tier)| tier::all().contains(tier));
    side_by_side(cases, |(Crowd { name, fill, refused }, tier)| {
        // Files are created fastest on a tmpfs. The full tier replaces the host's `/dev/shm` by a private one.
        let world = furnished(fill, if tier == Tier::Full { PLACE } else { "/dev/shm" });
        let before = names(&world);
        let look = sandbox(&world, tier, &[], "true");
        let given = refused.map(|(place, why)| {
            let place = world.project().join(place).display().to_string();
            assert_eq!(look.code, 5, "{name}, {tier}: {}", look.stderr);
            assert!(look.stderr.contains(&format!("cannot watch {place}")), "{name}: {}", look.stderr);
            assert!(look.stderr.contains(why), "{name}: {}", look.stderr);
            let flag = look.stderr.split("--write ").nth(1).and_then(|rest| rest.split(' ').next());
            flag.unwrap_or_else(|| panic!("{name}: {}", look.stderr)).to_owned()
        });
        if given.is_none() {
            assert_eq!((look.code, look.stderr.as_str()), (0, ""), "{name}, {tier}");
        }
        assert_eq!(names(&world), before, "{name}, {tier}: a look takes nothing away");
        let flags: Vec<&str> = given.iter().flat_map(|place| ["--write", place]).collect();
        let done = sandbox(&world, tier, &flags, ACT);
        assert_eq!(done.code, 0, "{name}, {tier}: {}", done.stderr);
        for later in LATER {
            shell(&world, later);
            assert!(!is_marked(&world), "{name}, {tier}, {later}: {}", done.stderr);
        }
    });
}

/// Tests very many files that a command creates. They are moved away, and never deleted.
#[test]
fn a_crowd_that_a_command_makes_is_moved_aside_and_frees_nothing() {
    for tier in tier::all() {
        let world = furnished("os.mkdir('.vscode'); open('.vscode/tasks.json', 'w').write('own')", PLACE);
        let crowd = "mkdir -p .agents; python3 -c \"[open(f'{d}/{n}', 'w').close() for d in ['.agents', '.git/hooks'] \
            for n in range(12_000)]\"; echo evil > .agents/evil";
        let done = sandbox(&world, tier, &[], &format!("{crowd}; {ACT}"));
        for later in LATER {
            shell(&world, later);
            assert!(!is_marked(&world), "{tier}, {later}: {}", done.stderr);
        }
        assert!(!world.project().join(".agents").exists(), "{tier}: {}", done.stderr);
        assert_eq!(world.read(".vscode/tasks.json"), "own");
        let aside = shell(&world, "find $BAILIWICK_HOME/state/moved-aside -name evil -type f | wc -l");
        assert_eq!(aside.stdout.trim(), "1", "{tier}: {}", done.stderr);
    }
}
