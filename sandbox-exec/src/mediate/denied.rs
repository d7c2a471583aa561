//! Calls that are denied here instead of by the standing program ([`crate::seccomp::rules::told`]), so that they can be told: by the
//! call, what it is denied for, and who made it.
//!
//! None of them is performed, nor goes on: it is told of, or not, and fails with the error of its rule. It is told only where it would have
//! gone on without us. That is found out by doing the same where it changes nothing, without capabilities and outside the filter, or
//! by what the kernel asks.

use nix::libc;

use super::address::integer;
use super::families::Families;
use super::filter::ARCH;
use super::listener::Notification;
use super::namespaces::Namespaces;
use super::peers;
use super::status::Status;
use crate::seccomp::rules::Denial;

/// What judges them.
#[derive(Debug)]
pub(super) struct Denied {
    denials: Vec<Denial>,
    namespaces: Namespaces,
    families: Families,
}

impl Denied {
    /// Denies these.
    pub(super) fn new(denials: Vec<Denial>) -> Self {
        Self { denials, namespaces: Namespaces::default(), families: Families::default() }
    }

    /// The rule that denies a call.
    pub(super) fn denial_of(&self, notification: &Notification) -> Option<&Denial> {
        let number = u32::try_from(notification.call).ok()?;
        let denies = |denial: &&Denial| {
            denial.call.number(ARCH) == Some(number) && denial.holds(&notification.arguments)
        };
        self.denials.iter().find(denies)
    }

    /// A denied call, and what it is denied for, if nothing else hinders it; its caller waits until then.
    pub(super) fn alone_hinders(&self, notification: &Notification) -> Option<String> {
        let arguments = notification.arguments;
        let caller = Status::of(notification.thread).ok()?;
        match notification.call {
            libc::SYS_unshare => self.namespaces.unshare(integer(arguments[0]), &caller),
            libc::SYS_clone => self.namespaces.clone(integer(arguments[0])),
            libc::SYS_socket => {
                let [family, style, protocol, ..] = arguments.map(integer);
                self.families.socket(family, style, protocol)
            }
            call => peers::call(call, &arguments, notification.thread, &caller),
        }
    }
}
