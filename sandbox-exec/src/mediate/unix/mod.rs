//! Unix sockets: their files, and who answers at them.

pub(super) mod listeners;
pub(super) mod socket_file;
pub(super) mod stranger;
