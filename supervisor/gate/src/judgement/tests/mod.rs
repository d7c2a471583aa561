mod advice;
mod change;
mod explain;
mod fetch;
mod judge;
mod likely;
mod network;
mod path_pattern;
mod plan;
mod proved;
mod sockets;
mod tiers;
mod tried;

use std::path::Path;

use complaint::named_in;
use ipc::named::{Asked, NamedPlace, Permits};
use ipc::path::WirePath;
use ipc::rights::{Network, Rights};
use ipc::tool::ShellExec;

use super::{ApprovalMode, StandingRights};

fn auto() -> StandingRights {
    StandingRights::new(
        Rights {
            read: vec!["/".into()],
            hidden: vec!["/home/me/.ssh".into(), "/etc/shadow".into()],
            write: vec!["/home/me/p".into(), "/tmp/bw-1".into()],
            protected: vec!["/home/me/p/.git/hooks".into()],
            ..Rights::default()
        },
        "/home/me/p".into(),
        Some("/tmp/bw-1".into()),
        ApprovalMode::Auto,
    )
}

fn deny() -> StandingRights {
    let mut standing = auto();
    standing.rights.write = vec!["/tmp/bw-1".into()];
    standing.mode = ApprovalMode::Deny;
    standing
}

fn online(mut standing: StandingRights) -> StandingRights {
    standing.rights.net = Network::On;
    standing
}

fn open_places(standing: &StandingRights, call: &ShellExec, output: &str) -> Vec<NamedPlace> {
    let cwd = call.cwd.as_ref().map_or_else(|| Path::new("").to_owned(), |cwd| cwd.as_path().to_owned());
    let directory = standing.project.as_path().join(cwd);
    let place = |named: &str| NamedPlace {
        path: lexical(&directory.join(named)),
        named: named.to_owned(),
        nearest: None,
        permits: Permits::ALL,
        device: 1,
        asked: Asked::default(),
    };
    named_in([output, ""]).into_iter().map(place).collect()
}

fn lexical(path: &Path) -> WirePath {
    let mut plain = std::path::PathBuf::new();
    for component in path.components() {
        match component {
            std::path::Component::ParentDir => drop(plain.pop()),
            std::path::Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain.into()
}
