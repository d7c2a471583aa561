//! Calls on files, and the trees in which they are decided.

pub(super) mod metadata;
pub(super) mod tree;
