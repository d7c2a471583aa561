//! Tests of the project: the owners of its files, its protected files, and its possible locations.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use ipc::confinement::{Confinement, Tier};
use ipc::path::WirePath;
use ipc::rights::Network;

use crate::common::order::{encoded, order, ordered};
use crate::common::place::{Place, errors, in_tier_as_each_user, text};
use crate::run::{in_full, run, said};

#[test]
fn owners_look_right() {
    in_full(|place| {
        let user = fs::metadata(place.path("project")).unwrap().uid();
        let output = said(place, |_| {}, "touch new; stat -c %u new .; id -u; stat -c %u /");
        let root = if user == 0 { 0 } else { 65534 };
        assert_eq!(output, format!("{user}\n{user}\n{user}\n{root}\n"));
        assert_eq!(fs::metadata(place.path("project/new")).unwrap().uid(), user);
    });
}

#[test]
fn root_sees_the_owners_of_others() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: as root, and as another user (needs root)");
        return;
    }
    in_full(|place| {
        if fs::metadata(place.path("project")).unwrap().uid() == 0 {
            std::os::unix::fs::chown(place.path("project/keep"), Some(4321), Some(4321)).unwrap();
            assert_eq!(said(place, |_| {}, "stat -c %u:%g keep"), "4321:4321\n");
        }
    });
}

#[test]
fn another_user_owns_what_the_program_makes() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: as root, and as another user (needs root)");
        return;
    }
    for tier in [Tier::Floor, Tier::Full] {
        in_tier_as_each_user(tier, |place| {
            if fs::metadata(place.path("project")).unwrap().uid() != 0 {
                return;
            }
            fs::set_permissions(place.path("project"), fs::Permissions::from_mode(0o777)).unwrap();
            let mut confinement = order(place);
            confinement.identity = Some(ipc::confinement::Identity { uid: 4321, gid: 4322 });
            let script = "touch new; id -u; id -g; id -G; kill -0 $PPID";
            let rights = encoded(&confinement);
            let (output, reports) = ordered(place, &rights, &["/bin/bash", "-c", script]);
            assert_eq!(text(&output), "4321\n4322\n4322\n", "{}{reports:?}", errors(&output));
            let made = fs::metadata(place.path("project/new")).unwrap();
            assert_eq!((made.uid(), made.gid()), (4321, 4322));
        });
    }
}

fn protect_git(place: &Place) -> impl Fn(&mut Confinement) {
    drop(place.unconfined("git init -q . && mkdir -p .git/hooks"));
    let paths = ["project/.git/hooks", "project/.git/config", "project/.envrc"].map(|name| place.path(name));
    move |order| order.rights.protected = paths.clone().map(WirePath::from).into()
}

#[test]
fn what_the_host_runs_later_cannot_be_changed_or_moved_away() {
    in_full(|place| {
        let protect = protect_git(place);
        for (script, error) in [
            ("echo x > .git/hooks/pre-commit", "Read-only file system"),
            ("echo x >> .git/config", "Read-only file system"),
            ("mv .git .g2", "Device or resource busy"),
            ("mv .git/hooks .git/h2", "Device or resource busy"),
            ("rm -f .git/config", "Device or resource busy"),
            ("git config user.name x", "busy"),
            ("chmod 777 .git/hooks", "Read-only file system"),
            ("rm -rf .git", "Device or resource busy"),
        ] {
            let (output, _) = run(place, &protect, script);
            assert!(!output.status.success(), "{script}");
            assert!(errors(&output).contains(error), "{script}: {}", errors(&output));
        }
        assert!(place.path("project/.git/config").exists() && !place.path("project/.envrc").exists());
        assert!(
            place.unconfined("echo x > .git/hooks/pre-commit && mv .git .g2 && mv .g2 .git").status.success()
        );
    });
}

#[test]
fn git_works_beside_what_is_protected() {
    in_full(|place| {
        let protect = protect_git(place);
        drop(place.unconfined("rm -f .git/hooks/*"));
        let script = "set -e; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=b; \
            git add keep; git commit -qm one; git branch b; git checkout -q b; echo x >> keep; git stash -q; git stash pop -q; \
            git commit -qam two; git clone -q . ../project/clone; git -C clone log --oneline | wc -l; git gc -q; \
            git worktree add -q /tmp/tree; git status --porcelain";
        assert_eq!(said(place, &protect, script), "2\n?? clone/\n");
    });
}

#[test]
fn unusual_projects_work() {
    in_full(|place| {
        for name in [&b"project/with space"[..], "project/\u{fc}n\u{ef}".as_bytes(), b"project/\xff\xfe"] {
            let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name);
            let directory = place.path("").join(name);
            fs::create_dir_all(&directory).unwrap();
            std::os::unix::fs::chown(&directory, Some(fs::metadata(place.path("home")).unwrap().uid()), None)
                .unwrap();
            let change = |order: &mut Confinement| {
                let project = order.project.clone();
                order.rights.write.retain(|root| *root != project);
                order.rights.write.push(directory.clone().into());
                order.project = directory.clone().into();
            };
            said(place, change, "echo x > made; mkdir -p a/b; cat made");
            assert!(directory.join("a/b").exists());
        }
    });
}

#[test]
fn a_read_only_project_below_tmp_is_there_and_cannot_be_changed() {
    in_full(|place| {
        let read_only = |order: &mut Confinement| {
            let project = order.project.clone();
            order.rights.write.retain(|root| *root != project);
        };
        assert_eq!(said(place, read_only, "cat keep"), "mine");
        let (output, _) = run(place, read_only, "echo x > keep");
        assert!(errors(&output).contains("Read-only file system"), "{}", errors(&output));
        let (output, _) = run(place, read_only, "chmod 777 keep; touch keep; ls ../home");
        for error in ["changing permissions", "cannot touch", "No such file"] {
            assert!(errors(&output).contains(error), "{}", errors(&output));
        }
    });
}

#[test]
fn a_single_file_may_be_a_write_root() {
    in_full(|place| {
        let only = |order: &mut Confinement| {
            let project = order.project.clone();
            order.rights.write.retain(|root| *root != project);
            order.rights.write.push(place.path("project/keep").into());
        };
        said(place, only, "echo more >> keep");
        assert_eq!(fs::read_to_string(place.path("project/keep")).unwrap(), "minemore\n");
        assert!(!run(place, only, "echo x > other").0.status.success());
    });
}

/// Tests moves and links between directories. On the host's network, init is in a Landlock domain that only bounds
/// signals and abstract sockets; unless that domain allows REFER, these acts fail with EXDEV.
#[test]
fn files_and_directories_move_and_are_linked_on_either_network() {
    in_full(|place| {
        for net in [Network::Off, Network::On] {
            let script = "for at in . /dev/shm; do
                    mkdir -p $at/a/d $at/b && touch $at/a/f && ln $at/a/f $at/b/f
                    (cd $at && python3 -c 'import os; os.rename(\"a/d\", \"b/d\")') && rm -r $at/a $at/b && echo moved
                done";
            assert_eq!(
                said(place, |confinement| confinement.rights.net = net.clone(), script),
                "moved\nmoved\n",
                "{net:?}"
            );
        }
    });
}
