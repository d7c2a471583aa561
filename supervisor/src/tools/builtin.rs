//! The six tools.

use super::Tool;
use super::arguments::{EditFile, ListDirectory, ReadFile, SearchFiles, ShellExec, WriteFile};
use super::typed::Typed;

/// The six tools, in the order in which the model sees them.
pub fn builtin() -> Vec<Box<dyn Tool>> {
    vec![
        Box::new(Typed::<ReadFile>::new()),
        Box::new(Typed::<ListDirectory>::new()),
        Box::new(Typed::<SearchFiles>::new()),
        Box::new(Typed::<WriteFile>::new()),
        Box::new(Typed::<EditFile>::new()),
        Box::new(Typed::<ShellExec>::new()),
    ]
}
