//! What the kernel's audit records say that a Landlock domain refused.

use crate::path::WirePath;

/// An act that Landlock refused, by the kernel's own word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// What the calling process calls itself: any text.
    pub program: String,
    /// What was tried.
    pub act: RecordedAct,
    /// On what, by the kernel's own name of it.
    pub path: WirePath,
    /// What the caller was told.
    pub errno: i32,
}

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordedAct {
    /// Opening something to read, list or execute it: plain permissions had allowed it, since they are asked first.
    Read,
    /// Opening something to change it, or cutting it: here too they are asked first.
    Write,
    /// Making, removing or moving a name in this directory: here Landlock is asked first, so that something else might have
    /// refused it as well.
    Name,
}
