//! The demo's material: a sample project with a bug, and a scripted model that repairs it.

pub mod conversation;
pub mod project;
pub mod repair;
