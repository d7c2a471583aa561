pub(super) mod descriptor_tables;
pub(super) mod open_descriptors;
pub(super) mod probe;
pub(super) mod sock_diag;
pub(super) mod status;
pub(super) mod text;
