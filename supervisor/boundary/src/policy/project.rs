//! Opens the project directory, and rejects directories that cannot be confined.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ipc::confinement::Identity;
use protocol::shell_word::shell_word;

use super::hidden::Host;
use super::owner::closed_to;

#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    #[error("cannot use {path} as the project: {source}\n  hint: name a directory with -C DIR")]
    Unreachable { path: PathBuf, source: io::Error },
    #[error("{0} is not a directory\n  hint: name a directory with -C DIR")]
    NotADirectory(PathBuf),
    /// The directory contains too much to be a project, as a home directory or `/` does.
    #[error(
        "{path} cannot be the project: it {why}\n  hint: cd into a project, or name a project with -C DIR"
    )]
    TooWide { path: PathBuf, why: String },
    /// The project contains, or is in, a directory that is hidden from agents.
    #[error(
        "{path} cannot be the project: it {why}, which is hidden from agents{cause}\n  hint: {hint}",
        cause = .variable.map_or_else(String::new, |name| format!(": {name} puts the hidden directory there")),
        hint = .variable.map_or_else(
            || "cd into a project, or name a project with -C DIR".to_owned(),
            |name| format!("set {name} to a directory outside of the project"),
        )
    )]
    Hidden {
        path: PathBuf,
        why: String,
        place: PathBuf,
        /// Environment variable of Bailiwick because of which the directory is hidden; `None` if it has another cause.
        variable: Option<&'static str>,
    },
    /// Workers run as the owner of the project, but the owner cannot enter `closed`, a directory on its path.
    #[error(
        "{path} belongs to uid {owner}, who cannot enter {closed}, and workers of root have no capability to enter it\n  hint: chmod a+x {}, or: chown -R root {}",
        shell_word(.closed), shell_word(.path)
    )]
    ForeignOwner { path: PathBuf, owner: u32, group: u32, closed: PathBuf },
}

/// Returns the canonical path of the project. Fails for directories that cannot be confined.
pub fn open_project(path: &Path, host: &Host, hidden: &[PathBuf]) -> Result<PathBuf, ProjectError> {
    let unreachable = |source| ProjectError::Unreachable { path: path.to_owned(), source };
    let project = fs::canonicalize(path).map_err(unreachable)?;
    let meta = fs::metadata(&project).map_err(unreachable)?;
    if !meta.is_dir() {
        return Err(ProjectError::NotADirectory(project));
    }
    if let Some(why) = too_wide(&project, host) {
        return Err(ProjectError::TooWide { path: project, why });
    }
    if let Some((why, place)) = meets_hidden(&project, hidden) {
        return Err(ProjectError::Hidden { path: project, why, place: place.to_owned(), variable: None });
    }
    Ok(project)
}

/// Fails if `identity`, the owner of the project, cannot enter it. Workers run as that owner.
pub fn check_reachable(project: &Path, identity: Identity) -> Result<(), ProjectError> {
    match closed_to(identity, project) {
        Some(closed) => {
            let (path, Identity { uid: owner, gid: group }) = (project.to_owned(), identity);
            Err(ProjectError::ForeignOwner { path, owner, group, closed })
        }
        None => Ok(()),
    }
}

fn too_wide(project: &Path, host: &Host) -> Option<String> {
    if project == Path::new("/") {
        return Some("is the whole file system".to_owned());
    }
    for home in host.homes.iter().chain(&host.other_homes) {
        if project == home {
            return Some("is a home directory".to_owned());
        }
        if home.starts_with(project) {
            return Some(format!("contains the home directory {}", home.display()));
        }
    }
    None
}

/// Returns the first hidden path that contains the project or is in it, with a phrase that says which; else `None`.
fn meets_hidden<'a>(project: &Path, hidden: &'a [PathBuf]) -> Option<(String, &'a Path)> {
    hidden.iter().find_map(|place| {
        let relation = if project.starts_with(place) {
            "lies in"
        } else if place.starts_with(project) && place.exists() {
            "contains"
        } else {
            return None;
        };
        Some((format!("{relation} {}", place.display()), place.as_path()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_confined_is_refused() {
        let host = Host {
            homes: vec!["/h/me".into()],
            other_homes: vec!["/h/you".into()],
            runtime: None,
            is_root: true,
        };
        let hidden = [PathBuf::from("/h/me/.ssh"), PathBuf::from("/etc")];
        let why = |project: &str| {
            let project = Path::new(project);
            too_wide(project, &host).or_else(|| meets_hidden(project, &hidden).map(|(why, _)| why))
        };
        assert_eq!(why("/").as_deref(), Some("is the whole file system"));
        assert_eq!(why("/h/me").as_deref(), Some("is a home directory"));
        assert_eq!(why("/h").as_deref(), Some("contains the home directory /h/me"));
        assert_eq!(why("/h/you").as_deref(), Some("is a home directory"));
        assert_eq!(why("/h/me/.ssh/x").as_deref(), Some("lies in /h/me/.ssh"));
        assert_eq!(why("/h/me/p"), None);
        assert_eq!(why("/h/me/.sshd"), None, "a sibling of the same prefix is not inside");
    }

    #[test]
    fn a_missing_directory_and_a_file_are_named() {
        let host = Host { homes: vec![], other_homes: vec![], runtime: None, is_root: false };
        let error = open_project(Path::new("/nonexistent/p"), &host, &[]).unwrap_err().to_string();
        assert!(error.contains("cannot use /nonexistent/p as the project"), "{error}");
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = open_project(file.path(), &host, &[]).unwrap_err().to_string();
        assert!(error.contains("is not a directory\n  hint: "), "{error}");
    }
}
