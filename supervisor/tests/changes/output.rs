//! Tests that an agent cannot redirect the patch of `--patch` to another file.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::Command;

use nix::sys::stat::Mode;
use supervisor::journal::changes::{ChangeSet, PatchFile, PatchFileError};
use tempfile::TempDir;

use crate::tree::{Tree, change_set, file, project_path};

const PATCH: &str = "\
diff --git a/a b/a
index 587be6b4c3f93f93c489c0111bba5596147a26cb..975fbec8256d3e8a3797e7a3611380f27c49f4ac 100644
--- a/a
+++ b/a
@@ -1 +1 @@
-x
+y
";

fn change() -> ChangeSet {
    change_set(&Tree::from([("a", file("x\n"))]), &Tree::from([("a", file("y\n"))]), &[])
}

fn refusal(path: &Path) -> String {
    PatchFile::open(path).unwrap_err().to_string().replace(path.to_str().unwrap(), "PATH")
}

#[test]
fn what_was_there_stays_until_the_patch_is_written() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("out.diff");
    fs::write(&path, "old ".repeat(1000)).unwrap();
    let patch_file = PatchFile::open(&path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap().len(), 4000);
    patch_file.write(&change()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), PATCH);
}

#[test]
fn a_missing_file_is_made_and_no_change_leaves_it_empty() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("out.diff");
    PatchFile::open(&path).unwrap().write(&ChangeSet::default()).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[test]
fn links_directories_and_devices_are_refused() {
    let directory = TempDir::new().unwrap();
    let [link, target] = ["link", "target"].map(|name| directory.path().join(name));
    symlink(&target, &link).unwrap();
    assert_eq!(
        refusal(&link),
        "cannot write the patch to PATH: this is a symbolic link; name a regular file"
    );
    assert!(!target.exists());
    assert_eq!(
        refusal(directory.path()),
        "cannot write the patch to PATH: this is a directory; name a regular file"
    );

    assert_eq!(
        refusal(Path::new("/dev/full")),
        "cannot write the patch to PATH: this is a device; name a regular file"
    );
    let missing = directory.path().join("missing/out.diff");
    assert_eq!(refusal(&missing), "cannot open PATH for the patch: No such file or directory (os error 2)");
}

#[test]
fn directories_on_the_way_may_be_links() {
    let directory = TempDir::new().unwrap();
    let project = directory.path().canonicalize().unwrap().join("project");
    fs::create_dir_all(project.join("sub")).unwrap();
    let link = directory.path().join("link");
    symlink(project.join("sub"), &link).unwrap();
    let patch_file = PatchFile::open(&link.join("out.diff")).unwrap();
    assert_eq!(patch_file.within(&project), Some(project_path("sub/out.diff")));
    assert_eq!(patch_file.within(&project.join("other")), None);
    patch_file.write(&change()).unwrap();
    assert_eq!(fs::read_to_string(project.join("sub/out.diff")).unwrap(), PATCH);
}

#[test]
fn a_file_that_an_agent_removed_is_made_again() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("out.diff");
    let patch_file = PatchFile::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    patch_file.write(&change()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), PATCH);
}

#[test]
fn a_link_that_an_agent_put_there_is_not_followed() {
    let directory = TempDir::new().unwrap();
    let [path, victim] = ["out.diff", "victim"].map(|name| directory.path().join(name));
    fs::write(&victim, "precious").unwrap();
    let patch_file = PatchFile::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    symlink(&victim, &path).unwrap();
    patch_file.write(&change()).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(fs::read_to_string(&path).unwrap(), PATCH);
    assert!(path.symlink_metadata().unwrap().is_file());
}

#[test]
fn a_directory_that_an_agent_put_there_is_an_error() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("out.diff");
    let patch_file = PatchFile::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let error = patch_file.write(&change()).unwrap_err();
    assert!(matches!(error, PatchFileError::Write { .. }), "{error}");
}

#[test]
fn a_pipe_is_written_and_one_without_a_reader_is_no_place_to_wait_at() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("pipe");
    nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
    assert!(path.metadata().unwrap().file_type().is_fifo());
    assert!(refusal(&path).contains("No such device or address"), "{}", refusal(&path));
    // A pipe that is opened for reading and writing does not wait for another process.
    let mut reader = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    PatchFile::open(&path).unwrap().write(&change()).unwrap();
    let mut read = vec![0; PATCH.len()];
    reader.read_exact(&mut read).unwrap();
    assert_eq!(String::from_utf8(read).unwrap(), PATCH);
}

#[test]
fn a_failed_write_is_an_error() {
    let attempt = || {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("pipe");
        nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
        let reader = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let patch_file = PatchFile::open(&path).unwrap();
        drop(reader);
        patch_file.write(&change())
    };
    // A child of another test that has not executed its program yet may have the pipe open for reading.
    let error = (0..10).find_map(|_| attempt().err()).unwrap().to_string();
    assert!(error.ends_with("Broken pipe (os error 32)"), "{error}");
}

#[test]
fn the_null_device_takes_a_patch() {
    PatchFile::open(Path::new("/dev/null")).unwrap().write(&change()).unwrap();
}

/// Runs this test in a child process whose standard output is `stdout`. Returns true if the child succeeded.
fn run_child(stdout: fs::File) -> bool {
    let exe = std::env::current_exe().unwrap();
    let mut child = Command::new(exe);
    child.args(["--exact", "output::standard_output_keeps_its_place", "--nocapture"]);
    child.env("PATCH_TO_STDOUT", "1").stdout(stdout).status().unwrap().success()
}

#[test]
fn standard_output_keeps_its_place() {
    if std::env::var_os("PATCH_TO_STDOUT").is_some() {
        return PatchFile::open(Path::new("/dev/stdout")).unwrap().write(&change()).unwrap();
    }
    let log = tempfile::NamedTempFile::new().unwrap();
    assert!(run_child(log.reopen().unwrap()));
    let text = fs::read_to_string(log.path()).unwrap();
    let (before, after) = text.split_once(PATCH).unwrap();
    assert!(before.contains("running 1 test") && after.contains("test result: ok"), "{text}");
}
