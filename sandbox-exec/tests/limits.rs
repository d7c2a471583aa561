//! Tests of the limit on the number of processes of one program.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod common;

use common::order::{encoded, order, ordered};
use common::place::{Place, errors, in_tier_as_each_user, text};
use ipc::confinement::{Bounds, BrokerReport, Confinement, Tier};
use nix::libc;

/// Script that forks at most 200 processes, and prints their number and the error of the last fork.
const FORKS: &str = "import os\n\
    end, hold = os.pipe()\n\
    made, error = 0, 0\n\
    for _ in range(200):\n\
    \x20   try:\n\
    \x20       if os.fork() == 0:\n\
    \x20           os.close(hold); os.read(end, 1); os._exit(0)\n\
    \x20       made += 1\n\
    \x20   except OSError as failed:\n\
    \x20       error = failed.errno; break\n\
    print(made, error)";

fn forks(place: &Place, processes: Option<u64>) -> (u64, i32) {
    let bounds = Bounds { processes, memory: None };
    let rights = encoded(&Confinement { bounds, ..order(place) });
    let (output, reports) = ordered(place, &rights, &["/usr/bin/python3", "-c", FORKS]);
    assert!(output.status.success(), "{}{}", text(&output), errors(&output));
    let is_root = place.user().is_none() && nix::unistd::geteuid().is_root();
    let Some(BrokerReport::Started { ruleset, .. }) = reports.first() else { panic!("{reports:?}") };
    assert_eq!(ruleset.bounds, Bounds { processes: processes.filter(|_| !is_root), memory: None });
    let printed = text(&output);
    let (made, error) = printed.trim().split_once(' ').unwrap();
    (made.parse().unwrap(), error.parse().unwrap())
}

#[test]
fn a_fork_bomb_ends_at_the_bound_and_the_users_other_processes_do_not_count() {
    in_tier_as_each_user(Tier::Full, |place| {
        assert_eq!(forks(place, None), (200, 0));
        if place.user().is_none() && nix::unistd::geteuid().is_root() {
            // The kernel exempts uid 0, as SECURITY.md says.
            assert_eq!(forks(place, Some(32)), (200, 0));
            return;
        }
        // More than the bound, outside.
        let mut others: Vec<_> =
            (0..40).map(|_| place.command("sleep").arg("600").spawn().unwrap()).collect();
        let (made, error) = forks(place, Some(32));
        for other in &mut others {
            other.kill().unwrap();
            other.wait().unwrap();
        }
        assert_eq!(error, libc::EAGAIN, "{made}");
        assert!((8..32).contains(&made), "{made}");
    });
}
