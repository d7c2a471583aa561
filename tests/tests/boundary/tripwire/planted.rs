//! Tests programs that an agent plants where a person's git would run them.

use ipc::confinement::Tier;
use tests::repository::{is_marked, repository, shell};
use tests::side_by_side::side_by_side;
use tests::tier;

use crate::tripwire::attack::{attack, is_known};

/// Later commands of a person in a project.
const PERSON: &str = "git status; git add -A; git commit -qm later; git log -p -1 | cat; git diff HEAD~1; \
    GIT_EDITOR=true git rebase --continue; git checkout -q -b later; git stash; git push -q; \
    for d in sub sub/bare hidden.git .g2 dark/sub; do [ -d $d ] && (cd $d && git status; git log -1 -p; git add .; git commit -qm x); done; \
    true";

/// Commands that would make a person's work in the project run `evil.sh`. `$E` stands for the path of that script.
const RUN_BY_GIT: &[(&str, &str)] = &[
    ("hook", "cp evil.sh .git/hooks/pre-commit"),
    ("hook by link", "ln -s ../../evil.sh .git/hooks/pre-commit"),
    ("hooks by link", "rm -rf .git/hooks; mkdir h; cp evil.sh h/post-commit; ln -s ../h .git/hooks"),
    ("closed hooks", "cp evil.sh .git/hooks/pre-commit; chmod 0111 .git/hooks"),
    ("closed git", "cp evil.sh .git/hooks/pre-commit; chmod 0311 .git"),
    ("hooksPath", "mkdir h; cp evil.sh h/pre-commit; git config core.hooksPath h"),
    ("fsmonitor", "git config core.fsmonitor \"$E\""),
    ("fsmonitor, oddly written", "printf '[CORE]fsMonitor=\"%s\"\\\\\\n' \"$E\" >> .git/config"),
    (
        "filter",
        "git config filter.x.clean \"$E\"; git config filter.x.smudge \"$E\"; echo '* filter=x' > .gitattributes",
    ),
    ("textconv", "git config diff.x.textconv \"$E\"; echo '* diff=x' > .gitattributes; echo y > kept.txt"),
    ("external diff", "git config diff.external \"$E\"; echo y > kept.txt"),
    ("include", "printf '[core]\\nfsmonitor = %s\\n' \"$E\" > inc; git config include.path ../inc"),
    (
        "includeIf",
        "printf '[core]\\nfsmonitor = %s\\n' \"$E\" > inc; git config includeIf.gitdir:**.path \"$PWD/inc\"",
    ),
    (
        "pager",
        "git config core.pager \"$E\"; git config pager.status \"$E\"; git config alias.status x; git config core.fsmonitor \"$E\"",
    ),
    (
        "worktree config",
        "git config extensions.worktreeConfig true; git config --worktree core.fsmonitor \"$E\"",
    ),
    (
        "common directory",
        "cp -r .git /tmp/x$$ 2>/dev/null; cp -r .git c; printf '[core]\\nfsmonitor = %s\\n' \"$E\" >> c/config; \
        echo ../c > .git/commondir",
    ),
    ("moved away", "mv .git .g2; cp -r .g2 .git; cp evil.sh .git/hooks/pre-commit"),
    ("moved away, linked", "mv .git .g2; cp evil.sh .g2/hooks/pre-commit; ln -s .g2 .git"),
    ("moved away, named", "mv .git .g2; cp evil.sh .g2/hooks/pre-commit; echo 'gitdir: .g2' > .git"),
    (
        "deleted and made anew",
        "rm -rf .git; git init -q; git config user.name a; git config user.email b; git config core.fsmonitor \"$E\"",
    ),
    ("nested", "git init -q sub; git -C sub config core.fsmonitor \"$E\""),
    ("nested hook", "git init -q sub; touch sub/f; cp evil.sh sub/.git/hooks/pre-commit"),
    (
        "nested, named",
        "git init -q hidden.git; mkdir sub; echo \"gitdir: ../hidden.git/.git\" > sub/.git; \
        git -C hidden.git config core.fsmonitor \"$E\"",
    ),
    (
        "nested by link",
        "git init -q x; git -C x config core.fsmonitor \"$E\"; mv x/.git x/dot; mkdir sub; ln -s ../x/dot sub/.git",
    ),
    (
        "bare",
        "mkdir -p sub/bare; git init -q --bare sub/bare; git -C sub/bare config core.bare false; \
        git -C sub/bare config core.worktree .; git -C sub/bare config core.fsmonitor \"$E\"",
    ),
    (
        "a rebase that waits",
        "export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@e GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@e; \
            git commit -q --allow-empty -m more; GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i HEAD~1; \
            echo \"exec $E </dev/null\" >> .git/rebase-merge/git-rebase-todo",
    ),
    (
        "in a directory that cannot be listed",
        "mkdir dark; git init -q dark/sub; git -C dark/sub config core.fsmonitor \"$E\"; chmod 0311 dark",
    ),
    (
        "in the git directory",
        "git init -q .git/evil; git -C .git/evil config core.fsmonitor \"$E\"; mkdir sub; \
        echo 'gitdir: ../.git/evil/.git' > sub/.git",
    ),
];

#[test]
fn nothing_that_an_agent_planted_is_run_by_a_persons_git() {
    let cases = RUN_BY_GIT.iter().enumerate();
    let cases =
        cases.flat_map(|(case, attack)| tier::share(case).into_iter().map(move |place| (place, attack)));
    side_by_side(cases, |((user, tier), (name, attack_command))| {
        let command = format!("E=$PWD/evil.sh; {attack_command}; true");
        let control = repository(user);
        shell(&control, &command);
        shell(&control, PERSON);
        assert!(is_marked(&control), "{name}: the attack does nothing without us");
        let world = repository(user);
        let (done, told) = attack(&world, tier, &command);
        let seen = shell(&world, PERSON);
        assert!(!is_marked(&world), "{name}, {tier}: {}\n{}\n{told}", done.stdout, seen.stderr);
        assert!(is_known(tier, &done, &told), "{name}, {tier}: {}", done.stdout);
        // Removed objects and branches cannot be restored. An agent may remove them.
        if tier == Tier::Full && attack_command.starts_with("rm -rf .git;") {
            return;
        }
        let sound = shell(&world, "git fsck && git log -1");
        assert_eq!(sound.code, 0, "{name}, {tier}: the repository is broken: {told}");
    });
}
