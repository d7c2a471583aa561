//! What hidden files are, beside what they are called.
//!
//! Landlock knows no deny rule: a hidden file is one that no rule grants, and a rule is made for each name beside it. Inside
//! a write root an agent can rename it, and the next generation's rules would be made for the new name. So its identity is
//! taken before the first agent exists.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ipc::confinement::FileIdentity;

/// The most files that are followed; they travel with each start.
const MOST: usize = 1 << 16;

/// The identity of everything at and beneath `paths`; links are not followed. The error names what holds too much.
pub(super) fn identities<'a>(paths: impl Iterator<Item = &'a Path>) -> Result<Vec<FileIdentity>, PathBuf> {
    let mut found = Vec::new();
    for path in paths {
        collect(path, &mut found).map_err(|()| path.to_owned())?;
    }
    Ok(found)
}

/// What cannot be looked at cannot be read by a worker of the same user either.
fn collect(path: &Path, found: &mut Vec<FileIdentity>) -> Result<(), ()> {
    let Ok(meta) = fs::symlink_metadata(path) else { return Ok(()) };
    if found.len() == MOST {
        return Err(());
    }
    found.push(FileIdentity { device: meta.dev(), inode: meta.ino() });
    if meta.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            collect(&entry.path(), found)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_beneath_is_known_and_links_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let secret = place.path().join("secret");
        fs::create_dir(&secret).unwrap();
        fs::write(secret.join("key"), "k").unwrap();
        std::os::unix::fs::symlink("/etc", secret.join("link")).unwrap();
        let missing = place.path().join("missing");
        let found = identities([secret.as_path(), &missing].into_iter()).unwrap();
        assert_eq!(found.len(), 3);
        let key = fs::metadata(secret.join("key")).unwrap();
        assert!(found.contains(&FileIdentity { device: key.dev(), inode: key.ino() }));
    }
}
