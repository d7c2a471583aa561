//! Purpose of an agent, on which the agent's tools and access depend.

pub use protocol::event::Activity;
