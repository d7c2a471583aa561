//! What is to be said to the person while a UI has the terminal: it is held back, for there it would be nobody's words.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Absent while no message is held back.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// From now on nothing is said at once.
pub(crate) fn begin_to_hold() {
    held().get_or_insert_default();
}

/// Keeps a note, if notes are held back.
pub(crate) fn hold(note: &str) -> bool {
    held().as_mut().map(|notes| notes.push(note.to_owned())).is_some()
}

/// The notes that were held back since they were taken last.
pub(crate) fn take() -> Vec<String> {
    held().as_mut().map(std::mem::take).unwrap_or_default()
}

/// From now on notes are said at once again; those that nobody took.
pub(crate) fn end_to_hold() -> Vec<String> {
    held().take().unwrap_or_default()
}

fn held() -> MutexGuard<'static, Option<Vec<String>>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}
