//! Tests the floor tier on older kernels. There, seccomp and the broker deny what Landlock cannot.

use ipc::confinement::Tier;
use nix::libc::{EACCES, EBADF, EPERM};
use sandbox_exec::system::landlock_abi;
use tests::{Finished, Programs, User, World};

use crate::attack::{Attack, Group, Held, Place, Tried};
use crate::run::{Acts, Way, line};
use crate::victim::Victim;
use crate::{check_denials, fail_with, held};

/// Groups of attacks that depend on newer Landlock ABIs: renames between directories (ABI 2), truncation (3), TCP ports
/// (4), ioctl on devices (5), and scopes for signals and abstract sockets (6).
const GROUPS: &[Group] = &[
    Group::WriteOutside,
    Group::Processes,
    Group::Ipc,
    Group::UnixSockets,
    Group::Network,
    Group::Terminal,
    Group::Information,
];

// First Landlock ABIs with truncation, and with scopes.
const TRUNCATION: u32 = 3;
const SCOPES: u32 = 6;

/// Attacks that another layer may deny, with other errors: truncation below ABI 3 by seccomp, signals by the broker.
const OTHERWISE: &[(&str, &[i32])] = &[("truncat", &[EACCES, EPERM]), ("procfd-signal", &[EPERM, EBADF])];

fn as_held_there(row: Attack) -> Attack {
    let otherwise = OTHERWISE.iter().find(|(act, _)| row.act.starts_with(act));
    Attack { floor: otherwise.map_or(row.floor, |&(_, errnos)| Held::With(errnos)), ..row }
}

/// True if the running kernel is so old that another layer than Landlock denies the attack, and the error is that
/// layer's.
pub(crate) fn is_held_otherwise(row: &Attack, tier: Tier, tried: &Tried) -> bool {
    let abi = landlock_abi().unwrap_or(0);
    let is_old =
        |act: &str| if act == "truncat" { abi < TRUNCATION } else { abi < SCOPES && tier != Tier::Full };
    OTHERWISE.iter().any(|(act, errnos)| row.act.starts_with(act) && is_old(act) && tried.is(errnos))
}

/// Makes the attempts in one process under `sandbox-exec`, limited to this Landlock ABI.
fn under(abi: &str, place: &Place, acts: Acts) -> Vec<Tried> {
    let (world, programs) = (place.world, Programs::get());
    let mut command = world.command(programs.path("sandbox-exec"));
    command.args(["--tier", "floor", "--landlock-abi", abi, "--net", place.net, "-C"]);
    command.arg(world.project()).arg("--write").arg(world.project()).args(Victim::hide(world));
    let done = Finished::of(command.arg("--").arg(programs.path("probe")).args(line(acts)));
    assert_eq!(done.code, 0, "ABI {abi}, {place}: {}", done.stderr);
    Tried::all(&done.stdout)
}

fn check(way: Way) {
    let mut failures = vec![];
    for user in User::all() {
        for net in ["off", "on"] {
            let world = World::new(user);
            let place = Place { world: &world, tier: Tier::Floor, net };
            let rows = held(&place).into_iter().filter(|row| GROUPS.contains(&row.group));
            let rows: Vec<_> = rows.map(as_held_there).collect();
            assert!(rows.len() > 100, "{}", rows.len());
            failures.extend(check_denials(&place, &rows, way));
        }
    }
    fail_with(&failures);
}

#[test]
fn every_attack_is_denied_with_the_first_landlock() {
    check(|place, acts| under("1", place, acts));
}

#[test]
fn every_attack_is_denied_before_landlock_knew_ports() {
    check(|place, acts| under("3", place, acts));
}

#[test]
fn every_attack_is_denied_before_landlock_had_scopes() {
    check(|place, acts| under("5", place, acts));
}
