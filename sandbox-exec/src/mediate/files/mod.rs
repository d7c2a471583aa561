pub(super) mod metadata;
pub(super) mod tree;
