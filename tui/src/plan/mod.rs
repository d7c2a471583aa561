mod draft;
mod progress;
mod source;
mod steps;
mod versions;

pub(crate) use draft::{Draft, DraftPlace, Field};
pub(crate) use progress::{Plans, Progress};
pub(crate) use source::styled;
pub(crate) use steps::{Step, StepLine};
pub(crate) use versions::{Compared, Version};
