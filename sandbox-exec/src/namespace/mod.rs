//! Namespaces of the full tier, and the file systems in them.
//!
//! ```text
//! stub      host namespaces; clones init, maps its ids, waits for it                       [ids, clone]
//!  └ init   PID 1 of new user, mount, pid, ipc, uts and, with the network off, network namespaces
//!           1. network, file systems, loopback of its own: what fails is the machine's refusal [machine, loopback]
//!           2. the tree: everything read-only, roots on top, hidden places masked           [layout, tree, …]
//! ```
//!
//! All mounts are made by descriptor, with the mount interface of Linux 5.12: each path is resolved only once,
//! without following links. Mounts are cloned *before* the tree becomes read-only, and moved onto their own
//! paths after it.

mod devices;
mod hidden;
mod ids;
pub(crate) mod layout;
mod loopback;
pub(crate) mod machine;
mod masks;
mod mount;
mod own_tmp;
mod protected;
pub(crate) mod tree;

pub(crate) use ids::map;
