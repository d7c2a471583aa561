//! What the gate claims, and above all what it does not.

mod change;
mod explain;
mod judge;
mod likely;
mod path_pattern;
mod tiers;

use ipc::rights::{Network, Rights};

use super::{ApprovalMode, Standing};

/// Rights as a run in `auto` mode has them.
fn auto() -> Standing {
    Standing::new(
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

/// Rights as a run in `deny` mode has them.
fn deny() -> Standing {
    let mut standing = auto();
    standing.rights.write = vec!["/tmp/bw-1".into()];
    standing.mode = ApprovalMode::Deny;
    standing
}

fn online(mut standing: Standing) -> Standing {
    standing.rights.net = Network::On;
    standing
}
