//! The person's own `config.toml` and `AGENTS.md`. They decide what agents may do, so nobody else may write them.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::effective::at_home;
use super::error::SettingsError;
use super::layer::Layer;
use super::parse::parse_users;
use crate::process::directories::Directories;

pub const USER_NAME: &str = "config.toml";

/// Name of the file with the person's instructions, in the configuration directory.
const INSTRUCTIONS: &str = "AGENTS.md";

/// Maximum size in bytes of the settings file.
const MOST: usize = 1 << 20;

const MOST_INSTRUCTIONS: usize = 64 << 10;

#[derive(Debug)]
pub struct UserFile {
    pub path: PathBuf,
    /// Settings, including those that the person has only for this project.
    pub layer: Layer,
    /// The person's own instructions; `None` without a file.
    pub instructions: Option<String>,
}

impl UserFile {
    /// Reads `config.toml`, with the settings for `project` if given, and `AGENTS.md`. A missing file counts as empty.
    pub fn read(directories: &Directories, project: Option<&Path>) -> Result<Self, SettingsError> {
        let path = directories.config.join(USER_NAME);
        let (mut layer, for_projects) = match own_text(&path, directories, MOST)? {
            Some(text) => parse_users(&text, &path)?,
            None => (Layer::default(), Vec::new()),
        };
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let is_meant = |named: &Path| {
            let named = at_home(named.as_os_str(), home.as_deref());
            project.is_some_and(|project| std::fs::canonicalize(named).is_ok_and(|named| named == project))
        };
        for of_project in for_projects {
            if is_meant(&of_project.project) {
                layer = layer.under(of_project.layer);
            }
        }
        let instructions = own_text(&directories.config.join(INSTRUCTIONS), directories, MOST_INSTRUCTIONS)?;
        Ok(Self { path, layer, instructions: instructions.filter(|text| !text.trim().is_empty()) })
    }
}

/// Returns the text of one of the person's files; `None` if it is missing.
pub(super) fn own_text(
    path: &Path,
    directories: &Directories,
    most: usize,
) -> Result<Option<String>, SettingsError> {
    let unreadable = |source| SettingsError::Unreadable { file: path.to_owned(), source };
    // The file may be a symbolic link, because people keep such files in repositories. The target is checked.
    let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let file = match opened {
        // A dangling symbolic link is an error, because its target may have had restrictions.
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.symlink_metadata().is_err() => {
            return Ok(None);
        }
        opened => opened.map_err(unreadable)?,
    };
    let meta = file.metadata().map_err(unreadable)?;
    if !meta.is_file() {
        return Err(SettingsError::NotAFile { file: path.to_owned(), what: "something else" });
    }
    check(path, &meta)?;
    check(&directories.config, &std::fs::metadata(&directories.config).map_err(unreadable)?)?;
    let mut text = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut text).map_err(unreadable)?;
    super::parse::text(text, path, most).map(Some)
}

/// Fails if anyone but the person and root can change or replace the file.
fn check(path: &Path, meta: &Metadata) -> Result<(), SettingsError> {
    let path = path.to_owned();
    let owner = meta.uid();
    if owner != 0 && owner != nix::unistd::geteuid().as_raw() {
        return Err(SettingsError::Foreign { path, owner });
    }
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(SettingsError::OpenToOthers { path, mode });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use super::*;

    fn directories(text: &str, mode: u32) -> (tempfile::TempDir, Directories) {
        let place = tempfile::tempdir().unwrap();
        let config = place.path().to_owned();
        fs::write(config.join(USER_NAME), text).unwrap();
        fs::set_permissions(config.join(USER_NAME), Permissions::from_mode(mode)).unwrap();
        let directories = Directories { state: config.clone(), cache: config.clone(), config };
        (place, directories)
    }

    fn error(directories: &Directories) -> String {
        UserFile::read(directories, None).unwrap_err().to_string()
    }

    #[test]
    fn a_missing_file_says_nothing() {
        let (place, directories) = directories("", 0o600);
        fs::remove_file(place.path().join(USER_NAME)).unwrap();
        assert!(UserFile::read(&directories, None).unwrap().layer.is_empty());
    }

    #[test]
    fn a_file_that_others_may_change_is_refused_with_the_remedy() {
        for mode in [0o620, 0o602, 0o666] {
            let (_place, directories) = directories("", mode);
            let error = error(&directories);
            assert!(
                error.contains("other users can change this file") && error.contains("chmod go-w"),
                "{error}"
            );
        }
        let (place, directories) = directories("", 0o644);
        assert!(UserFile::read(&directories, None).is_ok());
        fs::set_permissions(place.path(), Permissions::from_mode(0o777)).unwrap();
        assert!(error(&directories).contains("has mode 777"));
    }

    #[test]
    fn a_link_of_the_users_own_is_followed_and_judged_by_what_it_leads_to() {
        let (place, directories) = directories("model = \"a\"", 0o644);
        let file = place.path().join(USER_NAME);
        fs::rename(&file, place.path().join("real")).unwrap();
        std::os::unix::fs::symlink("real", &file).unwrap();
        assert!(!UserFile::read(&directories, None).unwrap().layer.is_empty());
        fs::set_permissions(place.path().join("real"), Permissions::from_mode(0o646)).unwrap();
        assert!(error(&directories).contains("has mode 646"));
        fs::remove_file(place.path().join("real")).unwrap();
        assert!(error(&directories).contains("No such file"), "one that leads nowhere is no absence");
    }

    #[test]
    fn what_is_no_file_of_text_is_an_error() {
        let (place, directories) = directories("", 0o600);
        let file = place.path().join(USER_NAME);
        fs::write(&file, b"a = \"\xff\"").unwrap();
        assert!(error(&directories).contains("config.toml:1:6: not UTF-8"), "{}", error(&directories));
        fs::write(&file, vec![b'#'; MOST + 1]).unwrap();
        assert!(error(&directories).contains("more than"), "{}", error(&directories));
        fs::remove_file(&file).unwrap();
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(error(&directories).contains("not a regular file of settings"));
    }

    #[test]
    fn a_table_holds_for_its_project_alone() {
        let text = |project: &Path| {
            format!(
                "model = \"a\"\n[rights]\nhide = [\"x\"]\nenv = [\"A=1\"]\n[project.{project:?}]\nmodel = \"b\"\n\
                 [project.{project:?}.rights]\nhide = [\"y\"]\nenv = [\"A=2\"]\n[project.\"/no/such\"]\nmodel = \"c\"\n"
            )
        };
        let project = tempfile::tempdir().unwrap();
        let link = tempfile::tempdir().unwrap();
        let named = link.path().join("link");
        std::os::unix::fs::symlink(project.path(), &named).unwrap();
        let (_place, directories) = directories(&text(&named), 0o600);
        let says = |project: Option<&Path>| {
            let layer = UserFile::read(&directories, project).unwrap().layer;
            let value = |name: &str| layer.value(name).unwrap().to_string();
            [value("model"), value("rights.hide"), value("rights.env")]
        };
        let canonical = fs::canonicalize(project.path()).unwrap();
        assert_eq!(says(Some(&canonical)), [r#""b""#, r#"["x", "y"]"#, r#"["A=1", "A=2"]"#]);
        for other in [None, Some(link.path())] {
            assert_eq!(says(other), [r#""a""#, r#"["x"]"#, r#"["A=1"]"#]);
        }
    }
}
