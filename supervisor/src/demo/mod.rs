//! The demo's material, embedded: a sample project with a bug, and a model session that finds it.

pub mod project;
pub mod session;
