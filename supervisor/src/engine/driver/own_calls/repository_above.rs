//! Files with instructions above the project, up to the repository's root. Files of other users do not count.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ipc::path::WirePath;

use super::instructions::INSTRUCTIONS;

/// Returns the existing files with instructions above the project, from the repository's root down.
pub(super) fn instructions_above(project: &Path) -> Vec<WirePath> {
    let own = nix::unistd::geteuid().as_raw();
    let Some(root) = project.ancestors().find(|directory| directory.join(".git").symlink_metadata().is_ok())
    else {
        return Vec::new();
    };
    let above = project.ancestors().skip(1).take_while(|directory| directory.starts_with(root));
    let is_own = |path: &Path| path.metadata().is_ok_and(|about| about.uid() == own);
    let mut files: Vec<_> = above
        .filter(|directory| is_own(directory))
        .map(|directory| directory.join(INSTRUCTIONS))
        // The worker reports a file that it cannot read.
        .filter(|file| {
            file.symlink_metadata().is_ok_and(|about| about.uid() == own) && (is_own(file) || !file.exists())
        })
        // A repository must not pass off other files of the user as instructions, by a link to them.
        .filter(|file| file.canonicalize().map_or(true, |end| end.starts_with(root)))
        .map(|file| WirePath::from(file.as_path()))
        .collect();
    files.reverse();
    files
}

/// Returns a line for the user if the project's instructions are a dangling link. Workers report it as a missing file.
pub(super) fn dead_link(project: &Path) -> Option<String> {
    let file = project.join(INSTRUCTIONS);
    let is_link = file.symlink_metadata().is_ok_and(|about| about.is_symlink());
    let is_dead = file.metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    (is_link && is_dead)
        .then(|| format!("{INSTRUCTIONS} was not read: the file is a link to something that does not exist"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_files_from_the_root_down_count_and_none_above_it() {
        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().join("repository");
        let project = root.join("packages/web");
        fs::create_dir_all(&project).unwrap();
        for directory in [outside.path(), &root, &root.join("packages"), &project] {
            fs::write(directory.join("AGENTS.md"), "rule").unwrap();
        }
        assert_eq!(instructions_above(&project), []);
        fs::create_dir(root.join(".git")).unwrap();
        let expected = [root.join("AGENTS.md"), root.join("packages/AGENTS.md")];
        let expected: Vec<_> = expected.iter().map(|path| WirePath::from(path.as_path())).collect();
        assert_eq!(instructions_above(&project), expected);
        assert_eq!(instructions_above(&root), []);
        fs::remove_file(root.join("packages/AGENTS.md")).unwrap();
        assert_eq!(instructions_above(&project), expected[..1]);
        // A file of another user does not count.
        fs::remove_file(root.join("AGENTS.md")).unwrap();
        // Nor does the user's own link that leads out of the repository.
        for end in [Path::new("/etc/hostname"), &outside.path().join("AGENTS.md")] {
            symlink(end, root.join("AGENTS.md")).unwrap();
            assert_eq!(instructions_above(&project), []);
            fs::remove_file(root.join("AGENTS.md")).unwrap();
        }
    }

    #[test]
    fn a_link_to_nothing_is_told() {
        let project = tempfile::tempdir().unwrap();
        assert_eq!(dead_link(project.path()), None);
        symlink("gone.md", project.path().join("AGENTS.md")).unwrap();
        assert!(dead_link(project.path()).unwrap().contains("does not exist"));
        fs::write(project.path().join("gone.md"), "rule").unwrap();
        assert_eq!(dead_link(project.path()), None);
    }
}
