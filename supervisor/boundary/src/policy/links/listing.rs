use std::cell::OnceCell;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Minimum number of look-ups in a directory for which a listing, which takes five system calls, is faster.
pub(super) const WORTH_IT: u32 = 10;

/// Maximum number of entries of a listing. In a larger directory each name is looked up.
const MOST: usize = 256;

/// Listing of a directory's names. `None` if a listing is too long, impossible, or not worthwhile.
#[derive(Debug)]
pub(super) struct LinkListing(OnceCell<Option<Names>>);

/// Names in a directory, in a form that matches whatever any file system would match.
///
/// On ext4 and tmpfs with `casefold`, XFS with `ascii-ci`, and vfat, `.ssh` finds `.SSH`, sometimes also `.\u{df}h`.
/// vfat also finds a file by a short name with a `~`, and by its name followed by dots and spaces.
#[derive(Debug, Default)]
struct Names {
    /// Names with only ASCII characters, in lower case and sorted.
    ascii: Vec<Vec<u8>>,
    /// ASCII characters of each name that also has other characters. Case folding keeps the order of these characters.
    others: Vec<Vec<u8>>,
}

impl LinkListing {
    /// Returns an empty listing for `names` look-ups. If these are enough, the first look-up lists the directory.
    pub(super) fn expecting(names: u32) -> Self {
        Self(if names < WORTH_IT { OnceCell::from(None) } else { OnceCell::new() })
    }

    /// True if `directory` certainly has no entry that a look-up of `name` would find.
    pub(super) fn lacks(&self, directory: &Path, name: &OsStr) -> bool {
        let names = self.0.get_or_init(|| list(directory).unwrap_or_default());
        names.as_ref().is_some_and(|names| names.lack(name))
    }
}

impl Names {
    fn lack(&self, name: &OsStr) -> bool {
        let name = name.as_bytes();
        let is_plain =
            name.is_ascii() && !name.contains(&b'~') && !name.ends_with(b".") && !name.ends_with(b" ");
        let small = || name.iter().map(u8::to_ascii_lowercase);
        let listed = |ascii: &Vec<u8>| ascii.iter().copied().cmp(small());
        let may_be = |other: &Vec<u8>| {
            let mut rest = small();
            other.iter().all(|byte| rest.any(|of| of == *byte))
        };
        is_plain && self.ascii.binary_search_by(listed).is_err() && !self.others.iter().any(may_be)
    }
}

impl FromIterator<Vec<u8>> for Names {
    fn from_iter<I: IntoIterator<Item = Vec<u8>>>(listed: I) -> Self {
        let mut names = Self::default();
        for mut name in listed {
            let place = if name.is_ascii() { &mut names.ascii } else { &mut names.others };
            name.retain(u8::is_ascii);
            name.make_ascii_lowercase();
            place.push(name);
        }
        names.ascii.sort_unstable();
        names
    }
}

fn list(directory: &Path) -> io::Result<Option<Names>> {
    let entries = fs::read_dir(directory)?.take(MOST + 1);
    let names: Vec<_> = entries.map(|entry| Ok(entry?.file_name().into_vec())).collect::<io::Result<_>>()?;
    Ok((names.len() <= MOST).then(|| names.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names that the listing shows to be absent.
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
    fn none_is_found_only_where_no_file_system_would_find_it() {
        let lack = |name: &str, listed: &str| {
            let names: Names = [listed, "zz"].map(|name| name.as_bytes().to_vec()).into_iter().collect();
            names.lack(OsStr::new(name))
        };
        for (name, listed) in [
            (".ssh", ".ssh"),
            (".ssh", ".SSH"),
            (".SSH", ".ssh"),
            (".ssh", ".\u{df}h"),
            (".ssh", ".\u{17f}s\u{200d}h"),
            ("PROGRA~1", "Program Files"),
            (".env.", ".env"),
            ("\u{e9}", "e\u{301}"),
        ] {
            assert!(!lack(name, listed), "{name} {listed}");
        }
        for (name, listed) in
            [(".ssh", ".ssh2"), (".ssh", "ssh"), (".ssh", ".sh"), (".ssh", "\u{d6}ffentlich"), ("a", "")]
        {
            assert!(lack(name, listed), "{name} {listed}");
        }
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
