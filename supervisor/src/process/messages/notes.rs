//! Holds messages back while a UI controls the terminal.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Messages that are held back for the end of the UI; `None` while messages are printed at once.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);

pub(crate) fn begin_to_hold() {
    held().get_or_insert_default();
}

pub(crate) fn hold(note: &str) -> bool {
    held().as_mut().map(|notes| notes.push(note.to_owned())).is_some()
}

/// Returns the messages that were held back since the previous call of this function.
pub(crate) fn take() -> Vec<String> {
    held().as_mut().map(std::mem::take).unwrap_or_default()
}

pub(crate) fn end_to_hold() -> Vec<String> {
    held().take().unwrap_or_default()
}

fn held() -> MutexGuard<'static, Option<Vec<String>>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}
