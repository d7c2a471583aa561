//! The output file of an HTML page.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub(in crate::inspect::audit) enum PageError {
    #[error("cannot create {}: a file of this name exists\n  hint: remove it, or name another file", .0.display())]
    Exists(PathBuf),
    #[error("cannot write {}: {}", .0.display(), .1)]
    Write(PathBuf, io::Error),
}

/// Writes a page to a new file that only its owner can read. Fails if anything exists at the path, even a symbolic link
/// (`O_EXCL`, open(2)).
pub(in crate::inspect::audit) fn write(path: &Path, page: &str) -> Result<(), PageError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => PageError::Exists(path.to_owned()),
        _ => PageError::Write(path.to_owned(), error),
    };
    let mut file: File =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    file.write_all(page.as_bytes()).and_then(|()| file.flush()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_page_is_a_new_private_file_and_no_link_is_followed() {
        let directory = tempfile::tempdir().unwrap();
        let page = directory.path().join("a.html");
        write(&page, "<p>").unwrap();
        assert_eq!(fs::read_to_string(&page).unwrap(), "<p>");
        assert_eq!(fs::metadata(&page).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(write(&page, "other"), Err(PageError::Exists(_))));
        let (link, target) = (directory.path().join("link.html"), directory.path().join("target"));
        symlink(&target, &link).unwrap();
        assert!(matches!(write(&link, "other"), Err(PageError::Exists(_))));
        assert!(!target.exists(), "the link was not followed");
    }
}
