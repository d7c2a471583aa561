//! Sets of trees, each named by its root.

use std::collections::HashSet;
use std::ffi::OsString;

use crate::path::WirePath;

pub(super) fn is_under(path: &WirePath, roots: &[WirePath]) -> bool {
    roots.iter().any(|root| path.is_within(root))
}

pub(super) fn within(inner: &[WirePath], outer: &[WirePath]) -> bool {
    inner.iter().all(|path| is_under(path, outer))
}

/// Sorts, and drops what lies beneath another root.
pub(super) fn roots(mut paths: Vec<WirePath>) -> Vec<WirePath> {
    paths.sort_unstable();
    paths.dedup();
    // Looked up by name rather than compared with each other: there are a hundred hidden paths, at every start.
    let all: HashSet<OsString> = paths.iter().map(|path| path.as_path().as_os_str().to_owned()).collect();
    let is_beneath =
        |path: &WirePath| path.as_path().ancestors().skip(1).any(|above| all.contains(above.as_os_str()));
    paths.retain(|path| !is_beneath(path));
    paths
}

pub(super) fn union(left: &[WirePath], right: &[WirePath]) -> Vec<WirePath> {
    roots(left.iter().chain(right).cloned().collect())
}

pub(super) fn intersection(left: &[WirePath], right: &[WirePath]) -> Vec<WirePath> {
    let inner = left.iter().filter(|path| is_under(path, right));
    roots(inner.chain(right.iter().filter(|path| is_under(path, left))).cloned().collect())
}
