//! Names of what lies in a directory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Whether a look-up of `name` certainly finds none of the entries that a list of the directory names.
///
/// Not every directory compares bytes: with ext4's or tmpfs's `casefold`, in XFS's `ascii-ci` and in vfat `.ssh` finds `.SSH` and, where
/// letters beyond ASCII are folded, `.\u{df}h` as well. vfat also finds a file by a short name that it does not list, with a `~` in it, and
/// by its name with dots and spaces after it.
pub fn finds_none<'a>(name: &OsStr, listed: impl IntoIterator<Item = &'a OsStr>) -> bool {
    let name = name.as_bytes();
    let is_plain = name.is_ascii() && !name.contains(&b'~') && !name.ends_with(b".") && !name.ends_with(b" ");
    is_plain && !listed.into_iter().any(|listed| may_be(name, listed.as_bytes()))
}

fn may_be(name: &[u8], listed: &[u8]) -> bool {
    if listed.is_ascii() {
        return name.eq_ignore_ascii_case(listed);
    }
    // Folded, it still has its ASCII characters in their order.
    let mut rest = name.iter();
    listed.iter().filter(|byte| byte.is_ascii()).all(|byte| rest.any(|of| of.eq_ignore_ascii_case(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_found_only_where_no_file_system_would_find_it() {
        for (name, listed) in [
            (".ssh", ".ssh"),
            (".ssh", ".SSH"),
            (".ssh", ".\u{df}h"),
            (".ssh", ".\u{17f}s\u{200d}h"),
            ("PROGRA~1", "Program Files"),
            (".env.", ".env"),
            ("\u{e9}", "e\u{301}"),
        ] {
            assert!(!finds_none(OsStr::new(name), [OsStr::new(listed)]), "{name} {listed}");
        }
        for (name, listed) in
            [(".ssh", ".ssh2"), (".ssh", "ssh"), (".ssh", ".sh"), (".ssh", "\u{d6}ffentlich"), ("a", "")]
        {
            assert!(finds_none(OsStr::new(name), [OsStr::new(listed)]), "{name} {listed}");
        }
    }
}
