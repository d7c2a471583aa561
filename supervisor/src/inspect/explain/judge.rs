//! The gate's judgement of a path.

use std::fs;
use std::os::unix::fs::FileTypeExt;

use boundary::policy::place_to_grant;
use gate::judgement::{denied, flags, judge, sockets};
use gate::modes::{Position, permits};
use gate::protected::is_acted_on;
use gate::{Place, Verdict as Judged};
use ipc::confinement::{HARMLESS_DEVICES, Tier};
use ipc::denial::{Denial, Operation};
use ipc::path::WirePath;
use ipc::tool::{FailedAccess, ToolError, ToolErrorKind};
use libc::{EACCES, EROFS};

use super::ExplainPolicy;
use super::answer::{ExplainAnswer, ExplainVerdict};
use super::origins::default;

/// Devices for shared memory and terminals. Each sandbox has its own.
const OWN_DEVICES: [&str; 4] = ["/dev/shm", "/dev/mqueue", "/dev/pts", "/dev/tty"];

pub(super) struct Judge<'a> {
    /// The path after all symbolic links are resolved.
    pub(super) real: WirePath,
    pub(super) exists: bool,
    pub(super) policy: &'a ExplainPolicy<'a>,
}

impl Judge<'_> {
    pub(super) fn answer(&self, operation: Operation) -> ExplainAnswer {
        if let Some(answer) = self.device(operation) {
            return answer;
        }
        let standing = self.policy.standing;
        match operation {
            Operation::Write if permits(Position::FIRST, standing.mode()).asks() => self.write_in_ask(),
            Operation::Write if standing.allows_write(&self.real) => self.writable(),
            Operation::Read | Operation::Execute if standing.allows_read(&self.real) => {
                ExplainAnswer::allowed("agents can read and execute everything that is not hidden", default())
            }
            _ => match self.denial(operation) {
                Some(denial) => self.denied(&denial),
                None => ExplainAnswer::new(ExplainVerdict::Denied, "no rule allows this access"),
            },
        }
    }

    /// Returns the answer for a device that needs no rule, or that each sandbox has for itself; `None` for other paths.
    fn device(&self, operation: Operation) -> Option<ExplainAnswer> {
        let within = |tree: &&str| self.real.is_within(&WirePath::from(*tree));
        if operation == Operation::Execute {
            None
        } else if HARMLESS_DEVICES.iter().any(within) {
            Some(ExplainAnswer::allowed("every program can read and write this device", default()))
        } else if !OWN_DEVICES.iter().any(within) {
            let is_granted = self.policy.standing.allows_write(&self.real);
            let because = "of the host's devices, agents can use only five harmless ones";
            (self.is_device() && !is_granted).then(|| ExplainAnswer {
                origin: default(),
                ..ExplainAnswer::new(ExplainVerdict::Denied, because)
            })
        } else if self.policy.standing.tier() == Tier::Full {
            Some(ExplainAnswer::allowed("in this tier this path is private to the sandbox", default()))
        } else {
            let because =
                "in this tier this path is allowed only where a container shares it with no other program";
            Some(ExplainAnswer { origin: default(), ..ExplainAnswer::new(ExplainVerdict::Depends, because) })
        }
    }

    fn is_device(&self) -> bool {
        let kind = fs::metadata(&self.real).map(|meta| meta.file_type());
        kind.is_ok_and(|kind| kind.is_char_device() || kind.is_block_device())
    }

    /// Returns the answer for a write in mode `ask`. Some writes need no question even in this mode.
    fn write_in_ask(&self) -> ExplainAnswer {
        let place =
            Place { path: self.real.clone(), grant: place_to_grant(self.real.as_path(), self.exists) };
        let grant = place.grant.as_ref().and_then(|place| flags::for_write(self.policy.standing, place));
        match judge::change(self.policy.standing, &[place]) {
            Judged::Ask(ask) => {
                let mode = self.policy.origins.of_key("mode");
                ExplainAnswer {
                    origin: Some(mode),
                    grant,
                    ..ExplainAnswer::new(
                        ExplainVerdict::Asked,
                        format!("mode {} asks for your approval: {}", self.policy.standing.mode(), ask.grant),
                    )
                }
            }
            Judged::Deny(denial) => self.denied(&denial),
            Judged::Run | Judged::Prepare => self.writable(),
        }
    }

    fn writable(&self) -> ExplainAnswer {
        let standing = self.policy.standing;
        let (because, origin) = match standing.write_root(&self.real) {
            Some(root) => self.policy.origins.of_write_root(root, standing),
            None => ("this path can be changed".to_owned(), None),
        };
        let relative = self.real.as_path().strip_prefix(standing.project());
        let is_watched = relative.is_ok_and(is_acted_on) && self.policy.setup.watch.is_some();
        let because = if is_watched {
            format!(
                "{because}; but changes that would make your own programs run something else are undone after the call"
            )
        } else {
            because
        };
        ExplainAnswer::allowed(because, origin)
    }

    /// Returns the denial that the gate derives from the kernel's error for this operation; `None` if it derives none.
    fn denial(&self, operation: Operation) -> Option<Denial> {
        let standing = self.policy.standing;
        let nearest = (!self.exists)
            .then(|| self.real.as_path().ancestors().skip(1).find(|above| above.exists()))
            .flatten();
        let access = FailedAccess {
            operation,
            path: self.real.clone(),
            // In full confinement the mounts deny the action before other rules.
            errno: if operation == Operation::Write && standing.tier() == Tier::Full {
                EROFS
            } else {
                EACCES
            },
            permitted_by_mode: true,
            nearest: nearest.map(Into::into),
        };
        let error = ToolError { kind: ToolErrorKind::Refused, message: String::new(), access: Some(access) };
        denied::explain(standing, &error)
    }

    fn denied(&self, denial: &Denial) -> ExplainAnswer {
        let rights = self.policy.standing.rights();
        let holding = |roots: &[WirePath]| roots.iter().find(|root| self.real.is_within(root)).cloned();
        let origins = &self.policy.origins;
        let (because, origin) = if let Some(root) = self.policy.standing.hidden_root(&self.real) {
            origins.of_hidden(root)
        } else if let Some(root) = holding(&rights.protected) {
            origins.of_protected(&root)
        } else if self.policy.standing.read_only().iter().any(|place| self.real.is_within(place)) {
            ("the path is in the private /tmp, but belongs to the host: read-only".to_owned(), None)
        } else if self.real.is_within(self.policy.standing.project()) && denial.grant.is_some() {
            let because = format!("in mode {} the project is read-only", self.policy.standing.mode());
            (because, Some(origins.of_key("mode")))
        } else if denial.missing_right.value().is_some_and(|right| right.reason().is_some()) {
            (denial.missing_right.to_string(), default())
        } else {
            ("the path is not in a writable directory".to_owned(), default())
        };
        ExplainAnswer::denied(denial, because, origin)
    }

    pub(super) fn connectable(&self) -> Option<ExplainAnswer> {
        let is_socket = fs::metadata(&self.real).is_ok_and(|meta| meta.file_type().is_socket());
        if !is_socket {
            return None;
        }
        let standing = self.policy.standing;
        if standing.tier() == Tier::FloorUnmediated {
            let because = "in this tier no unix socket can be reached by its path";
            return Some(ExplainAnswer {
                origin: default(),
                ..ExplainAnswer::new(ExplainVerdict::Denied, because)
            });
        }
        if standing.rights().allows_socket(&self.real) {
            let origin = self.policy.origins.of_socket(&self.real);
            return Some(ExplainAnswer::allowed("agents can reach this socket", origin));
        }
        let rule = "agents can reach only unix sockets in their writable directories";
        Some(if standing.allows_write(&self.real) {
            ExplainAnswer::allowed(rule, default())
        } else {
            let grant = sockets::flag(standing, &self.real);
            ExplainAnswer { grant, origin: default(), ..ExplainAnswer::new(ExplainVerdict::Denied, rule) }
        })
    }
}
