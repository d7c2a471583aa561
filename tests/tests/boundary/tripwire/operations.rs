//! Tests git operations in the sandbox, complete or paused: the host's git then finds the same state as without a
//! sandbox.

use ipc::confinement::Tier;
use tests::repository::{repository, shell};
use tests::side_by_side::side_by_side;
use tests::{Finished, User, World, tier};

/// Variables with the identity and time of commits, so that commits with and without a sandbox have equal ids.
const ALWAYS: &str = "export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@e GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@e \
    GIT_AUTHOR_DATE='@1700000000 +0000' GIT_COMMITTER_DATE='@1700000000 +0000' GIT_EDITOR=true; ";

/// Commands that create a branch with two commits. The first conflicts with the current branch in `kept.txt`.
const DIVERGED: &str = "git checkout -q -b other; echo o > kept.txt; git commit -qam o; echo p > p; git add p; git commit -qm p; \
    git checkout -q -; echo m > kept.txt; git commit -qam m; ";

/// Operations of git, each with true if the full tier needs permission to configure git.
const OPERATIONS: &[(&str, bool, &str)] = &[
    ("init", false, "git init -q new"),
    ("add", false, "echo a > a; git add a; echo n > n; git add -N n; git rm -q --cached kept.txt"),
    (
        "commit",
        false,
        "echo a > a; git add a; git commit -qm a; git commit -q --allow-empty -m b; git reset -q --soft HEAD~1",
    ),
    ("amend", false, "echo a > a; git add a; git commit -q --amend -m amended"),
    ("branch", false, "git branch a; git checkout -q -b b; git branch -d a; git tag -a -m t t"),
    ("branch, renamed", true, "git branch a; git branch -m a b"),
    ("stash", false, "echo a > kept.txt; git stash -q; echo b > n; git stash -q -u"),
    (
        "stash, in conflict",
        false,
        "echo a > kept.txt; git stash -q; echo b > kept.txt; git commit -qam b; git stash pop -q",
    ),
    (
        "merge",
        false,
        "git checkout -q -b other; echo o > o; git add o; git commit -qm o; git checkout -q -; git merge -q --no-ff -m m other",
    ),
    ("merge, paused", false, "D git merge -q other"),
    ("merge with rerere, paused", true, "D git config rerere.enabled true; git merge -q other"),
    (
        "merge without a commit",
        false,
        "git checkout -q -b other; echo o > o; git add o; git commit -qm o; git checkout -q -; git merge -q --no-ff --no-commit other",
    ),
    (
        "squash",
        false,
        "git checkout -q -b other; echo o > o; git add o; git commit -qm o; git checkout -q -; git merge -q --squash other",
    ),
    (
        "rebase",
        false,
        "git checkout -q -b other; echo o > o; git add o; git commit -qm o; git checkout -q -; echo m > m; git add m; git commit -qm m; git rebase -q other",
    ),
    ("rebase, paused", false, "D git rebase -q other"),
    ("rebase by am, paused", false, "D git rebase -q --apply other"),
    ("rebase, edited", false, "D GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i HEAD~1"),
    (
        "rebase of merges, edited",
        false,
        "git checkout -q -b other; echo o > o; git add o; git commit -qm o; git checkout -q -; git merge -q --no-ff -m m other; GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -r -i --root",
    ),
    ("rebase with autostash, paused", false, "D echo s > evil.sh; git rebase -q --autostash other"),
    (
        "rebase with options, paused",
        false,
        "D git rebase -q -s ort -X ours -X diff-algorithm=patience --update-refs -i other; GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i -X theirs HEAD~1",
    ),
    ("rebase, aborted", false, "D git rebase -q other; git rebase --abort"),
    (
        "cherry-pick",
        false,
        "git checkout -q -b other; echo o > o; git add o; git commit -qm o; git checkout -q -; git cherry-pick -x other",
    ),
    ("cherry-pick, paused", false, "D git cherry-pick other~1"),
    ("cherry-pick of two, paused", false, "D git cherry-pick -X patience other~1 other"),
    (
        "revert of two, paused",
        false,
        "D git revert --no-edit HEAD HEAD~1; echo c > kept.txt; git commit -qam c; git revert --no-edit HEAD~1 HEAD~2",
    ),
    (
        "am, paused",
        false,
        "D git format-patch -q -2 -o patches other; git am -q -3 --whitespace=fix -C1 patches/*",
    ),
    (
        "bisect",
        false,
        "for i in 1 2 3 4 5; do git commit -q --allow-empty -m $i; done; git bisect start HEAD HEAD~5 -- . >/dev/null",
    ),
    (
        "bisect with terms",
        false,
        "for i in 1 2 3 4 5; do git commit -q --allow-empty -m $i; done; git bisect start --term-old fast --term-new slow --first-parent; git bisect slow HEAD; git bisect fast HEAD~5; git bisect skip",
    ),
    (
        "bisect, run",
        false,
        "for i in 1 2 3 4 5; do git commit -q --allow-empty -m $i; done; git bisect start HEAD HEAD~5; git bisect run false",
    ),
    (
        "bisect, reset",
        false,
        "for i in 1 2 3; do git commit -q --allow-empty -m $i; done; git bisect start HEAD HEAD~3; git bisect reset",
    ),
    (
        "worktree",
        false,
        "git worktree add -q wt; git -C wt commit -q --allow-empty -m w; git worktree lock wt",
    ),
    (
        "worktree, paused",
        false,
        "D git worktree add -q wt other; git -C wt rebase -q @{-1} || git -C wt merge -q HEAD@{1}",
    ),
    (
        "worktree, moved",
        false,
        "git worktree add -q wt; git worktree move wt wt2; git worktree add -q gone; git worktree remove gone",
    ),
    (
        "submodule",
        true,
        "git init -q lib; git -C lib commit -q --allow-empty -m l; git -c protocol.file.allow=always submodule --quiet add ./lib sub; git commit -qm s; git -C sub commit -q --allow-empty -m x",
    ),
    (
        "gc",
        false,
        "git gc -q --prune=now; git repack -adq; git pack-refs --all; git commit-graph write; git multi-pack-index write; git maintenance run --task=loose-objects",
    ),
    (
        "partial clone",
        false,
        "git clone -q --bare . hub.git; git -C hub.git config uploadpack.allowFilter true; git clone -q --filter=blob:none --no-local file://$PWD/hub.git part; git clone -q --depth 1 file://$PWD/hub.git shallow; git clone -q --shared . shared; git clone -q --sparse . sparse",
    ),
    ("notes", false, "git notes add -m n; git replace --graft HEAD; git reflog expire --all --expire=now"),
    (
        "fetch",
        false,
        "git clone -q . copy; git -C copy commit -q --allow-empty -m c; git fetch -q copy; git merge -q --ff-only FETCH_HEAD",
    ),
    (
        "reftable",
        false,
        "git init -q --ref-format=reftable rt; git -C rt commit -q --allow-empty -m r; git -C rt branch b",
    ),
    (
        "sparse checkout",
        true,
        "mkdir d; echo d > d/d; git add d; git commit -qm d; git sparse-checkout set d",
    ),
    (
        "split index",
        false,
        "git update-index --split-index; git update-index --untracked-cache; echo a > a; git add a",
    ),
];

/// Returns the state of all repositories in the project as the host's git sees it, without differences between two
/// projects.
fn seen(world: &World) -> String {
    const LOOK: &str = "for d in . */; do [ -e $d/.git ] || [ -e $d/HEAD ] || continue; echo \"== $d\"; cd $d; \
        git status; git status --porcelain=v2 --branch; git fsck --full --no-dangling; git stash list; git worktree list; git submodule status; \
        git for-each-ref; git bisect log; git rerere status; cd - >/dev/null; done 2>&1";
    let done = shell(world, LOOK);
    let text = done.stdout.replace(&world.project().display().to_string(), "PROJECT");
    let lines = text.lines().filter(|line| !line.starts_with("Checking ") && !line.contains("took"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_hosts_git_finds_the_same_after_an_operation_inside() {
    let cases = OPERATIONS.iter().enumerate().flat_map(|(case, operation)| {
        // Only paused operations depend on the user.
        let is_wanted = |user: User| user == User::Myself || operation.0.ends_with("paused");
        let places = tier::share(case).into_iter().filter(move |(user, _)| is_wanted(*user));
        places.map(move |place| (operation, place))
    });
    let failed = side_by_side(cases, |(operation, (user, tier))| failure(operation, user, tier));
    let failed: Vec<_> = failed.into_iter().flatten().collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// Says how an operation in this tier has another effect than without a sandbox; `None` if it has the same.
fn failure((name, configures, operation): &(&str, bool, &str), user: User, tier: Tier) -> Option<String> {
    let command = format!("{ALWAYS}{}; true", operation.replace("D ", DIVERGED));
    let control = dated(user);
    shell(&control, &command);
    let expected = seen(&control);
    let world = dated(user);
    let flags: &[&str] = if tier == Tier::Full && *configures { &["--write", ".git/config"] } else { &[] };
    let done = Finished::of(world.sandbox(tier, flags, "bash").args(["-c", &command]));
    let found = seen(&world);
    let differs = found != expected || done.stderr.replace("unchanged", "").contains("changed");
    let said = done.stderr;
    differs.then(|| format!("{name}, {tier}, {user:?}: {said}\n{found}\n-- and not\n{expected}"))
}

/// Creates a repository whose first commit has the same id each time.
fn dated(user: User) -> World {
    let world = repository(user);
    let mark = "sed -i s,^echo.*,echo, evil.sh";
    let amended =
        shell(&world, &format!("{ALWAYS}{mark}; git add -A; git commit -q --amend --reset-author -m base"));
    assert_eq!(amended.code, 0, "{}", amended.stderr);
    // Removes the objects of the commit before it was amended.
    shell(&world, "git reflog expire --all --expire=now; git gc -q --prune=now");
    world
}
