//! Tests addresses of the machine itself, link-local and metadata addresses. Each needs a permission besides network
//! access.

use std::net::TcpListener;

use ipc::confinement::Tier;
use nix::libc::EACCES;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::geteuid;
use tests::{Finished, Programs, User, World, skip, tier};

use crate::attack::Tried;

/// Addresses of the machine, each with the values of `--reach` that permit it.
const ADDRESSES: [(&str, &[&str]); 4] = [
    ("127.0.0.1", &["host"]),
    ("10.9.8.7", &["host"]),
    ("169.254.7.7", &["host", "link-local"]),
    ("169.254.169.254", &["host", "link-local", "metadata"]),
];

/// True if a confined program with these values of `--reach` connects to the listener.
fn comes_through(world: &World, tier: Tier, listener: &TcpListener, reach: &[&str]) -> bool {
    let flags: Vec<_> =
        ["--net", "on"].into_iter().chain(reach.iter().flat_map(|to| ["--reach", to])).collect();
    let mut sandbox = world.sandbox(tier, &flags, Programs::get().path("probe"));
    let done = Finished::of(sandbox.args(["tcp", &listener.local_addr().unwrap().to_string()]));
    assert_eq!(done.code, 0, "{}", done.stderr);
    let (tried, reached) = (Tried::of(done.stdout.trim_end()), listener.accept().is_ok());
    assert!(tried.is(if reached { &[0] } else { &[EACCES] }), "{tier} {listener:?} {reach:?} {tried:?}");
    reached
}

fn check(tier: Tier, user: User) {
    let world = World::new(user);
    for (address, rights) in ADDRESSES {
        let listener = TcpListener::bind((address, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        assert!(!comes_through(&world, tier, &listener, &[]), "{tier} {user:?} {address}");
        assert!(comes_through(&world, tier, &listener, rights), "{tier} {user:?} {address} with {rights:?}");
        if *rights == ["host"] {
            assert!(
                !comes_through(&world, tier, &listener, &["link-local", "metadata"]),
                "{tier} {user:?} {address}"
            );
        }
    }
}

/// Runs in a new network namespace that has link-local and metadata addresses.
#[test]
fn addresses_of_the_machine_are_rights_of_their_own() {
    if !geteuid().is_root() {
        skip!("uid 0 with capabilities gives a network its addresses");
    }
    let everywhere = tier::everywhere();
    let apart = || {
        // Applies only to this thread and the processes that it starts.
        if unshare(CloneFlags::CLONE_NEWNET).is_err() {
            skip!("uid 0 with capabilities gives a network its addresses");
        }
        let world = World::new(User::Myself);
        let add = |address| format!("ip addr add {address}/32 dev lo");
        let acts = ADDRESSES[1..].iter().map(|(address, _)| add(address));
        let script =
            ["ip link set lo up".to_owned()].into_iter().chain(acts).collect::<Vec<_>>().join(" && ");
        let done = Finished::of(world.command("sh").args(["-c", &script]));
        assert_eq!(done.code, 0, "{}", done.stderr);
        for (user, tier) in everywhere {
            check(tier, user);
        }
    };
    std::thread::scope(|scope| scope.spawn(apart).join().unwrap());
}
