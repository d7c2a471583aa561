use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use nix::libc;

use crate::changes::{c_path, outcome};
use crate::harness::{goes_on, in_the_floor};
use crate::metadata::{changed, make};

const RACING: Duration = Duration::from_millis(700);

#[derive(Debug, Default)]
struct Count {
    done: usize,
    denied: usize,
    other: usize,
}

impl Count {
    const fn has_met_both(&self) -> bool {
        self.done > 0 && self.denied > 0
    }

    const fn has_met_one(&self) -> bool {
        self.done > 0
    }
}

fn race(swap: impl Fn() + Sync, act: impl Fn() -> i64, has_met_all: impl Fn(&Count) -> bool) -> Count {
    let over = AtomicBool::new(false);
    let mut count = Count::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                swap();
            }
        });
        let start = Instant::now();
        while goes_on(start, RACING, has_met_all(&count)) {
            match outcome(act()) {
                0 => count.done += 1,
                libc::EACCES => count.denied += 1,
                _ => count.other += 1,
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    count
}

fn assert_raced(swap: impl Fn() + Sync, act: impl Fn() -> i64) {
    let count = race(swap, act, Count::has_met_both);
    assert!(count.has_met_both(), "no race: {count:?}");
}

fn chmod(path: &std::ffi::CStr) -> i64 {
    // SAFETY: a C string and an integer.
    unsafe { libc::chmod(path.as_ptr(), 0o600) }.into()
}

fn duplicate(file: &File, number: i32) {
    // SAFETY: integers; the number is this test's own.
    assert_eq!(unsafe { libc::dup2(file.as_raw_fd(), number) }, number);
}

#[test]
fn a_path_that_changes_in_memory_never_changes_what_is_outside() {
    in_the_floor(|place| {
        // The two paths differ in one byte.
        fs::remove_dir(place.path("out")).unwrap();
        fs::create_dir(place.path("on")).unwrap();
        let (inside, victim) = (make(place, "in/file"), make(place, "on/file"));
        let path: Vec<AtomicU8> =
            c_path(&inside).as_bytes_with_nul().iter().copied().map(AtomicU8::new).collect();
        let racing = &path[path.len() - 8];
        let before = changed(&victim);
        place.with_metadata(|| {
            let swap = || {
                racing.store(b'o', Ordering::Relaxed);
                racing.store(b'i', Ordering::Relaxed);
            };
            // SAFETY: the path ends with a null byte, whatever it is.
            assert_raced(swap, || unsafe { libc::chmod(path.as_ptr().cast(), 0o600) }.into());
        });
        assert_eq!(changed(&victim), before);
    });
}

#[test]
fn a_directory_that_is_exchanged_with_a_link_never_leads_outside() {
    in_the_floor(|place| {
        fs::create_dir(place.path("out/deep")).unwrap();
        let victims = [make(place, "out/file"), make(place, "out/deep/file")];
        let before = victims.each_ref().map(|victim| changed(victim));
        place.with_metadata(|| {
            for name in ["in/d", "in/d/deep"] {
                fs::create_dir(place.path(name)).unwrap();
                fs::write(place.path(name).join("file"), "").unwrap();
            }
            symlink(place.path("out"), place.path("in/l")).unwrap();
            let (directory, link) = (c_path(place.path("in/d")), c_path(place.path("in/l")));
            let (here, exchange) = (libc::AT_FDCWD, libc::RENAME_EXCHANGE);
            // SAFETY: C strings.
            let swap = || unsafe {
                let (directory, link) = (directory.as_ptr(), link.as_ptr());
                assert_eq!(libc::syscall(libc::SYS_renameat2, here, directory, here, link, exchange), 0);
            };
            for name in ["in/d/file", "in/d/deep/file", "in/l/deep/../file"] {
                let path = c_path(place.path(name));
                assert_raced(swap, || chmod(&path));
            }
        });
        assert_eq!(victims.each_ref().map(|victim| changed(victim)), before);
    });
}

#[test]
fn a_descriptor_that_is_replaced_never_changes_what_is_outside() {
    in_the_floor(|place| {
        let victim = make(place, "out/file");
        let before = changed(&victim);
        place.with_metadata(|| {
            fs::write(place.path("in/file"), "").unwrap();
            let open = |name: &str| File::open(place.path(name)).unwrap();
            let replaced = open("in/file");
            let raced = replaced.as_raw_fd();
            let race_between = |inside: File, outside: File, act: &dyn Fn() -> i64| {
                let swap = || {
                    duplicate(&outside, raced);
                    duplicate(&inside, raced);
                };
                assert_raced(swap, act);
            };
            // SAFETY: integers, and C strings.
            unsafe {
                let path = c_path(format!("/proc/self/fd/{raced}"));
                let directory = c_path(format!("/proc/self/fd/{raced}/file"));
                race_between(open("in/file"), open("out/file"), &|| libc::fchmod(raced, 0o600).into());
                race_between(open("in/file"), open("out/file"), &|| chmod(&path));
                race_between(open("in"), open("out"), &|| {
                    libc::fchmodat(raced, c"file".as_ptr(), 0o600, 0).into()
                });
                race_between(open("in"), open("out"), &|| chmod(&directory));
            }
        });
        assert_eq!(changed(&victim), before);
    });
}

#[test]
fn what_moves_within_the_tree_is_changed_all_the_same() {
    in_the_floor(|place| {
        place.with_metadata(|| {
            fs::create_dir_all(place.path("in/a/b")).unwrap();
            let file = File::create(place.path("in/a/b/file")).unwrap();
            let there = ["in/a", "in/c"].map(|name| place.path(name));
            let swap = || {
                fs::rename(&there[0], &there[1]).unwrap();
                fs::rename(&there[1], &there[0]).unwrap();
            };
            // SAFETY: integers.
            let count =
                race(swap, || unsafe { libc::fchmod(file.as_raw_fd(), 0o600) }.into(), Count::has_met_one);
            assert!(count.done > 0 && count.denied == 0 && count.other == 0, "{count:?}");
            let path = c_path(place.path("in/a/b/file"));
            let count = race(swap, || chmod(&path), Count::has_met_one);
            // The file may be away when it is looked up.
            assert!(count.done > 0 && count.denied == 0, "{count:?}");
        });
    });
}
