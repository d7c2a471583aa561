//! Copies of files that a container left in a directory. Symbolic links and paths out of the directory are not
//! followed.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};

/// Copies the file `name` below `directory` to `to`. Fails if the file has more than `most` bytes.
pub(super) fn copy(directory: &Path, name: &Path, to: &Path, most: u64) -> io::Result<()> {
    let from = open(directory, name)?;
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(to.parent().unwrap_or(to))?;
    let copied = io::copy(&mut from.take(most + 1), file.as_file_mut())?;
    if copied > most {
        return Err(io::Error::other(format!("the file has more than {most} bytes")));
    }
    file.persist(to)?;
    Ok(())
}

fn open(directory: &Path, name: &Path) -> io::Result<File> {
    let directory = File::open(directory)?;
    let how = OpenHow::new()
        .flags(OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
    let file = File::from(openat2(&directory, name, how)?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("the path is not a regular file"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_but_plain_files_below_the_directory_is_copied() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("out");
        fs::create_dir_all(out.join("home")).unwrap();
        fs::write(place.path().join("secret"), "secret").unwrap();
        fs::write(out.join("home/log"), "12345").unwrap();
        symlink("../secret", out.join("link")).unwrap();
        symlink("home", out.join("directory")).unwrap();
        nix::unistd::mkfifo(&out.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let to = place.path().join("to");
        let copied = |name: &str, most| copy(&out, Path::new(name), &to, most);
        for name in ["link", "../secret", "/etc/passwd", "directory/log", "fifo", "home", "missing"] {
            assert!(copied(name, 100).is_err(), "{name}");
        }
        assert!(copied("home/log", 4).is_err());
        assert!(!to.exists());
        copied("home/log", 5).unwrap();
        assert_eq!(fs::read_to_string(to).unwrap(), "12345");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 3, "nothing else is left");
    }
}
