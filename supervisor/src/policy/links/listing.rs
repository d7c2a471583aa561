//! What a directory has no entry for, without a look-up of each name.

use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::Path;

use ipc::name::finds_none;

/// From so many names on, a list is less than their look-ups: it takes five calls, and something for each entry.
pub(super) const WORTH_IT: u32 = 10;

/// The most entries that a list is read to; in a larger directory each name is looked up.
const MOST: usize = 256;

/// What lies in a directory. Nothing is known where it is not worth a list, cannot be listed, or holds too much.
#[derive(Debug)]
pub(super) struct LinkListing(OnceCell<Option<Vec<OsString>>>);

impl LinkListing {
    /// Of a directory in which so many names will be asked for.
    pub(super) fn expecting(names: u32) -> Self {
        Self(if names < WORTH_IT { OnceCell::from(None) } else { OnceCell::new() })
    }

    /// Whether `directory`, which this is the list of, is known to have nothing that a look-up of `name` would find.
    pub(super) fn lacks(&self, directory: &Path, name: &OsStr) -> bool {
        let names = self.0.get_or_init(|| list(directory).unwrap_or_default());
        names.as_ref().is_some_and(|names| finds_none(name, names.iter().map(OsString::as_os_str)))
    }
}

/// The names in a directory, if they are not too many.
fn list(directory: &Path) -> io::Result<Option<Vec<OsString>>> {
    let entries = fs::read_dir(directory)?.take(MOST + 1);
    let names: Vec<_> = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    Ok((names.len() <= MOST).then_some(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a directory is said to lack of these, where more is asked for.
    fn lacking<'a>(directory: &Path, names: &[&'a str]) -> Vec<&'a str> {
        assert!(!LinkListing::expecting(WORTH_IT - 1).lacks(directory, OsStr::new("none")));
        let listing = LinkListing::expecting(WORTH_IT);
        names.iter().copied().filter(|name| listing.lacks(directory, OsStr::new(name))).collect()
    }

    #[test]
    fn what_a_list_does_not_name_is_lacking() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink("nowhere", place.path().join("link")).unwrap();
        assert_eq!(lacking(place.path(), &["file", "link", "none"]), ["none"]);
    }

    #[test]
    fn nothing_is_lacking_where_there_is_no_list() {
        let place = tempfile::tempdir().unwrap();
        assert!(lacking(&place.path().join("nowhere"), &["none"]).is_empty());
        for number in 0..MOST {
            fs::write(place.path().join(number.to_string()), "").unwrap();
        }
        assert_eq!(lacking(place.path(), &["0", "none"]), ["none"]);
        fs::write(place.path().join("one more"), "").unwrap();
        assert!(lacking(place.path(), &["0", "none"]).is_empty());
    }
}
