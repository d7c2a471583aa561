use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use nix::libc;
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::changes::{Answers, TIMES, by_descriptor, by_path, c_path, outcome};
use crate::harness::{Place, in_the_floor, pipe};
use crate::paths::{forms, open_path};

pub(crate) fn changed(path: &Path) -> (i64, i64) {
    let status = fs::symlink_metadata(path).unwrap();
    (status.ctime(), status.ctime_nsec())
}

pub(crate) fn make(place: &Place, name: &str) -> PathBuf {
    let path = place.path(name);
    fs::write(&path, "content").unwrap();
    chown(&path, place.user(), place.user()).unwrap();
    path
}

fn without(place: &Place, act: impl FnOnce() -> Answers) -> String {
    let (mut told, mut tell) = pipe();
    place.unmediated(|| write!(tell, "{:?}", act()).unwrap());
    drop(tell);
    let mut answers = String::new();
    told.read_to_string(&mut answers).unwrap();
    answers
}

fn denied(answers: Answers) -> Answers {
    answers.into_iter().filter(|&(_, errno)| errno != libc::EACCES).collect()
}

fn reading(path: &Path) -> OwnedFd {
    File::open(path).unwrap().into()
}

/// Makes each call that changes metadata on a file of the directory, by each form of its path. If the path ends in a
/// link, calls that would change the link itself are left out.
fn by_each_form(place: &Place, directory: &str) -> Vec<(PathBuf, Answers)> {
    let there = place.path(directory);
    std::env::set_current_dir(&there).unwrap();
    let (descriptor, file) = (open_path(&there), open_path(&there.join("file")));
    let [number, of_file] = [&descriptor, &file].map(AsRawFd::as_raw_fd);
    let links = [
        there.parent().unwrap().join(format!("in/each-of-{directory}/file")),
        format!("/dev/fd/{of_file}").into(),
        format!("/proc//self/./fd/{of_file}").into(),
        format!("/proc/self/task/../fd/../../thread-self/fd/{of_file}").into(),
    ];
    let mut paths: Vec<_> =
        forms(place, directory, &descriptor, &["file"]).iter().map(|form| form.join("file")).collect();
    paths.push(format!("/dev/fd/{number}/file").into());
    paths.extend(links.clone());
    let answers = paths.into_iter().map(|path| {
        let mut answers = by_path(&path);
        answers.retain(|(call, _)| !(links.contains(&path) && call.starts_with('l')));
        (path, answers)
    });
    answers.collect()
}

#[test]
fn no_form_of_a_path_changes_what_is_outside_and_each_changes_what_is_inside() {
    in_the_floor(|place| {
        let (inside, outside) = (make(place, "in/file"), make(place, "out/file"));
        let expected = without(place, || by_path(&inside));
        let before = (changed(&inside), changed(&outside));
        place.with_metadata(|| {
            for (path, answers) in by_each_form(place, "out") {
                assert_eq!(denied(answers), [], "{}", path.display());
            }
        });
        assert_eq!(changed(&outside), before.1);
        place.with_metadata(|| {
            for (path, answers) in by_each_form(place, "in") {
                let failed: Answers = answers.into_iter().filter(|&(_, errno)| errno != 0).collect();
                assert_eq!(failed, [], "{}", path.display());
            }
        });
        assert_ne!(changed(&inside), before.0);
        assert_eq!(without(place, || by_path(&outside)), expected);
        assert_ne!(changed(&outside), before.1, "the control");
    });
}

#[test]
fn no_descriptor_changes_what_is_outside_and_each_changes_what_is_inside() {
    in_the_floor(|place| {
        let (inside, outside) = (make(place, "in/file"), make(place, "out/file"));
        let expected = without(place, || by_descriptor(&reading(&inside)));
        let before = (changed(&inside), changed(&outside));
        place.with_metadata(|| assert_eq!(denied(by_descriptor(&reading(&outside))), []));
        assert_eq!(changed(&outside), before.1);
        place.with_metadata(|| assert_eq!(format!("{:?}", by_descriptor(&reading(&inside))), expected));
        assert_ne!(changed(&inside), before.0);
        assert_eq!(without(place, || by_descriptor(&reading(&outside))), expected);
        assert_ne!(changed(&outside), before.1, "the control");
    });
}

#[test]
fn what_is_hidden_in_the_tree_is_outside() {
    in_the_floor(|place| {
        let hidden = make(place, "in/hidden/file");
        let before = changed(&hidden);
        place.with_metadata(|| {
            assert_eq!(denied(by_path(&hidden)), []);
            assert_eq!(denied(by_path(place.path("in/hidden"))), []);
            assert_eq!(denied(by_descriptor(&reading(&hidden))), []);
        });
        assert_eq!(changed(&hidden), before);
    });
}

#[test]
fn directories_fifos_sockets_and_links_are_changed_inside_alone() {
    in_the_floor(|place| {
        for directory in ["in", "out"] {
            fs::create_dir(place.path(&format!("{directory}/directory"))).unwrap();
            nix::unistd::mkfifo(&place.path(&format!("{directory}/fifo")), nix::sys::stat::Mode::S_IRWXU)
                .unwrap();
            drop(UnixDatagram::bind(place.path(&format!("{directory}/socket"))).unwrap());
            symlink("missing", place.path(&format!("{directory}/link"))).unwrap();
            for name in ["directory", "fifo", "socket", "link"] {
                std::os::unix::fs::lchown(
                    place.path(&format!("{directory}/{name}")),
                    place.user(),
                    place.user(),
                )
                .unwrap();
            }
        }
        for name in ["directory", "fifo", "socket", "link"] {
            let [inside, outside] = ["in", "out"].map(|directory| place.path(&format!("{directory}/{name}")));
            let act = |path: &Path| if name == "link" { of_link(path) } else { by_path(path) };
            let expected = without(place, || act(&inside));
            let before = (changed(&inside), changed(&outside));
            place.with_metadata(|| assert_eq!(denied(act(&outside)), [], "{name}"));
            place.with_metadata(|| assert_eq!(format!("{:?}", act(&inside)), expected, "{name}"));
            assert_ne!(changed(&inside), before.0, "{name}");
            assert_eq!(changed(&outside), before.1, "{name}");
        }
    });
}

fn of_link(path: &Path) -> Answers {
    let (path, here, itself) = (c_path(path), libc::AT_FDCWD, libc::AT_SYMLINK_NOFOLLOW);
    let path = path.as_ptr();
    // SAFETY: strings end with a null byte, and there are two times.
    unsafe {
        let (user, group) = (libc::getuid(), libc::getgid());
        vec![
            ("fchmodat2", outcome(libc::syscall(452, here, path, 0o600, itself))),
            ("lchown", outcome(libc::lchown(path, user, group).into())),
            ("fchownat", outcome(libc::fchownat(here, path, user, group, itself).into())),
            ("utimensat", outcome(libc::utimensat(here, path, TIMES.as_ptr(), itself).into())),
            (
                "lsetxattr",
                outcome(libc::lsetxattr(path, c"user.x".as_ptr(), c"".as_ptr().cast(), 0, 0).into()),
            ),
        ]
    }
}

/// Tests changes to files without a name. A process that has such a file open may change it, unless the kernel shares
/// the file among all programs (such as an eventfd's inode).
#[test]
fn what_has_no_name_is_its_holders() {
    in_the_floor(|place| {
        let outside = make(place, "out/deleted");
        let kept = make(place, "out/kept");
        place.with_metadata(|| {
            let memory = memfd_create("memory", MFdFlags::MFD_CLOEXEC).unwrap();
            let (read, write) = pipe();
            let (left, right) = UnixDatagram::pair().unwrap();
            let temporary = File::options()
                .write(true)
                .mode(0o600)
                .custom_flags(libc::O_TMPFILE)
                .open(place.path("in"))
                .unwrap();
            let deleted = File::create(place.path("in/deleted")).unwrap();
            fs::remove_file(place.path("in/deleted")).unwrap();
            for own in [
                memory,
                read.into(),
                write.into(),
                left.into(),
                right.into(),
                temporary.into(),
                deleted.into(),
            ] {
                assert_eq!(fchmod(&own), 0);
                assert_eq!(File::from(own).metadata().unwrap().permissions().mode() & 0o777, 0o640);
            }
            // SAFETY: integers; the descriptor is new.
            let event = unsafe { std::os::fd::FromRawFd::from_raw_fd(libc::eventfd(0, 0)) };
            assert_eq!(fchmod(&event), libc::EACCES);
            for shared in ["/proc/self/ns/net", "/proc/self/status", "/dev/null", "/dev/full"] {
                assert_eq!(fchmod(&reading(Path::new(shared))), libc::EACCES, "{shared}");
            }
            // Its last name was outside, and a process outside may have it open.
            let held = reading(&outside);
            fs::hard_link(place.path("in/../out/deleted"), place.path("out/other")).unwrap();
            fs::remove_file(&outside).unwrap();
            assert_eq!(fchmod(&held), libc::EACCES);
            fs::remove_file(place.path("out/other")).unwrap();
            assert_eq!(fchmod(&held), libc::EACCES);
            // By a path of its own alone, and not by another's.
            assert_eq!(fchmod(&open_path(&kept).into()), libc::EBADF);
        });
    });
}

fn fchmod(file: &OwnedFd) -> i32 {
    // SAFETY: integers.
    outcome(unsafe { libc::fchmod(file.as_raw_fd(), 0o640) }.into())
}

/// Tests that paths through `/proc` do not lead to open files of another process. The kernel would let the mediator
/// open them, but denies them to a confined caller.
#[test]
fn what_another_process_has_open_is_not_reached_through_proc() {
    in_the_floor(|place| {
        let (read, _write) = pipe();
        let inside = make(place, "in/file");
        let held = reading(&inside);
        let process = std::process::id();
        let number = |file: &dyn AsRawFd| format!("/proc/{process}/fd/{}", file.as_raw_fd());
        let mode = |path: &str| by_path(path)[0].1;
        place.with_metadata(|| {
            for path in [number(&read), number(&held), number(&9999), format!("/proc/{process}/cwd/x")] {
                assert_eq!(mode(&path), libc::EACCES, "{path}");
            }
            let directory = File::open(format!("/proc/{process}")).unwrap();
            nix::unistd::fchdir(&directory).unwrap();
            assert_eq!(mode(&format!("fd/{}", held.as_raw_fd())), libc::EACCES);
            // Of the broker itself.
            // SAFETY: no arguments.
            let broker = unsafe { libc::getppid() };
            assert_eq!(mode(&format!("/proc/{broker}/fd/0")), libc::EACCES);
        });
    });
}

#[test]
fn a_device_is_touched_and_not_changed_otherwise() {
    in_the_floor(|place| {
        place.with_metadata(|| {
            let answers = by_path("/dev/null");
            let done: Vec<_> = answers.into_iter().filter(|&(_, errno)| errno != libc::EACCES).collect();
            assert_eq!(done, [("utimensat now", 0)]);
            let before = fs::metadata("/dev/null").unwrap().permissions().mode();
            assert_eq!(before & 0o777, 0o666);
        });
    });
}

#[test]
fn no_more_is_allowed_than_to_the_caller() {
    in_the_floor(|place| {
        if place.user().is_some() {
            return;
        }
        let of_another = make(place, "in/file");
        chown(&of_another, Some(7), Some(7)).unwrap();
        let before = changed(&of_another);
        let expected = without(place, || by_path(&of_another));
        place.with_metadata(|| {
            assert_eq!(format!("{:?}", by_path(&of_another)), expected);
            let own = make_here(&place.path("in/own"));
            // SAFETY: the path is a C string.
            assert_eq!(outcome(unsafe { libc::chown(own.as_ptr(), 7, 7) }.into()), libc::EPERM);
            // SAFETY: the path is a C string.
            assert_eq!(outcome(unsafe { libc::chmod(own.as_ptr(), 0o4755) }.into()), libc::EPERM);
            // `VFS_CAP_REVISION_2` (linux/capability.h), and no capabilities.
            let (name, value) = (c"security.capability", [0x0200_0000_u32, 0, 0, 0, 0]);
            let value = (value.as_ptr().cast(), size_of_val(&value));
            // SAFETY: C strings, and a value of its length.
            let answer = unsafe { libc::setxattr(own.as_ptr(), name.as_ptr(), value.0, value.1, 0) };
            assert_eq!(outcome(answer.into()), libc::EPERM);
        });
        assert!(expected.contains("(\"chmod\", 1)"), "{expected}");
        assert_eq!(fs::metadata(&of_another).unwrap().mode() & 0o7777, 0o644);
        assert_eq!(changed(&of_another), before);
    });
}

fn make_here(path: &Path) -> std::ffi::CString {
    fs::write(path, "").unwrap();
    c_path(path)
}

#[test]
fn a_caller_that_is_not_dumpable_is_refused() {
    in_the_floor(|place| {
        let inside = make(place, "in/file");
        place.with_metadata(|| {
            let file = reading(&inside);
            nix::sys::prctl::set_dumpable(false).unwrap();
            assert_eq!(fchmod(&file), libc::EPERM);
            assert_eq!(by_path(&inside)[0].1, libc::EPERM);
            nix::sys::prctl::set_dumpable(true).unwrap();
            assert_eq!(fchmod(&file), 0);
        });
    });
}
