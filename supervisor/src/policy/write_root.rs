//! What a user names to be writable, resolved once.

use std::io;
use std::path::Path;

use ipc::path::WirePath;

/// The write root that a user named, relative to the project or absolute; the error is a phrase that says what is wrong.
///
/// It has to exist: a rule is on an inode, and we leave no placeholders behind.
pub fn write_root(project: &Path, path: &Path) -> Result<WirePath, String> {
    match std::fs::canonicalize(project.join(path)) {
        Ok(found) if found == Path::new("/") => {
            Err("the whole file system cannot be made writable".to_owned())
        }
        // A link in the project may be an agent's: it must not choose what the user grants.
        Ok(found) if path.is_relative() && !found.starts_with(project) => Err(format!(
            "leads out of the project, to {0}; if that is what you mean: --write {0}",
            found.display()
        )),
        Ok(found) => Ok(found.into()),
        Err(source) if source.kind() == io::ErrorKind::NotFound => {
            let parent =
                path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let parent = parent.display();
            Err(format!("does not exist; make it first, or grant its directory: --write {parent}"))
        }
        Err(source) => Err(source.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_write_root_names_the_directory_to_grant() {
        let error = write_root(Path::new("/tmp"), Path::new("/nonexistent/x")).unwrap_err();
        assert_eq!(error, "does not exist; make it first, or grant its directory: --write /nonexistent");
        assert!(write_root(Path::new("/tmp"), Path::new("/")).is_err());
    }

    #[test]
    fn a_link_in_the_project_does_not_choose_what_is_granted() {
        let place = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(place.path()).unwrap();
        std::os::unix::fs::symlink("/usr", root.join("link")).unwrap();
        let error = write_root(&root, Path::new("link")).unwrap_err();
        assert!(error.starts_with("leads out of the project, to /usr"), "{error}");
        assert_eq!(write_root(&root, &root.join("link")).unwrap(), WirePath::from("/usr"));
    }
}
