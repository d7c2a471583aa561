//! The roles in a project's `.bailiwick/agents/*.md`: untrusted files, opened below the project without following
//! symbolic links. Each file is ignored until the person has trusted exactly its content.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use boundary::tripwire::beneath;
use gate::activity::Activity;
use gate::roles::{MOST_ROLES, Role, parse_markdown};
use gate::tools::{Kit, Registry};
use nix::errno::Errno;

use super::trust::FileDigest;

/// Directories that lead to a project's roles. The second is inside the first.
const DIRECTORIES: [&str; 2] = [".bailiwick", "agents"];

/// Maximum size in bytes of a role's file.
const MOST: usize = 32 << 10;

/// Maximum number of file names that are read in the directory.
const MOST_NAMES: usize = 1000;

#[derive(Clone, Debug)]
pub(super) struct RoleFile {
    pub(super) path: PathBuf,
    /// The role with the digest of its file; the error says why it cannot be used.
    pub(super) role: Result<(Role, FileDigest), String>,
}

pub(super) fn place() -> PathBuf {
    DIRECTORIES.iter().collect()
}

/// Reads the roles of a project. `project` is its canonical path. Reports and ignores unreadable files.
pub(super) fn read(project: &Path) -> Vec<RoleFile> {
    let Ok(mut directory) = beneath::open_root(project) else { return Vec::new() };
    for name in DIRECTORIES {
        match beneath::open_directory(&directory, OsStr::new(name)) {
            Ok(inner) => directory = inner,
            Err(_) => return Vec::new(),
        }
    }
    let mut names: Vec<_> = beneath::list(&directory, MOST_NAMES).unwrap_or_default();
    names.retain(|(name, _)| Path::new(name).extension() == Some(OsStr::new("md")));
    names.sort();
    let in_project = place();
    let file = |name: &OsStr| RoleFile { path: in_project.join(name), role: role(&directory, name) };
    names.iter().take(MOST_ROLES).map(|(name, _)| file(name)).collect()
}

fn role(directory: impl std::os::fd::AsFd, name: &OsStr) -> Result<(Role, FileDigest), String> {
    let bytes = beneath::read(directory, name, MOST).map_err(|error| match error {
        Errno::ELOOP => "the file is a link".to_owned(),
        other => other.desc().to_owned(),
    })?;
    let bytes = bytes.ok_or_else(|| format!("this is not a regular file of at most {MOST} bytes"))?;
    let text = str::from_utf8(&bytes).map_err(|_| "the file is not UTF-8".to_owned())?;
    let stem = Path::new(name).file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let role = parse_markdown(stem, text)?;
    match unknown_tool(&role) {
        Some(why) => Err(why),
        None => Ok((role, FileDigest::of(&bytes))),
    }
}

/// Returns the error if a role names a tool that does not exist; `None` otherwise.
pub(super) fn unknown_tool(role: &Role) -> Option<String> {
    let all = Registry::for_kit(
        Activity::Execute,
        Kit { writes: true, fetches: true, delegates: true, plan: None },
    );
    let name = all.lacks(role.tools.as_deref()?)?;
    let known: Vec<_> = all.definitions().iter().map(|tool| tool.name.to_string()).collect();
    Some(format!("no tool is called {name:?}: expected names from this list: {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const ROLE: &str = "---\ndescription: d\n---\nDo it.\n";

    #[test]
    fn files_are_read_in_order_and_no_link_is_followed() {
        let place = tempfile::tempdir().unwrap();
        assert!(read(place.path()).is_empty());
        let agents = place.path().join(".bailiwick/agents");
        fs::create_dir_all(&agents).unwrap();
        fs::write(agents.join("b.md"), ROLE).unwrap();
        fs::write(agents.join("a.md"), "no role").unwrap();
        fs::write(agents.join("notes.txt"), "not looked at").unwrap();
        symlink("/etc/passwd", agents.join("c.md")).unwrap();
        nix::unistd::mkfifo(&agents.join("d.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::write(agents.join("e.md"), vec![b'x'; MOST + 1]).unwrap();
        let told = read(place.path());
        let told: Vec<_> = told
            .iter()
            .map(|file| {
                let role = file.role.as_ref().map_or_else(Clone::clone, |(role, _)| role.name.clone());
                format!("{}: {role}", file.path.display())
            })
            .collect();
        insta::assert_snapshot!(told.join("\n"), @r"
        .bailiwick/agents/a.md: line 1: expected ---, then fields such as `description: …`, then ---
        .bailiwick/agents/b.md: b
        .bailiwick/agents/c.md: the file is a link
        .bailiwick/agents/d.md: this is not a regular file of at most 32768 bytes
        .bailiwick/agents/e.md: this is not a regular file of at most 32768 bytes
        ");
    }

    #[test]
    fn a_directory_that_is_a_link_has_no_roles() {
        let place = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::create_dir(elsewhere.path().join("agents")).unwrap();
        fs::write(elsewhere.path().join("agents/a.md"), ROLE).unwrap();
        symlink(elsewhere.path(), place.path().join(".bailiwick")).unwrap();
        assert!(read(place.path()).is_empty());
    }
}
