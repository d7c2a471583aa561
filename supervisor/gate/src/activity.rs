//! The activity of an agent: its purpose, on which its tools and rights depend.

pub use protocol::event::Activity;
