//! What a process finds where it is, and finds again for as long as it lives.

use nix::unistd::geteuid;

use crate::mediate;
use crate::platform::Platform;
use crate::private;

/// What a start stands on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground {
    /// What the kernel offers; a listener only where it gives the broker one.
    pub(crate) platform: Platform,
    /// Whether this pid namespace is the machine's own.
    pub(crate) machines_own: bool,
}

impl Ground {
    /// Looks.
    pub(crate) fn find() -> Self {
        let platform = Platform { listener: mediate::has_listener(), ..Platform::probe() };
        Self { platform, machines_own: private::is_machines_own() }
    }

    /// The same under whoever this process is now.
    pub(crate) fn again(self) -> Self {
        let platform = Platform { root: geteuid().is_root(), ..self.platform };
        Self { platform, ..self }
    }
}
