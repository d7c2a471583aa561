//! The files of plans and of their records. A write replaces a file completely or not at all.

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::record::PlanRecord;
use crate::process::directories::Directories;

#[derive(Clone, Debug)]
pub(crate) struct Store {
    place: PathBuf,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {source}")]
pub(crate) struct StoreError {
    path: PathBuf,
    source: io::Error,
}

impl Store {
    pub(crate) fn at(directories: &Directories) -> Self {
        Self { place: directories.plans() }
    }

    pub(super) fn place(&self) -> &Path {
        &self.place
    }

    /// Writes a new plan to a new file and returns its path. The name is the current second in UTC, followed by a
    /// number if it is taken. A model never chooses the name.
    pub(crate) fn create(&self, text: &str) -> Result<PathBuf, StoreError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| StoreError { path, source }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.place).map_err(at(&self.place))?;
        let second = Timestamp::now().strftime("%Y-%m-%d-%H%M%S").to_string();
        let mut name = format!("{second}.md");
        for number in 2_u64.. {
            let path = self.place.join(&name);
            match create(&path, text.as_bytes()) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    name = format!("{second}-{number}.md");
                }
                written => return written.map(|()| path.clone()).map_err(at(&path)),
            }
        }
        Err(at(&self.place)(ErrorKind::AlreadyExists.into()))
    }

    /// Replaces the text of a plan's file atomically.
    pub(crate) fn replace(&self, path: &Path, text: &str) -> Result<(), StoreError> {
        self.put(path, text.as_bytes())
    }

    pub(crate) fn write_record(&self, path: &Path, record: &PlanRecord) -> Result<(), StoreError> {
        let path = path.with_extension("json");
        let text = serde_json::to_vec(record);
        let text = text.map_err(|error| StoreError { path: path.clone(), source: error.into() })?;
        self.put(&path, &text)
    }

    fn put(&self, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        let written = || {
            // The temporary file has mode 0600.
            let mut file = tempfile::NamedTempFile::new_in(&self.place)?;
            file.write_all(bytes)?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            File::open(&self.place)?.sync_all()
        };
        written().map_err(|source| StoreError { path: path.to_owned(), source })
    }
}

/// Creates a file. Fails if anything exists at the path, even a symbolic link.
fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let place = tempfile::tempdir().unwrap();
        let directories = Directories::from_environment(|name| {
            (name == "BAILIWICK_HOME").then(|| place.path().as_os_str().to_owned())
        });
        let store = Store::at(&directories.unwrap());
        (place, store)
    }

    #[test]
    fn each_plan_has_a_private_file_of_its_own() {
        let (_place, store) = store();
        let paths: Vec<_> = ["one", "two", "three"].map(|text| store.create(text).unwrap()).into();
        let texts: Vec<_> = paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
        assert_eq!(texts, ["one", "two", "three"]);
        store.replace(&paths[0], "other").unwrap();
        assert_eq!(fs::read_to_string(&paths[0]).unwrap(), "other");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&paths[0]), mode(&paths[1]), mode(&store.place)), (0o600, 0o600, 0o700));
    }

    #[test]
    fn no_link_is_followed() {
        let (place, store) = store();
        let path = store.create("one").unwrap();
        let victim = place.path().join("victim");
        fs::write(&victim, "kept").unwrap();
        fs::remove_file(&path).unwrap();
        symlink(&victim, &path).unwrap();
        assert!(create(&path, b"two").is_err());
        store.replace(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    }

    #[test]
    fn what_cannot_be_written_names_the_file() {
        let (place, store) = store();
        fs::create_dir_all(place.path().join("state")).unwrap();
        fs::write(place.path().join("state/plans"), "").unwrap();
        let error = store.create("one").unwrap_err().to_string();
        assert!(error.starts_with("cannot write ") && error.contains("state/plans"), "{error}");
    }
}
