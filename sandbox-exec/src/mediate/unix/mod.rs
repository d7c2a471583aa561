pub(super) mod listeners;
pub(super) mod socket_file;
pub(super) mod stranger;
