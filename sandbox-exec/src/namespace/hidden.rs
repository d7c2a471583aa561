use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use nix::libc;
use nix::sys::stat::{SFlag, fstat};

use super::masks::is_unreachable;
use super::mount;
use super::tree::{TreeError, at};
use crate::tree::{Host, Tree, resolve};

/// Returns the existing hidden paths, and the targets of those that are links, sorted and without duplicates.
///
/// Most paths that are hidden by default do not exist. To find the existing ones, each directory is listed only once.
pub(super) fn places(paths: &[PathBuf]) -> Result<Vec<PathBuf>, TreeError> {
    let tree = Host::default();
    let mut places: Vec<PathBuf> = vec![];
    for path in paths.iter().filter(|path| tree.find(path).identity.is_some()) {
        match look(path)? {
            Look::Nothing => {}
            Look::There => places.push(path.clone()),
            Look::Link => places.extend([path.clone(), resolve(path)]),
        }
    }
    // By bytes: comparing components costs twenty times as much.
    places.sort_unstable_by(|one, other| bytes(one).cmp(bytes(other)));
    places.dedup_by(|one, other| bytes(one) == bytes(other));
    Ok(places)
}

enum Look {
    Nothing,
    There,
    Link,
}

fn look(path: &Path) -> Result<Look, TreeError> {
    let place = match mount::open(path) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return Ok(Look::Link),
        Err(error) if is_unreachable(&error) => return Ok(Look::Nothing),
        opened => opened.map_err(at("open", path))?,
    };
    let mode = fstat(&place).map_err(|errno| at("look at", path)(errno.into()))?.st_mode;
    let kind = SFlag::from_bits_truncate(mode & SFlag::S_IFMT.bits());
    Ok(if kind == SFlag::S_IFLNK { Look::Link } else { Look::There })
}

fn bytes(path: &Path) -> &OsStr {
    path.as_os_str()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_hidden_behind_a_link_is_hidden_where_that_leads() {
        let place = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(place.path()).unwrap();
        fs::create_dir_all(root.join("real/inner")).unwrap();
        fs::write(root.join("real/inner/file"), "").unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink("real/inner", root.join("end")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        let found = |names: &[&str]| {
            let paths: Vec<_> = names.iter().map(|name| root.join(name)).collect();
            let places = places(&paths).unwrap();
            let name = |place: &PathBuf| place.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            places.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(
            found(&["real/inner/file", "real", "missing", "real/missing/x"]),
            ["real", "real/inner/file"]
        );
        assert_eq!(found(&["link/inner"]), ["link/inner", "real/inner"]);
        assert_eq!(found(&["end", "real/inner"]), ["end", "real/inner"]);
        assert_eq!(found(&["dangling"]), ["dangling"]);
    }
}
