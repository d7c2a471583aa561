//! Sets of unix sockets, each with its exact path: a directory does not include the sockets in it.

use crate::path::WirePath;

pub(super) fn sorted_sockets(mut sockets: Vec<WirePath>) -> Vec<WirePath> {
    sockets.sort();
    sockets.dedup();
    sockets
}

pub(super) fn common_sockets(left: &[WirePath], right: &[WirePath]) -> Vec<WirePath> {
    sorted_sockets(left.iter().filter(|socket| right.contains(socket)).cloned().collect())
}

pub(super) fn all_sockets(left: &[WirePath], right: &[WirePath]) -> Vec<WirePath> {
    sorted_sockets(left.iter().chain(right).cloned().collect())
}
