//! Tools that a worker carries out.

use super::Tool;
use super::arguments::{EditFile, ListDirectory, ReadFile, SearchFiles, ShellExec, WriteFile};
use super::typed::Typed;
use crate::activity::Activity;

pub(super) fn reading() -> Vec<Box<dyn Tool>> {
    vec![
        Box::new(Typed::<ReadFile>::new()),
        Box::new(Typed::<ListDirectory>::new()),
        Box::new(Typed::<SearchFiles>::new()),
    ]
}

/// Returns the tools that can change something: only the shell while planning, and for an agent that never writes.
pub(super) fn acting(activity: Activity, writes: bool) -> Vec<Box<dyn Tool>> {
    let shell: Box<dyn Tool> = Box::new(Typed::<ShellExec>::new());
    match activity {
        Activity::Execute if writes => {
            vec![Box::new(Typed::<WriteFile>::new()), Box::new(Typed::<EditFile>::new()), shell]
        }
        Activity::Plan | Activity::Execute => vec![shell],
    }
}
