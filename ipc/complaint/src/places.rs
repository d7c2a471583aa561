//! Paths in a command's error messages.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use ipc::named::{Asked, NamedPlace, Permits};

use super::{ErrorLine, lines};

/// Maximum number of paths that are taken from one output. The limit protects against hostile output.
const MAX_PLACES: usize = 32;

pub fn find(named: &str, directory: &Path, permits: impl FnOnce(&Path) -> Permits) -> NamedPlace {
    let path = resolved(&directory.join(named));
    let nearest = path.ancestors().find(|place| place.symlink_metadata().is_ok()).unwrap_or(Path::new("/"));
    NamedPlace {
        named: named.to_owned(),
        permits: permits(&path),
        device: fs::metadata(nearest).map_or(0, |meta| meta.dev()),
        asked: Asked::default(),
        nearest: (nearest != path).then(|| nearest.into()),
        path: path.into(),
    }
}

/// Resolves links and `..` in the existing part of a path. The missing part stays as it is.
pub fn resolved(path: &Path) -> PathBuf {
    let (whole, rest) = path
        .ancestors()
        .find_map(|place| Some((place.canonicalize().ok()?, path.strip_prefix(place).ok()?)))
        .unwrap_or((PathBuf::from("/"), path));
    rest.components().fold(whole, |mut place, component| {
        match component {
            Component::Normal(name) => place.push(name),
            Component::ParentDir => drop(place.pop()),
            _ => {}
        }
        place
    })
}

pub fn named_in(texts: [&str; 2]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let names = lines(texts).filter_map(ErrorLine::new).flat_map(|complaint| complaint.paths());
    names.filter(|name| seen.insert(*name)).take(MAX_PLACES).collect()
}

pub fn processes_in(texts: [&str; 2]) -> Vec<String> {
    let numbers = lines(texts).filter_map(|line| ErrorLine::new(line)?.process());
    let seen: BTreeSet<_> = numbers.take(MAX_PLACES).collect();
    seen.into_iter().map(|number| format!("/proc/{number}")).collect()
}
