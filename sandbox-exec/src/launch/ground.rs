//! What a process finds where it is, and finds again for as long as it lives.

use nix::unistd::geteuid;

use crate::mediate;
use crate::platform::Platform;

/// What a start stands on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground {
    /// What the kernel offers; a listener only where it gives the broker one.
    pub(crate) platform: Platform,
}

impl Ground {
    /// Looks.
    pub(crate) fn find() -> Self {
        Self { platform: Platform { listener: mediate::has_listener(), ..Platform::probe() } }
    }

    /// The same under whoever this process is now.
    pub(crate) fn again(self) -> Self {
        Self { platform: Platform { root: geteuid().is_root(), ..self.platform } }
    }
}
