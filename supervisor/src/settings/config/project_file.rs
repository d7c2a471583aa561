//! A project's `.bailiwick.toml`: an untrusted file, opened below the project without following symbolic links.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use boundary::tripwire::beneath;
use nix::errno::Errno;
use nix::sys::stat::{SFlag, fstat};

use super::error::SettingsError;
use super::layer::Layer;
use super::mcp::{FOREIGN_SERVERS, McpProposal, proposals_of_json};
use super::parse::{FileOwner, parse, text};
use super::trust::FileDigest;

/// Name of the file in the top directory of a project.
pub const PROJECT_NAME: &str = ".bailiwick.toml";

/// Name of another agent's settings file, which is reported and never read.
pub const FOREIGN_NAME: &str = ".agent.toml";

const MOST: usize = 64 << 10;

#[derive(Clone, Debug)]
pub struct ProjectFile {
    pub project: PathBuf,
    pub layer: Layer,
    /// Digest of the file's bytes; `None` if there is no file.
    pub digest: Option<FileDigest>,
    /// True if the project also has a settings file of another agent.
    pub has_foreign: bool,
    /// MCP servers that the project proposes. An error says why one of them, or a whole list, cannot be read.
    pub servers: Vec<Result<McpProposal, String>>,
}

impl ProjectFile {
    /// Reads the file of a project. `project` is its canonical path. A missing file has no settings.
    ///
    /// Fails if the file exists but cannot be read, because its restrictions would be unknown.
    pub fn read(project: &Path) -> Result<Self, SettingsError> {
        let root = beneath::open_root(project).map_err(|error| SettingsError::UnreadableProject {
            project: project.to_owned(),
            source: error.into(),
        })?;
        let has_foreign = beneath::stat(&root, OsStr::new(FOREIGN_NAME)).is_ok();
        let bytes = read(&root, PROJECT_NAME)?;
        let digest = bytes.as_deref().map(FileDigest::of);
        let name = Path::new(PROJECT_NAME);
        let layer = match bytes {
            Some(bytes) => said(bytes, name)?,
            None => Layer::default(),
        };
        let servers = proposals(&layer, read(&root, FOREIGN_SERVERS));
        Ok(Self { project: project.to_owned(), layer, digest, has_foreign, servers })
    }
}

/// Returns the MCP servers that the project proposes: in its settings file, and in the file of other programs.
fn proposals(
    layer: &Layer,
    foreign: Result<Option<Vec<u8>>, SettingsError>,
) -> Vec<Result<McpProposal, String>> {
    let own = layer.mcp.iter().map(|server| Ok(McpProposal { server: server.clone(), left_out: Vec::new() }));
    let foreign = foreign.map_err(|error| error.to_string()).and_then(|bytes| {
        let Some(bytes) = bytes else { return Ok(Vec::new()) };
        let text = text(bytes, Path::new(FOREIGN_SERVERS), MOST).map_err(|error| error.to_string())?;
        proposals_of_json(&text).map_err(|why| format!("{FOREIGN_SERVERS}: {why}"))
    });
    let foreign = match foreign {
        Ok(servers) => servers,
        Err(why) => vec![Err(why)],
    };
    own.chain(foreign).collect()
}

fn said(bytes: Vec<u8>, name: &Path) -> Result<Layer, SettingsError> {
    let layer = text(bytes, name, MOST).and_then(|text| parse(&text, name, FileOwner::Projects));
    layer.map_err(|error| match error {
        SettingsError::Wrong(problems) => SettingsError::WrongInProject(problems),
        other => other,
    })
}

fn read(root: impl AsFd, name: &'static str) -> Result<Option<Vec<u8>>, SettingsError> {
    let unreadable = |error: Errno| SettingsError::Unreadable { file: name.into(), source: error.into() };
    let check = |kind| check(name, kind);
    let name = OsStr::new(name);
    match beneath::stat(&root, name) {
        Err(Errno::ENOENT) => return Ok(None),
        found => check(beneath::kind(&found.map_err(unreadable)?))?,
    }
    let file = beneath::open_file(&root, name).map_err(unreadable)?;
    // The file may have been replaced since the check.
    check(beneath::kind(&fstat(&file).map_err(unreadable)?))?;
    let mut content = Vec::new();
    let read = File::from(file).take(MOST as u64 + 1).read_to_end(&mut content);
    read.map_err(|source| SettingsError::Unreadable { file: name.into(), source })?;
    Ok(Some(content))
}

fn check(name: &str, kind: SFlag) -> Result<(), SettingsError> {
    let what = match kind {
        SFlag::S_IFREG => return Ok(()),
        SFlag::S_IFLNK => "a link",
        SFlag::S_IFDIR => "a directory",
        SFlag::S_IFIFO => "a fifo",
        _ => "a socket or a device",
    };
    Err(SettingsError::NotAFile { file: name.into(), what })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn error(project: &Path) -> String {
        ProjectFile::read(project).unwrap_err().to_string()
    }

    #[test]
    fn nothing_there_says_nothing_and_another_agents_settings_are_only_seen() {
        let place = tempfile::tempdir().unwrap();
        let none = ProjectFile::read(place.path()).unwrap();
        assert!(none.layer.is_empty() && none.digest.is_none() && !none.has_foreign);
        fs::write(place.path().join(FOREIGN_NAME), b"\xff not read").unwrap();
        assert!(ProjectFile::read(place.path()).unwrap().has_foreign);
    }

    #[test]
    fn what_is_no_file_of_text_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join(PROJECT_NAME);
        let cases: [(&str, &dyn Fn()); 6] = [
            ("is a link", &|| symlink("/etc/shadow", &file).unwrap()),
            ("is a link", &|| symlink("missing", &file).unwrap()),
            ("is a fifo", &|| nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap()),
            ("is a socket", &|| drop(std::os::unix::net::UnixListener::bind(&file).unwrap())),
            ("more than 65536 bytes", &|| fs::write(&file, vec![b'#'; MOST + 1]).unwrap()),
            (".bailiwick.toml:2:1: not UTF-8", &|| fs::write(&file, b"#\n\xff").unwrap()),
        ];
        for (expected, make) in cases {
            make();
            let error = error(place.path());
            assert!(error.contains(expected), "{expected}: {error}");
            fs::remove_file(&file).unwrap();
        }
        fs::create_dir(&file).unwrap();
        assert!(error(place.path()).contains("is a directory"));
    }

    #[test]
    fn the_digest_is_of_the_very_bytes() {
        let place = tempfile::tempdir().unwrap();
        let digest = |text: &str| {
            fs::write(place.path().join(PROJECT_NAME), text).unwrap();
            ProjectFile::read(place.path()).unwrap().digest.unwrap()
        };
        assert_eq!(digest("# a"), digest("# a"));
        assert_ne!(digest("# a"), digest("# a "));
    }
}
