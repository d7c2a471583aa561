//! Command-line flags of `bailiwick` that give more access. Hints name them.

use std::ffi::OsStr;
use std::path::Path;

use ipc::confinement::Tier;
use ipc::missing_right::ClosedBy;
use ipc::path::WirePath;
use ipc::rights::{Grant, Network};
use protocol::shell_word::shell_word;

use super::StandingRights;
use super::standing::{is_git_config, is_kernel_tree};
use crate::protected::is_acted_on;

/// Shared memory, which is below `/dev` but not a device.
const MEMORY: &str = "/dev/shm";

/// Returns the flags that give a session this access from its start. `None` if flags cannot give all of it.
pub fn for_grant(standing: &StandingRights, grant: &Grant) -> Option<String> {
    let mut flags: Vec<_> =
        grant.write.iter().map(|path| for_write(standing, path)).collect::<Option<_>>()?;
    // An approval without additional access is for the action itself, which mode `auto` allows.
    if grant.is_empty() {
        flags.push("--mode auto".to_owned());
    }
    if grant.net.hosts().is_some() {
        flags.push(for_network(standing, &grant.net));
    }
    let reach = [
        (grant.net.reaches_out() && grant.net.hosts().is_none(), "--net on"),
        (grant.reach.host, "--reach host"),
        (grant.reach.lan, "--reach lan"),
        (grant.reach.link_local, "--reach link-local"),
        (grant.reach.metadata, "--reach metadata"),
    ];
    flags.extend(reach.iter().filter(|(is_asked, _)| *is_asked).map(|(_, flag)| (*flag).to_owned()));
    flags.dedup();
    Some(flags.join(" "))
}

/// Returns the flag that allows exactly this write. `None` for hidden and protected paths, kernel file systems (except
/// shared memory) and `/`. A git configuration is protected, but has a flag.
pub fn for_write(standing: &StandingRights, path: &WirePath) -> Option<String> {
    if standing.is_fixed {
        return None;
    }
    let is_config = standing.rights.protected.contains(path) || standing.is_closed_by_mode(path);
    if is_config && is_git_config(path) {
        return Some(for_git_config(standing, path));
    }
    let is_protected = standing.rights.protected.iter().any(|root| path.is_within(root));
    if is_protected && standing.hidden_root(path).is_none() {
        return for_setting(standing, path);
    }
    let is_memory = path.is_within(&MEMORY.into());
    let is_closed = standing.hidden_root(path).is_some() || is_protected || standing.is_in_levels(path);
    if is_closed || (is_kernel_tree(path) && !is_memory) {
        return None;
    }
    // The kernel's name for objects without a path: `anon_inode:[eventfd]`, `pipe:[17]`.
    let is_no_path = !path.as_path().is_absolute();
    if is_no_path || path.as_path() == Path::new("/") || wide_place(standing, path).is_some() {
        return None;
    }
    if standing.is_closed_by_mode(path) {
        let is_kept = standing.is_kept_in_every_mode(path);
        return if is_kept { for_setting(standing, path) } else { Some("--mode auto".to_owned()) };
    }
    Some(format!("--write {}", shell_word(path.as_path())))
}

/// Returns the flag that adds a network. The floor tier without a broker cannot limit the network to listed hosts.
pub(super) fn for_network(standing: &StandingRights, more: &Network) -> String {
    match standing.tier {
        Tier::Full | Tier::Floor => format!("--net {}", standing.rights.net.join(more).flag()),
        Tier::FloorUnmediated => "--net on".to_owned(),
    }
}

/// Returns the flag that makes a git configuration writable. A linked worktree has it outside of the project.
pub(super) fn for_git_config(standing: &StandingRights, config: &WirePath) -> String {
    match config.as_path().strip_prefix(&standing.project) {
        Ok(inside) => format!("--write {}", shell_word(inside)),
        Err(_) => format!("--write {}", shell_word(config.as_path())),
    }
}

/// Returns the flag that makes another program's setting writable. `None` for git's hooks and Bailiwick's settings.
pub(super) fn for_setting(standing: &StandingRights, path: &WirePath) -> Option<String> {
    let place = standing.rights.protected.iter().find(|place| path.is_within(place));
    let inside = place.unwrap_or(path).as_path().strip_prefix(&standing.project).ok()?;
    let is_closed = |name: &OsStr| name == ".git" || name.as_encoded_bytes().starts_with(b".bailiwick");
    (is_acted_on(inside) && !inside.iter().any(is_closed)).then(|| format!("--write {}", shell_word(inside)))
}

/// Returns the rule that forbids hints to make a directory writable; `None` if a hint may. The user's home contains
/// files that run later, and a directory above the project is more than needed.
pub(super) fn wide_place(standing: &StandingRights, place: &WirePath) -> Option<ClosedBy> {
    let holds = |path: &WirePath| path.is_within(place);
    let is_root = place.as_path() == Path::new("/");
    if standing.is_fixed || is_root || standing.is_closed_by_mode(place) {
        None
    } else if standing.home.as_ref() == Some(place) {
        Some(ClosedBy::Home)
    } else if standing.home.as_ref().is_some_and(holds)
        || (holds(&standing.project) && *place != standing.project)
    {
        Some(ClosedBy::Wide)
    } else {
        None
    }
}

pub(super) fn offered(standing: &StandingRights, flag: &str) -> Option<String> {
    (!standing.is_fixed).then(|| flag.to_owned())
}
