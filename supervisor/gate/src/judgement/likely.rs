//! Denials in a command's output. Programs can print anything, so the output alone makes a denial only likely.
//!
//! A line counts only if it names a path outside of the agent's access that file modes would have permitted. If the
//! worker repeats the access and the kernel gives the same error, the denial is proved. If the kernel permits it, there
//! was no denial.

use complaint::{Line, REFUSALS, lines};
use ipc::confinement::Tier;
use ipc::denial::{Denial, Grade};
use ipc::named::NamedPlace;
use ipc::path::WirePath;
use ipc::tool::{Access, CommandExit, CommandResult, ShellExec};
use libc::{EACCES, EBUSY, EPERM, EROFS, EXDEV};

use super::StandingRights;
use super::message::DenialMessage;
use super::standing::{is_kernel_tree, no_set_id};
use super::succeeded::despite_success;
use super::unreached::{UNREACHED, UNREACHED_HOST, unreached};

/// Maximum number of denials reported for one command.
pub(super) const MAX_DENIALS: usize = 4;

impl StandingRights {
    /// The denials that a command most likely met, each once. Never names a path within the agent's access.
    pub fn likely(&self, call: &ShellExec, result: &CommandResult) -> Vec<Denial> {
        let succeeded = result.exit == CommandExit::Code(0);
        let mut found: Vec<Denial> = Vec::new();
        if succeeded && result.named.is_empty() {
            return found;
        }
        let text = [result.head.as_str(), result.tail.as_str()];
        let lines = || lines(text);
        let paths = lines().filter_map(|line| {
            let named = || self.refused(call, line, result);
            if succeeded {
                return named();
            }
            self.refused_call(line.text).or_else(|| self.refused_process(line, &result.named)).or_else(named)
        });
        // A command that declares only to read never has a network, so it lacks no right. A command that succeeded did not need one.
        let networked = !succeeded && call.access != Access::Read && self.rights.net.is_off();
        let addresses = lines().map(|line| line.text);
        let addresses =
            addresses.filter(|line| networked && self.denied_call(line).is_none()).filter_map(unreached);
        let addresses = addresses.map(|address| self.unreachable(&address, Grade::Likely));
        for denial in paths.chain(addresses) {
            if found.len() < MAX_DENIALS && !found.iter().any(|other| is_same(other, &denial)) {
                found.push(denial);
            }
        }
        if found.is_empty() && networked {
            found.extend(self.refused_socket(lines().map(|line| line.text)));
        }
        found
    }

    /// The denial of a line's first path outside of the agent's access.
    fn refused(&self, call: &ShellExec, line: Line<'_>, result: &CommandResult) -> Option<Denial> {
        let message = DenialMessage::new(call, line)?;
        // A worker could claim anything: a relative path is ignored.
        let places = || result.named.iter().filter(|place| place.path.as_path().is_absolute());
        let named = message.complaint().paths();
        let places: Vec<_> =
            named.iter().filter_map(|name| places().find(|place| place.named == **name)).collect();
        if message.errno() == EXDEV && !on_one_device(&places) {
            return None;
        }
        places.into_iter().find_map(|place| {
            let denial = self.missing_for(&message, place)?;
            let denial = self.graded(&message, place, denial)?;
            if result.exit == CommandExit::Code(0) {
                despite_success(&message, place, denial)
            } else {
                Some(denial)
            }
        })
    }

    /// Grades a denial by the kernel's answer to a repeated access. `None` if the kernel permitted it.
    fn graded(&self, message: &DenialMessage<'_>, place: &NamedPlace, denial: Denial) -> Option<Denial> {
        match message.answer(place, denial.operation) {
            Some(0) => None,
            Some(errno) if message.errno() == errno && self.refuses_opening(errno) => {
                Some(Denial { grade: Grade::Proved, errno: Some(errno), ..denial })
            }
            // In these directories the kernel has other reasons to deny. But for a device whose mode permits access, only the rules do.
            _ if is_kernel_tree(&place.path) && !self.closes_device(message, &place.path) => None,
            _ => Some(denial),
        }
    }

    fn closes_device(&self, message: &DenialMessage<'_>, path: &WirePath) -> bool {
        self.tier != Tier::Full && message.errno() == EACCES && path.is_within(&"/dev".into())
    }

    /// True if the sandbox gives this error when a file is opened.
    fn refuses_opening(&self, errno: i32) -> bool {
        errno == EACCES || (errno == EROFS && self.tier == Tier::Full)
    }

    fn missing_for(&self, message: &DenialMessage<'_>, place: &NamedPlace) -> Option<Denial> {
        let path = &place.path;
        if !self.allows_read(path) {
            return self.missing_of_hidden(message, place);
        }
        if message.errno() == EBUSY {
            return self.holds(path).then(|| self.immovable(path, Grade::Likely));
        }
        if self.allows_write(path) {
            // The owner of a file can change its mode, except for the set-id bits.
            let set_id = message.tells_of_mode() && message.errno() == EPERM && place.permits.own;
            return set_id.then(|| no_set_id(path, Grade::Likely));
        }
        let is_ours = !self.machine_refuses(path, message.errno())
            && message.is_about_writing(&place.named)
            && (!message.tells_of_owner() || self.machine.is_of_root())
            && message.is_permitted(place);
        is_ours.then(|| self.of_place(message, place))
    }

    /// The denial of access to a hidden path, which a mount without permissions covers in the full tier.
    fn missing_of_hidden(&self, message: &DenialMessage<'_>, place: &NamedPlace) -> Option<Denial> {
        let path = &place.path;
        let permits = place.permits;
        // Nearly every complaint about a hidden path is about reading, so a write must be named explicitly.
        if message.tells_of_writing(&place.named) {
            let permitted = message.is_permitted(place) || self.is_masked(path);
            return permitted.then(|| self.unwritable(path, Grade::Likely, None));
        }
        let permitted = permits.read || permits.execute || self.is_masked(path);
        (permitted && !self.machine.closes(path)).then(|| self.unreadable(path, Grade::Likely))
    }

    /// The denial with the path to grant: an existing one, or the parent directory if a name is removed.
    fn of_place(&self, message: &DenialMessage<'_>, place: &NamedPlace) -> Denial {
        let path = &place.path;
        let denial = Denial { errno: None, ..self.unwritable(path, Grade::Likely, Some(message.errno())) };
        let nearest = place.nearest.as_ref().filter(|nearest| path.is_within(nearest));
        let denial = self.granted_at(denial, path, nearest.unwrap_or(path));
        if message.tells_of_removal() { self.of_removal(denial, path) } else { denial }
    }

    /// True if the machine denies the access by itself. Landlock never gives EROFS.
    fn machine_refuses(&self, path: &WirePath, errno: i32) -> bool {
        let not_ours = errno == EROFS && self.tier != Tier::Full;
        not_ours || self.machine.is_read_only(path)
    }

    /// Changes a denial to the parent directory if a file is to be removed.
    fn of_removal(&self, denial: Denial, path: &WirePath) -> Denial {
        match path.as_path().parent().map(WirePath::from).filter(|parent| !self.allows_write(parent)) {
            Some(parent) if denial.grant.is_some() => {
                let missing_right = self.right_to_write(&parent).into();
                self.granted_at(Denial { missing_right, ..denial }, path, &parent)
            }
            _ => denial,
        }
    }

    /// Recognises a denied socket in an interpreter's stack trace, whose last line has only the error.
    fn refused_socket<'a>(&self, mut lines: impl Iterator<Item = &'a str>) -> Option<Denial> {
        let mut seen = false;
        let refused = lines.any(|line| {
            seen |= line.contains("socket");
            let lower = line.to_ascii_lowercase();
            // With a broker, sockets can be created, but not used.
            let is_ours = |errno| errno == EACCES || (errno == EPERM && self.tier == Tier::FloorUnmediated);
            let ends_so = |(phrase, errno): &(&str, _)| is_ours(*errno) && lower.trim_end().ends_with(phrase);
            seen && REFUSALS.iter().any(ends_so)
        });
        refused.then(|| self.unreachable("the network", Grade::Likely))
    }
}

pub fn declared_too_little(call: &ShellExec, result: &CommandResult) -> bool {
    let complains = |text: &str| {
        let lower = text.to_ascii_lowercase();
        let phrases = REFUSALS.iter().map(|(phrase, _)| phrase).chain(&UNREACHED).chain(&UNREACHED_HOST);
        phrases.into_iter().any(|phrase| lower.contains(phrase))
    };
    call.access == Access::Read
        && result.exit != CommandExit::Code(0)
        && (complains(&result.head) || complains(&result.tail))
}

/// True if one grant would prevent both denials, or if both are of the same object.
pub fn is_same(one: &Denial, other: &Denial) -> bool {
    let grant = one.grant.is_some() && one.grant == other.grant;
    one.operation == other.operation && (grant || one.object == other.object)
}

/// Between file systems nothing can be moved or linked, even without a sandbox.
fn on_one_device(places: &[&NamedPlace]) -> bool {
    places.windows(2).all(|pair| pair[0].device == pair[1].device) && places.len() > 1
}
