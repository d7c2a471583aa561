use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::Path;

use nix::libc::{self, AT_EACCESS, AT_EMPTY_PATH, AT_FDCWD, F_OK, R_OK, W_OK, X_OK, c_int, c_long};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::prctl::set_dumpable;

use crate::changes::{c_path, outcome};
use crate::harness::in_the_floor;
use crate::metadata::make;

const SYS_FACCESSAT2: c_long = 439;

fn answers(path: &Path, mode: c_int) -> Vec<i32> {
    let name = c_path(path);
    // SAFETY: the path is a C string, and the rest are integers.
    let asked = unsafe {
        [
            c_long::from(libc::access(name.as_ptr(), mode)),
            libc::syscall(libc::SYS_faccessat, AT_FDCWD, name.as_ptr(), mode),
            libc::syscall(SYS_FACCESSAT2, AT_FDCWD, name.as_ptr(), mode, AT_EACCESS),
        ]
        .map(outcome)
    };
    asked.into()
}

fn of_descriptor(file: &OwnedFd, mode: c_int) -> i32 {
    // SAFETY: as above.
    outcome(unsafe {
        libc::syscall(SYS_FACCESSAT2, file.as_raw_fd(), c"".as_ptr(), mode, AT_EMPTY_PATH | AT_EACCESS)
    })
}

fn assert_says(path: &Path, mode: c_int, expected: i32) {
    for answer in answers(path, mode) {
        assert_eq!(answer, expected, "{} {mode}", path.display());
    }
}

#[test]
fn what_lies_outside_cannot_be_written_and_everything_else_is_as_before() {
    in_the_floor(|place| {
        let (inside, outside) = (make(place, "in/file"), make(place, "out/file"));
        let [to_outside, to_inside] = ["in/leads-out", "out/leads-in"].map(|name| place.path(name));
        symlink(&outside, &to_outside).unwrap();
        symlink(&inside, &to_inside).unwrap();
        place.with_metadata(|| {
            let directories = [&inside, &outside].map(|file| file.parent().unwrap());
            for writable in
                [&inside, &to_inside, directories[0], Path::new("/dev/null"), Path::new("/dev/zero")]
            {
                for mode in [W_OK, W_OK | R_OK, R_OK, F_OK] {
                    assert_says(writable, mode, 0);
                }
            }
            for refused in [&outside, &to_outside, directories[1], Path::new("/"), Path::new("/usr")] {
                assert_says(refused, W_OK, libc::EACCES);
                assert_says(refused, W_OK | R_OK, libc::EACCES);
                assert_says(refused, R_OK, 0);
                assert_says(refused, F_OK, 0);
            }
            assert_says(directories[1], X_OK, 0);
            assert_says(&inside.with_extension("missing"), W_OK, libc::ENOENT);
            assert_says(&outside.join("below"), W_OK, libc::ENOTDIR);
            // Relative to the caller's directory.
            std::env::set_current_dir(directories[0]).unwrap();
            assert_says(Path::new("file"), W_OK, 0);
            assert_says(Path::new("../out/file"), W_OK, libc::EACCES);
            let [own, others] = [&inside, &outside].map(|file| OwnedFd::from(File::open(file).unwrap()));
            assert_eq!([of_descriptor(&own, W_OK), of_descriptor(&others, W_OK)], [0, libc::EACCES]);
            let memory = memfd_create(c"", MFdFlags::MFD_CLOEXEC).unwrap();
            assert_eq!(of_descriptor(&memory, W_OK), 0, "memory of its own");
            fs::remove_file(&inside).unwrap();
            assert_eq!(of_descriptor(&own, W_OK), 0, "its own, which has no name any more");
        });
    });
}

#[test]
fn a_caller_that_cannot_be_seen_gets_the_answer_of_the_kernel() {
    in_the_floor(|place| {
        let (inside, outside) = (make(place, "in/file"), make(place, "out/file"));
        place.with_metadata(|| {
            set_dumpable(false).unwrap();
            assert_says(&inside, W_OK, 0);
            assert_says(&outside, W_OK, 0);
            set_dumpable(true).unwrap();
            assert_says(&outside, W_OK, libc::EACCES);
        });
    });
}

#[test]
fn a_set_group_id_bit_is_for_directories_of_the_tree() {
    in_the_floor(|place| {
        let (inside, outside) = (make(place, "in/file"), make(place, "out/file"));
        let own = place.path("in/own");
        place.with_metadata(|| {
            fs::create_dir(&own).unwrap();
            // SAFETY: the path is a C string.
            let chmod =
                |path: &Path, mode| outcome(unsafe { libc::chmod(c_path(path).as_ptr(), mode) }.into());
            assert_eq!(
                [chmod(&own, 0o2775), chmod(&own, 0o4775), chmod(&own, 0o6775)],
                [0, libc::EPERM, libc::EPERM]
            );
            assert_eq!([chmod(&inside, 0o2755), chmod(&inside, 0o4755)], [libc::EPERM; 2]);
            assert_eq!(chmod(outside.parent().unwrap(), 0o2775), libc::EACCES);
        });
    });
}
