//! The activity of an agent: its purpose, on which its tools and access depend.

pub use protocol::event::Activity;
