//! The demos' material: a sample project with a bug and a scripted model that repairs it, a poisoned one and a model that
//! obeys it.

pub mod conversation;
pub mod poison;
pub mod project;
pub mod repair;
