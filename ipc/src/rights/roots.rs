//! Sets of directories, each of which includes everything below it.

use crate::path::WirePath;

pub(super) fn is_under(path: &WirePath, roots: &[WirePath]) -> bool {
    roots.iter().any(|root| path.is_within(root))
}

pub(super) fn within(inner: &[WirePath], outer: &[WirePath]) -> bool {
    inner.iter().all(|path| is_under(path, outer))
}

pub(super) fn roots(mut paths: Vec<WirePath>) -> Vec<WirePath> {
    // Comparing bytes first, and sorting what is already sorted, is fast: each start has hundreds of hidden paths.
    paths.sort();
    paths.dedup_by(|path, root| path.as_bytes().starts_with(root.as_bytes()) && path.is_within(root));
    paths
}

pub(super) fn union(left: &[WirePath], right: &[WirePath]) -> Vec<WirePath> {
    roots(left.iter().chain(right).cloned().collect())
}

pub(super) fn intersection(left: &[WirePath], right: &[WirePath]) -> Vec<WirePath> {
    let inner = left.iter().filter(|path| is_under(path, right));
    roots(inner.chain(right.iter().filter(|path| is_under(path, left))).cloned().collect())
}
