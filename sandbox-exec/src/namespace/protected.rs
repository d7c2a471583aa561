//! Files inside a write root that the host runs later: read-only, and held in their place. What is hidden there is held as well.
//!
//! A read-only `.git/hooks` is worth nothing if `.git` can be moved away and another one made in its place, and a mask hides
//! nothing from the next program if what it lies on can be moved with its parent. So every directory on the way from the
//! write root is mounted onto itself: a mount point cannot be renamed or removed (`EBUSY`).
//! What does not exist has no place to mount on, and no placeholder is made for it.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::path::Path;

use nix::sys::stat::{SFlag, fstat};

use super::layout::InsidePath;
use super::mount::{self, Attributes, Reach};
use super::tree::{TreeError, at};

/// Protects what exists, and holds what is to be covered.
pub(super) fn protect<'a>(protected: &'a [InsidePath], hidden: &'a [InsidePath]) -> Result<(), TreeError> {
    let mut held = BTreeSet::new();
    for inside in protected {
        if hold_way(inside, &mut held)? {
            hold(&inside.path, Attributes::READ_ONLY)?;
        }
    }
    // The way to what is not there stays free: most of what is hidden by default is nowhere.
    for inside in hidden.iter().filter(|inside| mount::open(&inside.path).is_ok()) {
        hold_way(inside, &mut held)?;
    }
    Ok(())
}

/// Holds the directories between a root and what lies inside it; whether they are all there.
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

/// Mounts a place onto itself; whether it is there. A link is not: what it leads to has a place of its own.
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
