//! Namespaces of the full tier, and the file systems in them.
//!
//! ```text
//! stub      host namespaces; clones init, maps its ids, waits for it                       [ids, clone]
//!  └ init   PID 1 of new user, mount, pid, ipc, uts and, with the network off, network namespaces
//!           1. networks, file systems; a failure means: no full tier on this machine         [machine, network]
//!           2. the file tree: all read-only, roots mounted on it, hidden paths masked        [layout, tree, …]
//! ```
//!
//! All mounts are made by descriptor, with the mount interface of Linux 5.12: each path is resolved only once,
//! without following links. Mounts of roots are cloned *before* the tree becomes read-only, and then attached to
//! their own paths.

mod devices;
mod hidden;
mod ids;
pub(crate) mod layout;
pub(crate) mod machine;
mod masks;
mod mount;
mod netlink;
pub(crate) mod network;
mod own_tmp;
mod protected;
pub(crate) mod resolving;
pub(crate) mod tree;

pub(crate) use ids::map;
