//! A command that fills the disk, the quota or the inodes: what cannot be put back does not stay in its place either.

use std::process::Command;

use nix::unistd::geteuid;
use tests::programs::Programs;
use tests::repository::{is_marked, repository};
use tests::{Finished, User, World, skip};

/// Everything of an attack in a mount namespace of its own, where the project lies on a small tmpfs. `$FULL` has the options of the
/// tmpfs, `$STATE` the state directory, `$FILL` uses up what there is.
const ATTACK: &str = r#"set -e
mount -t tmpfs -o "$FULL" none "$PROJECT"
cp -a "$OUTSIDE/." "$PROJECT"
cd "$PROJECT"
hook() { printf '#!/bin/sh\nexit 0\n' > $1; chmod +x $1; }
hook .git/hooks/pre-commit; echo 'export A=1' > .envrc; mkdir .vscode; echo '{}' > .vscode/tasks.json
set +e
export BAILIWICK_HOME=$STATE
"$BAILIWICK" sandbox --tier floor -C . -- bash -c "cp evil.sh .git/hooks/pre-commit; rm .vscode/tasks.json; \
    cp evil.sh .envrc; git config core.fsmonitor $PROJECT/evil.sh; echo evil > .bashrc.d; mkdir -p .zed; echo evil > .zed/tasks.json; \
    $FILL; true"
echo "ended $?"
git status > /dev/null; git commit -q --allow-empty -m later; sh ./.envrc < /dev/null
for place in .zed/tasks.json .vscode/tasks.json .git/hooks/pre-commit .envrc; do
    [ ! -e $place ] || echo "$place: $(head -c 20 $place | tr '\n' ' ')"
done
rm -f fill fills/*
"$BAILIWICK" sandbox --tier floor -C . -- true
"#;

fn attacked(world: &World, full: &str, state: &str, fill: &str) -> Finished {
    let outside = world.root().join("outside");
    std::fs::rename(world.project(), &outside).unwrap();
    std::fs::create_dir(world.project()).unwrap();
    let state = state.replace("PROJECT", &world.project().display().to_string());
    let state = state.replace("OWN", &world.own().display().to_string());
    let mut unshare: Command = world.command("unshare");
    unshare.args(["--mount", "--propagation", "private", "bash", "-c", ATTACK]);
    unshare.env("BAILIWICK", Programs::get().path("bailiwick")).env("OUTSIDE", outside);
    unshare.env("PROJECT", world.project()).env("FULL", full).env("STATE", state).env("FILL", fill);
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
    let bytes = "head -c 100000000 /dev/zero > fill";
    let files = "mkdir fills; for n in $(seq 5000); do : > fills/$n || break; done 2> /dev/null";
    for (name, full, fill) in
        [("bytes", "size=4m,mode=755", bytes), ("inodes", "size=64m,nr_inodes=400,mode=755", files)]
    {
        for state in ["OWN", "PROJECT/.own-state"] {
            let world = repository(User::Myself);
            let done = attacked(&world, full, state, fill);
            if done.stderr.contains("unshare failed") || done.stderr.contains("mount:") {
                skip!("no mount namespace can be made here: {}", done.stderr);
            }
            let said = format!("{name}, {state}: {}\n{}", done.stdout, done.stderr);
            assert!(done.stdout.contains("ended 0"), "{said}");
            assert!(!is_marked(&world), "{said}");
            assert!(!done.stdout.contains(".zed/tasks.json: evil"), "{said}");
            assert!(done.stderr.contains("could not be restored: .git/hooks/pre-commit"), "{said}");
        }
    }
}
