//! A running session: its sandbox, the steps that open it, and the driver that carries out its agents' decisions.

pub mod driver;
pub(crate) mod inside;
pub(crate) mod live;
pub(crate) mod mcp;
pub mod opening;
pub mod place;
