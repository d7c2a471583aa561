//! Directories that a plan asks to write to: faults, and existing directories that stand in for missing ones.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use protocol::plan::{PlaceToCreate, Plan};

/// Reason why a worker cannot get write access to a directory.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RootFault {
    /// The directory does not exist. The kernel cannot have a rule for it.
    #[error("write: {} does not exist: make it first, or name an existing directory above this path", .0.display())]
    Missing(PathBuf),
    /// The path contains a link, which kernel rules do not follow. The user did not approve the link's target.
    #[error("write: {} leads through a link to {}: name that path instead", .0.display(), .1.display())]
    BehindLink(PathBuf, PathBuf),
    #[error("write: cannot examine {}: {}", .0.display(), .1)]
    Unknown(PathBuf, #[source] io::Error),
}

/// Returns the reason why a worker cannot write to an absolute path, such as a link in it; `None` if it can.
pub(super) fn fault_of(root: &Path) -> Option<RootFault> {
    let path = root.to_owned();
    match root.canonicalize() {
        Ok(found) => (found != root).then_some(RootFault::BehindLink(path, found)),
        Err(error) if error.kind() == ErrorKind::NotFound && root.symlink_metadata().is_err() => {
            Some(RootFault::Missing(path))
        }
        Err(error) => Some(RootFault::Unknown(path, error)),
    }
}

/// Returns the missing directories that a plan asks to write to. The error says why the plan cannot be executed.
pub(crate) fn places_to_create(plan: &Plan, project: &Path) -> Result<Vec<PlaceToCreate>, RootFault> {
    roots(plan, project).filter_map(|root| to_create(&root).transpose()).collect()
}

/// Returns the missing directories of an approved plan. Fails if one was not shown with the approval.
pub(super) fn places_as_approved(
    plan: &Plan,
    project: &Path,
    approved: &[PlaceToCreate],
) -> Result<Vec<PlaceToCreate>, RootFault> {
    let place = |root: PathBuf| {
        let shown = approved.iter().find(|place| place.path.as_path() == root);
        let fault = fault_of(shown.map_or(root.as_path(), |place| place.directory.as_path()));
        fault.map_or(Ok(shown.cloned()), Err).transpose()
    };
    roots(plan, project).filter_map(place).collect()
}

fn roots(plan: &Plan, project: &Path) -> impl Iterator<Item = PathBuf> {
    let roots = plan.rights.iter().flat_map(|rights| &rights.write);
    roots.map(|root| project.join(root).components().collect())
}

fn to_create(root: &Path) -> Result<Option<PlaceToCreate>, RootFault> {
    match fault_of(root) {
        None => Ok(None),
        Some(RootFault::Missing(_)) => {
            let is_there = |above: &&Path| above.symlink_metadata().is_ok();
            let directory = root.ancestors().find(is_there).unwrap_or(Path::new("/"));
            let place =
                PlaceToCreate { path: root.to_owned().into(), directory: directory.to_owned().into() };
            fault_of(directory).map_or(Ok(Some(place)), Err)
        }
        Some(fault) => Err(fault),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use ipc::path::WirePath;
    use protocol::plan::PlanRights;

    use super::*;

    /// Returns the directories to create for `asked`, a path in a plan. The project has a directory, a file and two
    /// links.
    fn given(asked: &str) -> Result<Vec<(String, String)>, String> {
        let place = tempfile::tempdir().unwrap();
        let project = place.path().canonicalize().unwrap();
        fs::create_dir_all(project.join("src/deep")).unwrap();
        fs::write(project.join("a.txt"), "").unwrap();
        symlink("/tmp", project.join("out")).unwrap();
        symlink("gone", project.join("nowhere")).unwrap();
        let rights = PlanRights { write: vec![asked.to_owned()], ..PlanRights::default() };
        let plan = Plan { rights: Some(rights), ..Plan::default() };
        let within = |path: &WirePath| {
            let path = path.as_path().strip_prefix(&project).unwrap();
            path.display().to_string()
        };
        let places = places_to_create(&plan, &project).map_err(|fault| fault.to_string())?;
        Ok(places.iter().map(|place| (within(&place.path), within(&place.directory))).collect())
    }

    #[test]
    fn the_nearest_directory_stands_in_for_what_is_to_be_created() {
        for there in ["src", "./src/", "a.txt", "."] {
            assert_eq!(given(there), Ok(vec![]), "{there}");
        }
        for (asked, directory) in
            [("b.txt", ""), ("src/b.txt", "src"), ("src/deep/b/c.txt", "src/deep"), ("new/", "")]
        {
            let path = asked.trim_end_matches('/').to_owned();
            assert_eq!(given(asked), Ok(vec![(path, directory.to_owned())]), "{asked}");
        }
    }

    #[test]
    fn no_link_and_no_file_stands_in_for_a_directory() {
        for (asked, fault) in [
            ("out", "leads through a link to"),
            ("out/new", "leads through a link to"),
            ("nowhere", "cannot examine"),
            ("nowhere/new", "cannot examine"),
            ("a.txt/new", "cannot examine"),
        ] {
            let told = given(asked).unwrap_err();
            assert!(told.contains(fault), "{asked}: {told}");
        }
    }

    #[test]
    fn an_approval_gives_the_directories_that_it_showed_and_no_others() {
        let place = tempfile::tempdir().unwrap();
        let project = place.path().canonicalize().unwrap();
        fs::create_dir(project.join("src")).unwrap();
        let rights = PlanRights { write: vec!["src/a".into(), "src/b".into()], ..PlanRights::default() };
        let plan = Plan { rights: Some(rights), ..Plan::default() };
        let shown = places_to_create(&plan, &project).unwrap();
        assert_eq!(shown.len(), 2);
        // A continued execution finds the directories that it created before.
        fs::write(project.join("src/a"), "").unwrap();
        assert_eq!(places_as_approved(&plan, &project, &shown).unwrap(), shown);
        let gone = places_as_approved(&plan, &project, &shown[..1]).unwrap_err();
        assert!(matches!(gone, RootFault::Missing(_)), "{gone}");
        fs::remove_dir_all(project.join("src")).unwrap();
        places_as_approved(&plan, &project, &shown).unwrap_err();
    }
}
