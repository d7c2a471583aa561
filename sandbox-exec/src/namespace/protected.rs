//! Protection of files inside a writable directory that programs outside the sandbox execute later, such as git hooks.
//! Such files become read-only, and neither they nor hidden files can be moved.
//!
//! A read-only `.git/hooks` would not help if `.git` could be replaced. So every directory between the writable
//! directory and the file is mounted onto itself: a mount point cannot be renamed or removed (`EBUSY`). A missing file
//! is not protected.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::path::Path;

use nix::sys::stat::{SFlag, fstat};

use super::layout::InsidePath;
use super::mount::{self, Attributes, Reach};
use super::tree::{TreeError, at};

/// Makes the existing protected files read-only. Prevents that protected files and existing hidden files are moved.
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

/// Mounts each directory above a path, up to the writable directory, onto itself, except those in `held`. False if one
/// of them is missing or a link.
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

/// Mounts a path onto itself, so that it cannot be moved. False if it is a link or cannot be reached.
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
