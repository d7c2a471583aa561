//! Compares the access of a resumed session, as present flags and settings determine it, with that of its last run.

use ipc::id::AgentId;
use ipc::rights::{Execution, Network, RightsSummary};
use protocol::approval::ApprovalMode;
use protocol::event::{EventKind, NoticeCode, SessionEvent};

#[derive(Clone)]
struct FirstAccess {
    mode: ApprovalMode,
    rights: RightsSummary,
}

/// Returns the first agent's access after these events; `None` if it is not logged, or in another version's format.
fn access<'a>(events: impl Iterator<Item = &'a EventKind>) -> Option<FirstAccess> {
    events.fold(None, |access, kind| match kind {
        EventKind::SessionStarted(started) => {
            let rights = started.rights.value()?.clone();
            Some(FirstAccess { mode: started.mode, rights })
        }
        EventKind::RightsChanged(changed) => {
            let rights = changed.rights.value()?.clone();
            access.map(|access| FirstAccess { rights, ..access })
        }
        EventKind::ModeChanged { mode } => access.map(|access| FirstAccess { mode: *mode, ..access }),
        _ => access,
    })
}

/// Returns a notice about access that the session gained or lost since its last run; `None` if the access is the same.
pub(super) fn difference(before: &[SessionEvent], now: &[EventKind]) -> Option<EventKind> {
    let root = AgentId::root();
    let of_root = before.iter().filter(|event| event.agent == root).map(|event| &event.kind);
    let changed = changes(&access(of_root)?, &access(now.iter())?);
    let message = format!("access that has changed since the last run: {}", changed.join("; "));
    (!changed.is_empty()).then_some(EventKind::Notice { code: NoticeCode::Resumed, message })
}

fn changes(before: &FirstAccess, now: &FirstAccess) -> Vec<String> {
    let (was, is) = (&before.rights, &now.rights);
    let mut changes = Vec::new();
    changes.extend(without(&was.write, &is.write).map(|root| format!("{root} is no longer writable")));
    changes.extend(without(&is.write, &was.write).map(|root| format!("{root} is writable now")));
    changes
        .extend(without(&was.read, &is.read).map(|root| format!("{root} is no longer completely readable")));
    changes.extend(without(&is.read, &was.read).map(|root| format!("{root} is readable now")));
    if was.net != is.net {
        changes.push(match &is.net {
            Network::Off => "the network is off now".to_owned(),
            Network::On => "the network is on now".to_owned(),
            Network::Hosts(hosts) => format!("the network reaches only {hosts} now"),
        });
    } else if was.reach != is.reach {
        changes.push(
            "the addresses of this machine and the local network that can be reached have changed".to_owned(),
        );
    }
    changes.extend(
        without(&was.sockets, &is.sockets).map(|path| format!("the socket {path} can no longer be reached")),
    );
    changes.extend(
        without(&is.sockets, &was.sockets).map(|path| format!("the socket {path} can be reached now")),
    );
    if was.exec != is.exec {
        let allowed = if is.exec == Execution::Allowed { "allowed now" } else { "no longer allowed" };
        changes.push(format!("commands are {allowed}"));
    }
    if before.mode != now.mode {
        changes.push(format!("the mode is {} now, and was {} before", now.mode, before.mode));
    }
    changes.extend(count("hidden", was.hidden, is.hidden));
    changes.extend(count("protected", was.protected, is.protected));
    changes
}

fn without<'a, T: PartialEq>(roots: &'a [T], others: &'a [T]) -> impl Iterator<Item = &'a T> {
    roots.iter().filter(|root| !others.contains(root))
}

fn count(state: &str, was: u64, is: u64) -> Option<String> {
    let unit = if is == 1 { "path is" } else { "paths are" };
    (was != is).then(|| format!("{is} {unit} {state} now, and {was} before"))
}

#[cfg(test)]
mod tests {
    use ipc::rights::{NamedRoot, Reach};

    use super::*;

    fn given(mode: ApprovalMode, write: &[&str], net: Network, hidden: u64) -> FirstAccess {
        let path = |root: &&str| NamedRoot::Path((*root).into());
        let write = [NamedRoot::Temp].into_iter().chain(write.iter().map(path)).collect();
        let read = vec![NamedRoot::Path("/".into())];
        let (reach, exec, protected) = (Reach::default(), Execution::Allowed, 0);
        let sockets = Vec::new();
        FirstAccess {
            mode,
            rights: RightsSummary { write, read, net, reach, sockets, exec, hidden, protected },
        }
    }

    #[test]
    fn each_right_that_is_gone_or_new_is_told_and_nothing_else() {
        let before = given(ApprovalMode::Auto, &["/data", "/srv"], Network::On, 3);
        assert_eq!(changes(&before, &before), Vec::<String>::new());
        let now = given(ApprovalMode::Deny, &["/srv", "/new"], Network::Off, 1);
        insta::assert_snapshot!(changes(&before, &now).join("\n"), @r"
        /data is no longer writable
        /new is writable now
        the network is off now
        the mode is deny now, and was auto before
        1 path is hidden now, and 3 before
        ");
        let reach = Reach { host: true, ..Reach::default() };
        let nearer =
            FirstAccess { rights: RightsSummary { reach, ..before.rights.clone() }, ..before.clone() };
        assert_eq!(changes(&before, &nearer).len(), 1);
        let sockets = vec!["/run/s".into()];
        let served =
            FirstAccess { rights: RightsSummary { sockets, ..before.rights.clone() }, ..before.clone() };
        assert_eq!(changes(&before, &served), ["the socket /run/s can be reached now"]);
        assert_eq!(changes(&served, &before), ["the socket /run/s can no longer be reached"]);
    }
}
