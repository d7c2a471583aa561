use std::io;
use std::path::{Path, PathBuf};

use ipc::path::WirePath;

use protocol::shell_word::shell_word;

/// Phrase that says why a path cannot be made writable, and a hint for the command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{phrase}")]
pub struct NoWriteRoot {
    phrase: String,
    hint: Option<String>,
}

impl NoWriteRoot {
    pub fn hinted(self) -> String {
        match self.hint {
            Some(hint) => format!("{}\n  hint: {hint}", self.phrase),
            None => self.phrase,
        }
    }

    fn because(phrase: impl Into<String>) -> Self {
        Self { phrase: phrase.into(), hint: None }
    }
}

/// Returns the canonical path that the user makes writable by a flag. Relative paths start at the project. The path
/// must exist, since Landlock rules apply to inodes.
pub fn write_root(project: &Path, path: &Path) -> Result<WirePath, NoWriteRoot> {
    match std::fs::canonicalize(project.join(path)) {
        Ok(found) if found == Path::new("/") => {
            Err(NoWriteRoot::because("the whole file system cannot be made writable"))
        }
        // A link in the project may be an agent's, and must not choose what the user grants.
        Ok(found) if path.is_relative() && !found.starts_with(project) => Err(NoWriteRoot {
            phrase: format!("leads out of the project, to {}", found.display()),
            hint: (!is_wide(project, &found))
                .then(|| format!("--write {} allows writes there", shell_word(&found))),
        }),
        Ok(found) => Ok(found.into()),
        Err(source) if source.kind() == io::ErrorKind::NotFound => {
            let nearest = project.join(path).ancestors().skip(1).find_map(|above| above.canonicalize().ok());
            let hint = Some(create_or_grant(project, nearest));
            Err(NoWriteRoot { hint, ..NoWriteRoot::because("does not exist") })
        }
        Err(source) => Err(NoWriteRoot::because(source.to_string())),
    }
}

fn create_or_grant(project: &Path, nearest: Option<PathBuf>) -> String {
    match nearest.filter(|found| found != Path::new("/")) {
        Some(found) if !found.starts_with(project) && !is_wide(project, &found) => {
            format!("create the path first, or use --write {}, which exists", shell_word(&found))
        }
        Some(_) | None => "create the path first".to_owned(),
    }
}

/// Returns the path that a settings file makes writable. Rejects paths with links, which an agent may have created
/// after the file was written. The error is a phrase about the path.
pub fn configured_write_root(project: &Path, path: &Path) -> Result<WirePath, String> {
    let named: PathBuf = project.join(path).components().collect();
    match std::fs::canonicalize(&named) {
        Ok(found) if found == Path::new("/") => {
            Err("the whole file system cannot be made writable".to_owned())
        }
        Ok(found) if found == named => Ok(found.into()),
        Ok(found) => Err(format!("leads to {0}; if that is what you mean, name {0}", found.display())),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Err("does not exist".to_owned()),
        Err(source) => Err(source.to_string()),
    }
}

/// Returns the path that must be writable so that the file `path` can be changed or created: the file, or the nearest
/// existing directory. `None` if the path contains a link, because the user was not shown its target. The result may be
/// `/`, which no approval can make writable. The path comes from a worker, so it is examined but never opened.
pub fn place_to_grant(path: &Path, exists: bool) -> Option<WirePath> {
    let place = if exists {
        path
    } else {
        path.ancestors().skip(1).find(|above| above.symlink_metadata().is_ok())?
    };
    let found = std::fs::canonicalize(place).ok()?;
    (found == place).then(|| found.into())
}

/// Returns the path to suggest for approval after a command was denied access to `path`; `None` if that would be the
/// user's home or a directory above it.
pub fn place_to_offer(path: &Path) -> Option<WirePath> {
    let exists = path.symlink_metadata().is_ok();
    let is_root = |place: &WirePath| place.as_path() == Path::new("/");
    place_to_grant(path, exists).filter(|place| !is_root(place) && !holds_home(place.as_path()))
}

pub fn users_home() -> Option<PathBuf> {
    let home = std::env::home_dir()?;
    Some(home.canonicalize().unwrap_or(home))
}

/// Returns a warning if a writable directory is the user's home or contains it; else `None`.
pub fn warning_of_home(root: &WirePath) -> Option<String> {
    holds_home(root.as_path()).then(|| {
        format!(
            "{root} is your home or contains it: agents can write shells' start files and ~/.ssh/authorized_keys, too"
        )
    })
}

fn holds_home(place: &Path) -> bool {
    users_home().is_some_and(|home| home.starts_with(place))
}

/// True for a path that no hint suggests: the user's home, and directories above the home or the project.
fn is_wide(project: &Path, place: &Path) -> bool {
    holds_home(place) || (project != place && project.starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_about_a_missing_write_root_names_a_directory_that_can_be_granted() {
        let place = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(place.path()).unwrap();
        let beside = root.join("it's here");
        for directory in [&beside, &root.join("p")] {
            std::fs::create_dir(directory).unwrap();
        }
        let error = |path: &Path| write_root(&root.join("p"), path).unwrap_err().hinted();
        let absent = error(&beside.join("x/y"));
        let (_, hint) = absent.split_once("hint: create the path first, or use --write ").unwrap();
        assert_eq!(hint.strip_suffix(", which exists"), Some(&*shell_word(&beside)));
        assert!(error(Path::new("x")).ends_with("hint: create the path first"), "modes open the project");
        assert!(
            error(Path::new("/nonexistent/x")).ends_with("hint: create the path first"),
            "no flag opens /"
        );
        assert!(
            error(&root.join("new")).ends_with("hint: create the path first"),
            "it would open what holds the project"
        );
        assert!(write_root(Path::new("/tmp"), Path::new("/")).is_err());
    }

    #[test]
    fn no_hint_opens_the_home_and_who_opens_it_is_warned() {
        let home = users_home().unwrap();
        let error = write_root(Path::new("/nonexistent"), &home.join("new/x")).unwrap_err().hinted();
        assert_eq!(error, "does not exist\n  hint: create the path first");
        assert!(warning_of_home(&home.clone().into()).unwrap().contains("authorized_keys"));
        assert!(warning_of_home(&"/".into()).is_some());
        assert_eq!(warning_of_home(&home.join("below").into()), None);
    }

    #[test]
    fn what_a_file_names_is_granted_where_it_stands() {
        let place = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(place.path()).unwrap();
        std::fs::create_dir_all(root.join("p/data")).unwrap();
        std::os::unix::fs::symlink("/usr", root.join("p/link")).unwrap();
        let project = root.join("p");
        let grant = |path: &str| configured_write_root(&project, Path::new(path));
        assert_eq!(grant("data/."), Ok(WirePath::from(&root.join("p/data"))));
        assert_eq!(grant(root.to_str().unwrap()), Ok(WirePath::from(&root)));
        assert_eq!(grant("link").unwrap_err(), "leads to /usr; if that is what you mean, name /usr");
        assert!(grant(project.join("link/bin").to_str().unwrap()).is_err(), "absolute, and through the link");
        assert!(grant("..").unwrap_err().starts_with("leads to "), "a path says where it leads");
        assert_eq!(grant("missing").unwrap_err(), "does not exist");
        assert_eq!(grant("/").unwrap_err(), "the whole file system cannot be made writable");
    }

    #[test]
    fn a_link_in_the_project_does_not_choose_what_is_granted() {
        let place = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(place.path()).unwrap();
        std::os::unix::fs::symlink("/usr", root.join("link")).unwrap();
        let error = write_root(&root, Path::new("link")).unwrap_err();
        assert_eq!(
            error.hinted(),
            "leads out of the project, to /usr\n  hint: --write /usr allows writes there"
        );
        assert_eq!(write_root(&root, &root.join("link")).unwrap(), WirePath::from("/usr"));
    }
}
