//! Tests a command that uses up the disk, a quota or the inodes: changed files that cannot be restored are moved or
//! closed.

use std::process::Command;

use nix::unistd::geteuid;
use tests::programs::Programs;
use tests::repository::{is_marked, repository};
use tests::{Finished, User, World, skip};

/// Script of an attack in a separate mount namespace with the project on a small tmpfs. `$FULL` has the options of the
/// tmpfs, `$STATE` the state directory, `$FILL` the command that uses up the space.
const ATTACK: &str = r#"set -e
mount -t tmpfs -o "$FULL" none "$SMALL"
PROJECT=$SMALL/project
cp -a "$OUTSIDE" "$PROJECT"
cd "$PROJECT"
hook() { printf '#!/bin/sh\nexit 0\n' > $1; chmod +x $1; }
hook .git/hooks/pre-commit; echo 'export A=1' > .envrc; mkdir .vscode; echo '{}' > .vscode/tasks.json
set +e
export BAILIWICK_HOME=$STATE
"$BAILIWICK" sandbox --tier floor -C . -- bash -c "cp evil.sh .git/hooks/pre-commit; rm .vscode/tasks.json; \
    cp evil.sh .envrc; git config core.fsmonitor $PROJECT/evil.sh; $MAKE; $FILL; true"
echo "ended $?"
git status > /dev/null; git commit -q --allow-empty -m later; sh ./.envrc < /dev/null
for place in .zed .vscode/tasks.json .git/hooks/pre-commit .envrc; do
    [ ! -e $place ] || echo "there: $place"
done
find . $STATE -size -2 -name '*pre-commit*' -exec grep -l canary {} + | sed 's/^/aside: /'
"#;

struct Full {
    name: &'static str,
    options: &'static str,
    fill: &'static str,
}

const FULL: &[Full] = &[
    Full { name: "bytes", options: "size=4m,mode=755", fill: "head -c 100000000 /dev/zero > fill" },
    Full {
        name: "inodes",
        options: "size=64m,nr_inodes=400,mode=755",
        fill: "mkdir fills; for n in $(seq 5000); do : > fills/$n || break; done",
    },
];

fn attacked(world: &World, Full { options, fill, .. }: &Full, state: &str, make: &str) -> Finished {
    let outside = world.root().join("outside");
    std::fs::rename(world.project(), &outside).unwrap();
    std::fs::create_dir(world.project()).unwrap();
    let state = state.replace("SMALL", &world.project().display().to_string());
    let state = state.replace("OWN", &world.own().display().to_string());
    let mut unshare: Command = world.command("unshare");
    unshare.args(["--mount", "--propagation", "private", "bash", "-c", ATTACK]);
    unshare.env("BAILIWICK", Programs::get().path("bailiwick")).env("OUTSIDE", outside);
    unshare.env("SMALL", world.project()).env("FULL", options).env("STATE", state);
    unshare.env("FILL", fill).env("MAKE", make);
    for (name, value) in [("NAME", "t"), ("EMAIL", "t@example.org")] {
        unshare.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
    }
    Finished::of(&mut unshare)
}

#[test]
fn what_cannot_be_put_back_for_want_of_room_is_run_by_nobody() {
    if !geteuid().is_root() {
        skip!("only root mounts a small file system");
    }
    let cases = FULL.iter().flat_map(|full| ["OWN", "SMALL/own"].map(|state| (full, state)));
    for (full, state) in cases {
        for make in ["true", "mkdir -p .zed; echo evil > .zed/tasks.json"] {
            let world = repository(User::Myself);
            let done = attacked(&world, full, state, make);
            if done.stderr.contains("unshare failed") || done.stderr.contains("mount:") {
                skip!("no mount namespace can be made here: {}", done.stderr);
            }
            let said = format!("{}, {state}, {make}: {}\n{}", full.name, done.stdout, done.stderr);
            assert!(done.stdout.contains("ended 0"), "{said}");
            assert!(!is_marked(&world) && !done.stdout.contains("there: .zed"), "{said}");
            for place in [".vscode/tasks.json", ".git/hooks/pre-commit", ".envrc"] {
                let told = format!("could not be restored: {place}");
                let is_there = done.stdout.contains(&format!("there: {place}"));
                assert!(is_there != done.stderr.contains(&told), "{place}: {said}");
            }
            assert!(done.stdout.contains("aside: "), "what was planted is not lost: {said}");
        }
    }
}
