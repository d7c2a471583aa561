//! Trust in a project's files. The person gives this trust in answer to a question that lists the settings of the
//! files. The trust is valid only for this project path and these bytes.

use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ipc::path::WirePath;
use ipc::text::hexadecimal;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::layer::Layer;
use super::merge::{Layers, merge};
use super::project_file::ProjectFile;
use super::{own_commands, project_roles};
use crate::process::directories::Directories;

/// Maximum size in bytes of a record, which is JSON with a path of at most 4096 bytes.
const MOST: u64 = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDigest(String);

impl FileDigest {
    pub fn of(bytes: &[u8]) -> Self {
        Self(format!("sha256:{}", hexadecimal(&Sha256::digest(bytes))))
    }
}

impl fmt::Display for FileDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The question that the person is asked before a project's files may add access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustQuestion {
    pub project: PathBuf,
    /// The settings that the files would enable, one on each line. Terminal controls are escaped.
    pub lines: Vec<String>,
    /// The files as they were read, each with its path. For the settings file, the path is that of the project itself.
    pub(super) files: Vec<(PathBuf, FileDigest)>,
}

impl TrustQuestion {
    /// True if the project's settings file is among the files.
    pub(super) fn has_settings(&self) -> bool {
        self.files.iter().any(|(place, _)| *place == self.project)
    }

    pub(super) fn nothing(project: &Path) -> Self {
        Self { project: project.to_owned(), lines: Vec::new(), files: Vec::new() }
    }

    /// Returns the question about a project's settings file; `None` if it would add no access.
    ///
    /// Includes settings that the person's own settings override now: the trust stays valid when those change.
    pub fn about(file: &ProjectFile) -> Option<Self> {
        let nothing = Layer::default();
        let alone = Layers {
            flags: &nothing,
            environment: &nothing,
            user: &nothing,
            project: &file.layer,
            trusted: false,
        };
        let ignored = merge(alone).ignored;
        let lines: Vec<_> = ignored.iter().map(|one| format!("{one}  ({})", one.origin)).collect();
        let digest = file.digest.clone().filter(|_| !lines.is_empty())?;
        let project = file.project.clone();
        Some(Self { files: vec![(project.clone(), digest)], project, lines })
    }
}

/// The store of trusted files in the state directory, which no worker can access.
#[derive(Clone, Debug)]
pub struct Trust {
    place: PathBuf,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot save the list of trusted files in {place}: {source}")]
pub struct TrustError {
    place: PathBuf,
    source: io::Error,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustRecord {
    project: WirePath,
    digest: FileDigest,
}

impl Trust {
    pub fn new(directories: &Directories) -> Self {
        Self { place: directories.state.join("trust") }
    }

    /// True if the person trusts this file of this project. False if the store is unreadable, or if others could have
    /// written it.
    pub fn is_given(&self, project: &Path, digest: &FileDigest) -> bool {
        let expected = TrustRecord { project: project.into(), digest: digest.clone() };
        read(&self.record(project)).is_ok_and(|record| record == Some(expected))
    }

    /// Stores the trust in this version (a digest) of a file, in place of the trust in an earlier version of the file.
    pub fn remember(&self, project: &Path, digest: &FileDigest) -> Result<(), TrustError> {
        let record = TrustRecord { project: project.into(), digest: digest.clone() };
        self.write(&self.record(project), &record).map_err(|source| self.failed(source))
    }

    /// Removes the trust in all files of a project, including deleted ones. Returns true if any was trusted.
    pub fn forget(&self, project: &Path) -> Result<bool, TrustError> {
        self.remove_records(project).map_err(|source| self.failed(source))
    }

    fn remove_records(&self, project: &Path) -> io::Result<bool> {
        let entries = match fs::read_dir(&self.place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            entries => entries?,
        };
        let places = [project_roles::place(), own_commands::place()].map(|place| project.join(place));
        let is_its = |record: TrustRecord| {
            let of = record.project.as_path();
            of == project || places.iter().any(|place| of.starts_with(place))
        };
        let mut any = false;
        for entry in entries {
            let path = entry?.path();
            if path == self.record(project) || read(&path).ok().flatten().is_some_and(is_its) {
                fs::remove_file(path)?;
                any = true;
            }
        }
        Ok(any)
    }

    fn record(&self, project: &Path) -> PathBuf {
        let FileDigest(name) = FileDigest::of(project.as_os_str().as_bytes());
        self.place.join(name.trim_start_matches("sha256:")).with_extension("json")
    }

    fn write(&self, path: &Path, record: &TrustRecord) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.place)?;
        // The temporary file has mode 0600 and is renamed when it is complete.
        let mut file = tempfile::NamedTempFile::new_in(&self.place)?;
        serde_json::to_writer(&mut file, record)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        File::open(&self.place)?.sync_all()
    }

    fn failed(&self, source: io::Error) -> TrustError {
        TrustError { place: self.place.clone(), source }
    }
}

fn read(path: &Path) -> io::Result<Option<TrustRecord>> {
    let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let meta = file.metadata()?;
    let of_others = meta.permissions().mode() & 0o077;
    let is_ours = meta.is_file() && meta.uid() == nix::unistd::geteuid().as_raw() && of_others == 0;
    if !is_ours {
        return Ok(None);
    }
    let mut text = Vec::new();
    file.take(MOST).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text).ok())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    fn trust() -> (tempfile::TempDir, Trust) {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let directories = Directories { config: at("c"), state: at("s"), cache: at("k") };
        (place, Trust::new(&directories))
    }

    #[test]
    fn trust_is_bound_to_the_place_and_to_the_bytes() {
        let (_place, trust) = trust();
        let (a, b) = (FileDigest::of(b"a"), FileDigest::of(b"b"));
        assert!(!trust.is_given(Path::new("/p"), &a));
        trust.remember(Path::new("/p"), &a).unwrap();
        assert!(trust.is_given(Path::new("/p"), &a));
        assert!(!trust.is_given(Path::new("/p"), &b));
        assert!(!trust.is_given(Path::new("/q"), &a));
        trust.remember(Path::new("/p"), &b).unwrap();
        assert!(!trust.is_given(Path::new("/p"), &a), "only one version is trusted");
        assert!(trust.forget(Path::new("/p")).unwrap());
        assert!(!trust.is_given(Path::new("/p"), &b));
        assert!(!trust.forget(Path::new("/p")).unwrap());
    }

    #[test]
    fn a_record_that_others_could_have_made_counts_for_nothing() {
        let (_place, trust) = trust();
        let digest = FileDigest::of(b"a");
        trust.remember(Path::new("/p"), &digest).unwrap();
        let record = trust.record(Path::new("/p"));
        let mode = fs::metadata(&record).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        fs::set_permissions(&record, Permissions::from_mode(0o620)).unwrap();
        assert!(!trust.is_given(Path::new("/p"), &digest));
        fs::set_permissions(&record, Permissions::from_mode(0o600)).unwrap();
        assert!(trust.is_given(Path::new("/p"), &digest));
        // The copied record names the first project, so it must not count for the second.
        fs::copy(&record, trust.record(Path::new("/q"))).unwrap();
        assert!(!trust.is_given(Path::new("/q"), &digest));
        for garbage in [&b""[..], b"{}", b"\xff", b"{\"project\":\"/p\"}"] {
            fs::write(&record, garbage).unwrap();
            assert!(!trust.is_given(Path::new("/p"), &digest));
        }
    }
}
