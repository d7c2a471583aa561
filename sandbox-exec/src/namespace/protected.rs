//! Files inside a write root that the host runs later: read-only, and held in their place.
//!
//! A read-only `.git/hooks` is worth nothing if `.git` can be moved away and another one made in its place. So every
//! directory on the way from the write root is mounted onto itself: a mount point cannot be renamed or removed (`EBUSY`).
//! What does not exist has no place to mount on, and no placeholder is made for it.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use nix::sys::stat::{SFlag, fstat};

use super::layout::Protected;
use super::mount::{self, Attributes, Reach};
use super::tree::{TreeError, at};

/// Protects what exists.
pub(super) fn protect(all: &[Protected]) -> Result<(), TreeError> {
    let mut held = BTreeSet::new();
    for Protected { root, path } in all {
        let between: Vec<_> = path.ancestors().skip(1).take_while(|place| place != root).collect();
        let mut exists = true;
        for place in between.into_iter().rev() {
            exists = exists && (held.contains(place) || hold(place, Attributes::WRITABLE)?);
            if exists {
                held.insert(place);
            }
        }
        if exists {
            hold(path, Attributes::READ_ONLY)?;
        }
    }
    Ok(())
}

/// Mounts a place onto itself; whether it is there. A link is not: what it leads to has a place of its own.
fn hold(path: &Path, attributes: Attributes) -> Result<bool, TreeError> {
    let place = match mount::open(path) {
        Ok(place) => place,
        Err(error) if super::masks::is_unreachable(&error) => return Ok(false),
        Err(source) => return Err(at("open", path)(source)),
    };
    let held = || {
        let kind = SFlag::from_bits_truncate(fstat(&place)?.st_mode & SFlag::S_IFMT.bits());
        if kind == SFlag::S_IFLNK {
            return Ok(false);
        }
        let copy = mount::copy(place.as_fd(), Reach::Tree)?;
        mount::restrict(copy.as_fd(), attributes, Reach::Tree)?;
        mount::attach(copy.as_fd(), place.as_fd())?;
        Ok(true)
    };
    held().map_err(|source: io::Error| at("protect", path)(source))
}
