//! Files inside a write root that the host runs later: read-only, and held in their place. Hidden files there
//! are held as well.
//!
//! A read-only `.git/hooks` is worth nothing if `.git` can be moved away and replaced, and a mask hides
//! nothing from the next program if the hidden file can be moved with its parent. So every directory on the
//! way from the write root is mounted onto itself: a mount point cannot be renamed or removed (`EBUSY`). A
//! missing file has no place to mount on, and no placeholder is created for it.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::path::Path;

use nix::sys::stat::{SFlag, fstat};

use super::layout::InsidePath;
use super::mount::{self, Attributes, Reach};
use super::tree::{TreeError, at};

/// Protects the existing files, and holds the hidden files in their place.
pub(super) fn protect<'a>(protected: &'a [InsidePath], hidden: &'a [InsidePath]) -> Result<(), TreeError> {
    let mut held = BTreeSet::new();
    for inside in protected {
        if hold_way(inside, &mut held)? {
            hold(&inside.path, Attributes::READ_ONLY)?;
        }
    }
    // The way to a missing file stays free: most files that are hidden by default do not exist.
    for inside in hidden.iter().filter(|inside| mount::open(&inside.path).is_ok()) {
        hold_way(inside, &mut held)?;
    }
    Ok(())
}

/// Holds the directories between a root and a path inside it; returns true if all of them exist.
fn hold_way<'a>(inside: &'a InsidePath, held: &mut BTreeSet<&'a Path>) -> Result<bool, TreeError> {
    let between: Vec<_> = inside.path.ancestors().skip(1).take_while(|place| *place != inside.root).collect();
    for place in between.into_iter().rev() {
        if !held.contains(place) {
            if !hold(place, Attributes::WRITABLE)? {
                return Ok(false);
            }
            held.insert(place);
        }
    }
    Ok(true)
}

/// Mounts a place onto itself; returns true if it exists. A link is left alone: its target has a place of its
/// own.
fn hold(path: &Path, attributes: Attributes) -> Result<bool, TreeError> {
    let held = || {
        let place = match mount::open(path) {
            Ok(place) => place,
            Err(error) if super::masks::is_unreachable(&error) => return Ok(false),
            Err(error) => return Err(error),
        };
        let kind = SFlag::from_bits_truncate(fstat(&place)?.st_mode & SFlag::S_IFMT.bits());
        if kind == SFlag::S_IFLNK {
            return Ok(false);
        }
        let copy = mount::copy(place.as_fd(), Reach::Tree)?;
        mount::restrict(copy.as_fd(), attributes, Reach::Tree)?;
        mount::attach(copy.as_fd(), place.as_fd())?;
        Ok(true)
    };
    mount::while_it_stands(held).map_err(at("protect", path))
}
