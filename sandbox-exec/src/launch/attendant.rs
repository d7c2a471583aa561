//! The thread that gets the mediator ready, and is the first of its threads then. It can begin before there is anything to do: what
//! it takes to begin is behind it by then.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use nix::sys::signal::{SigSet, SigmaskHow};

use crate::broker::SIGNALS;
use crate::mediate::crew;

/// Its life.
type Life = Box<dyn FnOnce() + Send>;

/// A thread that waits for something to do. One that gets nothing ends, and is waited for: this process may fork again then.
#[derive(Debug)]
pub(super) struct Attendant {
    life: Option<Sender<Life>>,
    thread: Option<JoinHandle<()>>,
}

impl Attendant {
    /// Begins one, which takes none of the signals that are for the broker, whoever takes them now.
    pub(super) fn begin() -> io::Result<Self> {
        let (life, lives) = mpsc::channel::<Life>();
        let for_broker: SigSet = SIGNALS.into_iter().collect();
        let before = for_broker.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let thread = crew::thread(move || lives.into_iter().take(1).for_each(|life| life()));
        before.thread_set_mask()?;
        Ok(Self { life: Some(life), thread: Some(thread?) })
    }

    /// Gives it something to do.
    pub(super) fn attend(mut self, life: Life) -> io::Result<()> {
        // From here on nobody waits for it.
        drop(self.thread.take());
        let given = self.life.as_ref().map(|lives| lives.send(life));
        given.and_then(Result::ok).ok_or_else(|| io::Error::other("the thread that attends is gone"))
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        drop(self.life.take());
        if let Some(thread) = self.thread.take() {
            // It has done nothing that could fail.
            drop(thread.join());
        }
    }
}
