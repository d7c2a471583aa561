use ipc::confinement::Tier;
use ipc::path::WirePath;
use ipc::rights::{NamedRoot, RightsSummary};
use protocol::event::Recorded;

/// Words for the access of an agent that may not write to any directory.
pub(crate) const READ_ONLY: &str = "read-only";

pub(crate) const fn sandbox(tier: Option<Tier>) -> &'static str {
    match tier {
        None | Some(Tier::Full) => "",
        Some(Tier::Floor | Tier::FloorUnmediated) => "partly sandboxed",
    }
}

/// Returns the readable and writable directories in words, except the temporary directory and caches.
pub(crate) fn places(rights: &RightsSummary) -> String {
    without_private(rights).places().to_string()
}

/// Returns access to anything but directories and hosts in words, such as `2 sockets`; `None` if there is none.
pub(crate) fn opened(rights: &RightsSummary) -> Option<String> {
    let hidden = (rights.hidden == 0).then_some("nothing hidden".to_owned());
    let reach = rights.reach.to_string();
    let reach = (!rights.net.is_off() && !reach.is_empty()).then(|| reach.trim().to_owned());
    let sockets = match rights.sockets.len() {
        0 => None,
        1 => Some("1 socket".to_owned()),
        count => Some(format!("{count} sockets")),
    };
    let all: Vec<_> = [hidden, reach, sockets].into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(" · "))
}

/// Returns an agent's access in words, such as `read-only · network off · secrets hidden`. Omits the temporary
/// directory and caches.
pub(crate) fn plain(rights: &RightsSummary) -> String {
    without_private(rights).to_string()
}

fn without_private(rights: &RightsSummary) -> RightsSummary {
    let counts = |root: &&NamedRoot| !matches!(root, NamedRoot::Temp | NamedRoot::Caches);
    let write = rights.write.iter().filter(counts).cloned().collect();
    RightsSummary { write, ..rights.clone() }
}

/// Returns an agent's access in few words, with paths relative to the project, such as `writes src, net on`.
pub(crate) fn brief(rights: &RightsSummary, project: &WirePath) -> String {
    let name = |root: &NamedRoot| match root {
        NamedRoot::Project => Some("the project".to_owned()),
        NamedRoot::Temp | NamedRoot::Caches | NamedRoot::System => None,
        NamedRoot::Path(path) => {
            let inside = path.as_path().strip_prefix(project.as_path());
            Some(inside.map_or_else(|_| path.to_string(), |inside| inside.display().to_string()))
        }
    };
    let roots: Vec<_> = rights.write.iter().filter_map(name).collect();
    let mut net = if rights.net.is_off() { String::new() } else { format!(", net {}", rights.net) };
    if !rights.sockets.is_empty() {
        let unit = if rights.sockets.len() == 1 { "socket" } else { "sockets" };
        net = format!("{net}, {} {unit}", rights.sockets.len());
    }
    if roots.is_empty() { format!("read-only{net}") } else { format!("writes {}{net}", roots.join(", ")) }
}

/// Returns the access in words. If the log's format is older, returns the text as it is in the log.
pub(crate) fn recorded(rights: &Recorded<RightsSummary>) -> String {
    rights.value().map_or_else(|| rights.to_string(), plain)
}

#[cfg(test)]
mod tests {
    use ipc::rights::{Execution, Hosts, Network, Reach};

    use super::*;

    #[test]
    fn rights_read_as_plain_words() {
        use NamedRoot::{Caches, Path, Project, Temp};
        let plain = |write: &[NamedRoot], net, hidden, exec| {
            let reach = Reach { host: true, ..Reach::default() };
            plain(&RightsSummary {
                write: write.to_vec(),
                net,
                reach,
                hidden,
                exec,
                read: vec![Path("/".into())],
                ..RightsSummary::default()
            })
        };
        let (off, on) = (Network::Off, Network::On);
        let (srv, blank) = (Path("/srv".into()), Path("/a b".into()));
        let allowed = Execution::Allowed;
        assert_eq!(
            plain(&[Temp, Caches], off.clone(), 2, allowed),
            "read-only · network off · secrets hidden"
        );
        assert_eq!(
            plain(&[Project, Temp], on, 1, allowed),
            "writes in the project · network on +host · secrets hidden"
        );
        assert_eq!(
            plain(&[Project, Temp, srv.clone(), blank], off.clone(), 0, Execution::Denied),
            r#"writes in the project, /srv, "/a b" · network off · nothing hidden · no commands"#
        );
        assert_eq!(plain(&[srv], off.clone(), 1, allowed), "writes in /srv · network off · secrets hidden");
        assert_eq!(plain(&[], off, 0, allowed), "read-only · network off · nothing hidden");
        let hosts = Network::Hosts(Hosts::new(["a.example".parse().unwrap()]).unwrap());
        assert_eq!(
            plain(&[], hosts, 0, allowed),
            "read-only · network on for a.example +host · nothing hidden"
        );
    }
}
