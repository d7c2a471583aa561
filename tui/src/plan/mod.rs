//! Plans: their text, and how far their steps have come.

mod progress;
mod source;
mod steps;

pub(crate) use progress::{Plans, Progress};
pub(crate) use source::styled;
pub(crate) use steps::{Step, StepLine};
