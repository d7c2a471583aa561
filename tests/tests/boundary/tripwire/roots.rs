//! Tests directories outside of the project that agents may write: repositories in them are watched, and no remote
//! leads to an unwatched directory.

use std::fs;

use tests::repository::{is_marked, repository, shell};
use tests::{Finished, World, tier};

/// Commands that would make a person's git or shell in another repository execute `evil.sh`.
const PLANTS: &[(&str, &str)] = &[
    ("hook", "cp evil.sh \"$O\"/.git/hooks/post-commit"),
    ("configuration", "git -C \"$O\" config core.fsmonitor $PWD/evil.sh"),
    ("nested", "git init -q \"$O\"/sub; git -C \"$O\"/sub config core.fsmonitor $PWD/evil.sh"),
    (
        "moved away",
        "mv \"$O\"/.git \"$O\"/.g2; cp -r \"$O\"/.g2 \"$O\"/.git; cp evil.sh \"$O\"/.git/hooks/post-commit",
    ),
    ("settings", "echo \"$PWD/evil.sh\" > \"$O\"/.envrc"),
];

const PERSON: &str = "cd \"$O\" && git commit -q --allow-empty -m x; git status; ! [ -f .envrc ] || sh .envrc; cd sub && git status";

/// Creates a world with another repository outside of the project, and returns the path of that repository.
fn with_other(user: tests::User) -> (World, String) {
    let world = repository(user);
    let other = world.home().join("other");
    let made = shell(
        &world,
        &format!("git init -q {0} && git -C {0} commit -q --allow-empty -m x", other.display()),
    );
    assert_eq!(made.code, 0, "{}", made.stderr);
    let other = other.display().to_string();
    (world, other)
}

#[test]
fn another_write_root_that_is_a_repository_is_watched() {
    for (user, tier) in tier::everywhere() {
        for (name, plant) in PLANTS {
            let (control, other) = with_other(user);
            shell(&control, &format!("O={other}; {plant}"));
            shell(&control, &format!("O={other}; {PERSON}"));
            assert!(is_marked(&control), "{name}: the attack does nothing without us");
            let (world, other) = with_other(user);
            let work = format!("O={other}; echo work > \"$O\"/work; {plant}; true");
            let done = Finished::of(world.sandbox(tier, &["--write", &other], "bash").args(["-c", &work]));
            shell(&world, &format!("O={other}; {PERSON}"));
            assert!(!is_marked(&world), "{name}, {tier}, {user:?}: {}", done.stderr);
            assert_eq!(fs::read_to_string(format!("{other}/work")).unwrap(), "work\n", "{}", done.stderr);
        }
    }
}

#[test]
fn what_is_named_in_another_repository_is_given_away() {
    for (user, tier) in tier::everywhere() {
        let (world, other) = with_other(user);
        let config = format!("{other}/.git/config");
        let flags = ["--write", other.as_str(), "--write", config.as_str()];
        let command = format!("git -C {other} config core.editor vi");
        let done = Finished::of(world.sandbox(tier, &flags, "bash").args(["-c", &command]));
        assert!(
            fs::read_to_string(&config).unwrap().contains("editor = vi"),
            "{tier}, {user:?}: {}",
            done.stderr
        );
    }
}

/// Tests remotes in the package cache, because it outlives the session. A later push would run the hooks there.
#[test]
fn no_remote_leads_into_the_cache() {
    const PLANT: &str = "git init -q --bare $C/r.git; cp evil.sh $C/r.git/hooks/pre-receive; ";
    const REMOTES: &[(&str, &str, &str)] = &[
        ("url", "git remote add origin $C/r.git", "git push -q origin HEAD"),
        ("encoded", "git remote add origin file://$(echo $C | sed s,/,/%2e/,2)/r", "git push -q origin HEAD"),
        (
            "push address",
            "git remote add origin https://example.org/x; git config remote.origin.pushurl $C/r.git",
            "git push -q origin HEAD",
        ),
        (
            "of a branch",
            "git config branch.$(git branch --show-current).remote $C/r.git; git config push.default current",
            "git push -q",
        ),
        ("by a link", "ln -s $C/r.git link; git remote add origin link", "git push -q origin HEAD"),
        (
            "nested",
            "git clone -q $C/r.git sub 2>/dev/null; git -C sub commit -q --allow-empty -m x",
            "cd sub; git commit -q --allow-empty -m x; git push -q origin HEAD",
        ),
    ];
    for (user, tier) in tier::everywhere() {
        for (name, plant, push) in REMOTES {
            let identity = crate::tripwire::attack::IDENTITY;
            let control = repository(user);
            shell(&control, &format!("{identity}C={}/cache; {PLANT}{plant}", control.home().display()));
            shell(&control, push);
            assert!(is_marked(&control), "{name}: the attack does nothing without us");
            let world = repository(user);
            let command = format!("{identity}C=$PIP_CACHE_DIR; {PLANT}{plant}; true");
            let done = Finished::of(world.sandbox(tier, &[], "bash").args(["-c", &command]));
            shell(&world, push);
            assert!(!is_marked(&world), "{name}, {tier}, {user:?}: {}", done.stderr);
        }
    }
}

/// Tests a link that appears after the address of a remote was found harmless: in the same call, or in another session.
#[test]
fn an_address_in_the_project_does_not_come_to_lead_into_the_cache() {
    for (user, tier) in tier::everywhere() {
        let world = repository(user);
        shell(&world, "git remote add origin sub");
        let command = "git init -q --bare $PIP_CACHE_DIR/r.git; cp evil.sh $PIP_CACHE_DIR/r.git/hooks/pre-receive; \
            ln -s $PIP_CACHE_DIR/r.git sub";
        let done = Finished::of(world.sandbox(tier, &[], "bash").args(["-c", command]));
        shell(&world, "git push -q origin HEAD");
        assert!(!is_marked(&world), "{tier}, {user:?}: {}", done.stderr);
    }
}
