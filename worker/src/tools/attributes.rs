//! Metadata of a file apart from content and permission bits. A new file replaces an old one only if they are equal.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use sandbox_exec::system::file::{attribute, attribute_names, inode_flags};

use crate::fault::errno_of;

/// Maximum size in bytes of an extended attribute, and of the list of all names (`XATTR_SIZE_MAX`, `XATTR_LIST_MAX`).
const MOST: usize = 1 << 16;
/// Extended attribute of a file's access control list (acl(5)).
const ACCESS_LIST: &CStr = c"system.posix_acl_access";
/// Extended attribute of a program's capabilities (capabilities(7)).
const CAPABILITIES: &CStr = c"security.capability";

#[derive(Debug, PartialEq, Eq)]
pub struct Attributes {
    owner: u32,
    group: u32,
    /// Set-user-ID, set-group-ID and sticky bits.
    special: u32,
    names: u64,
    /// Inode flags as `lsattr` shows them; `None` if the file system has none.
    flags: Option<i32>,
    /// Extended attributes by name; `None` for one that cannot be read.
    extended: BTreeMap<CString, Option<Vec<u8>>>,
}

impl Attributes {
    pub fn of(file: &File) -> Result<Self, Errno> {
        let metadata = file.metadata().map_err(|error| errno_of(&error))?;
        Ok(Self {
            owner: metadata.uid(),
            group: metadata.gid(),
            special: metadata.mode() & 0o7000,
            names: metadata.nlink(),
            flags: inode_flags(file.as_fd()).ok(),
            extended: extended(file)?,
        })
    }

    pub fn of_entry(directory: &OwnedFd, name: &OsStr) -> Result<Self, Errno> {
        let flags =
            OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        Self::of(&File::from(openat(directory, name, flags, Mode::empty())?))
    }

    pub fn has_access_list(&self) -> bool {
        self.extended.contains_key(ACCESS_LIST)
    }

    /// Returns a sentence for each attribute that overwriting a file in place has changed, from `self` to `now`.
    pub fn told_after_write(&self, now: &Self) -> Vec<String> {
        let mut told = Vec::new();
        if now.names > 1 {
            told.push(format!(
                "the file has {} names (hard links), and all of them have the new content",
                now.names
            ));
        }
        let lost = self.special & !now.special;
        for (bit, name) in [(0o4000, "set-user-ID bit"), (0o2000, "set-group-ID bit")] {
            if lost & bit != 0 {
                told.push(format!("the file lost its {name}, as every written file does"));
            }
        }
        for name in self.extended.keys().filter(|name| !now.extended.contains_key(*name)) {
            let name =
                if name.as_c_str() == CAPABILITIES { "capabilities".into() } else { name.to_string_lossy() };
            told.push(format!("the file lost its {name}"));
        }
        told
    }
}

fn extended(file: impl AsFd) -> Result<BTreeMap<CString, Option<Vec<u8>>>, Errno> {
    let mut buffer = vec![0; MOST];
    let length = match attribute_names(file.as_fd(), &mut buffer) {
        // The file system has no extended attributes.
        Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => return Ok(BTreeMap::new()),
        listed => listed?,
    };
    let names = buffer.get(..length).unwrap_or_default().split(|byte| *byte == 0);
    let names = names.filter(|name| !name.is_empty()).filter_map(|name| CString::new(name).ok());
    Ok(names.map(|name| (name.clone(), value(&file, &name))).collect())
}

fn value(file: impl AsFd, name: &CStr) -> Option<Vec<u8>> {
    let mut value = vec![0; MOST];
    let length = attribute(file.as_fd(), name, &mut value).ok()?;
    value.truncate(length);
    Some(value)
}
