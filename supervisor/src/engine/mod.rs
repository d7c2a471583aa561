//! A running session: how it is prepared and opened, and the driver that carries out what its agents decide.

pub mod driver;
pub(crate) mod inside;
pub(crate) mod live;
pub(crate) mod mcp;
pub mod opening;
pub mod place;
