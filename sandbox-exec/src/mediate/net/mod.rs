//! Decisions about sockets in the host's network namespace.

pub(super) mod connections;
pub(super) mod holders;
pub(super) mod host;
pub(super) mod inside_names;
pub(super) mod internet;
pub(super) mod introductions;
pub(super) mod led;
pub(super) mod open_sockets;
pub(super) mod outside_ports;
pub(super) mod port_filter;
pub(super) mod reservations;
