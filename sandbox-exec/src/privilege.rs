use std::io;

use caps::errors::CapsError;
use caps::{CapSet, Capability};
use ipc::confinement::Identity;
use nix::libc::{self, c_ulong};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{Gid, Uid, getegid, geteuid, getgid, getuid, setgroups, setresgid, setresuid};

use crate::system;

/// Securebits that are set and locked (linux/securebits.h, `capabilities(7)`). With them, no capabilities come from
/// executing as uid 0, from changing the uid, or from ambient capabilities.
const SECUREBITS: c_ulong = (libc::SECBIT_NOROOT
    | libc::SECBIT_NOROOT_LOCKED
    | libc::SECBIT_NO_SETUID_FIXUP
    | libc::SECBIT_NO_SETUID_FIXUP_LOCKED
    | libc::SECBIT_KEEP_CAPS_LOCKED
    | libc::SECBIT_NO_CAP_AMBIENT_RAISE
    | libc::SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED) as c_ulong;

/// Number of bits of a capability set, beyond the last capability of any kernel.
const CAPABILITY_BITS: c_ulong = 64;

#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum PrivilegeError {
    #[error("cannot {act}: {source}")]
    System { act: &'static str, source: io::Error },
    #[error("cannot {act}: {source}")]
    Capabilities { act: &'static str, source: CapsError },
    #[error("the {0} capability set is not empty after it was cleared")]
    Left(&'static str),
}

/// Switches to another user and to one group, for good. Root does this for another user's project.
///
/// After a change of user, a process is not dumpable, so that its `/proc/self` belongs to root. This function makes it
/// dumpable again, since it has no secret yet. The change also resets the parent-death signal. The bounding set is
/// emptied before the change, since that needs root.
pub fn become_user(Identity { uid, gid }: Identity) -> io::Result<()> {
    let (user, group) = (Uid::from_raw(uid), Gid::from_raw(gid));
    if (geteuid(), getuid(), getegid(), getgid()) == (user, user, group, group) && !user.is_root() {
        return Ok(());
    }
    drop_bounds().map_err(io::Error::other)?;
    setgroups(&[])?;
    setresgid(group, group, group)?;
    setresuid(user, user, user)?;
    system::make_dumpable()
}

/// Limits core dumps to no bytes: a dump would contain data that the program read.
pub fn no_core_dumps() -> io::Result<()> {
    Ok(setrlimit(Resource::RLIMIT_CORE, 0, 0)?)
}

/// First Linux that counts processes by user namespace (`user_namespaces(7)`). Older ones count all of the user's.
const COUNTS_BY_NAMESPACE: (u32, u32) = (5, 14);

/// Limits the number of processes and threads in this user namespace. Returns the limit. `None` if it has no effect:
/// older kernels count all processes of the user, and the kernel exempts root.
pub(crate) fn limit_processes(most: u64) -> io::Result<Option<u64>> {
    if system::release().is_none_or(|release| release < COUNTS_BY_NAMESPACE) {
        return Ok(None);
    }
    let (_, hard) = getrlimit(Resource::RLIMIT_NPROC)?;
    let most = most.min(hard);
    setrlimit(Resource::RLIMIT_NPROC, most, most)?;
    Ok(Some(most).filter(|_| !getuid().is_root()))
}

/// Empties every capability set and locks the securebits.
///
/// Emptying the bounding set and locking the securebits need `CAP_SETPCAP`. Without it both are left out: a plain
/// user's process has no capability, and with `no_new_privs` gains none.
pub fn drop_capabilities() -> Result<(), PrivilegeError> {
    if drop_bounds()? {
        system::set_securebits(SECUREBITS)
            .map_err(|source| PrivilegeError::System { act: "lock the securebits", source })?;
    }
    clear_capabilities()
}

/// Empties the capability sets of this thread. Other threads keep theirs.
pub fn clear_capabilities() -> Result<(), PrivilegeError> {
    let capabilities = |act| move |source| PrivilegeError::Capabilities { act, source };
    caps::clear(None, CapSet::Ambient).map_err(capabilities("clear a capability set"))?;
    // An ambient capability is permitted and inheritable too (capabilities(7)), so these sets suffice. To
    // read the ambient set takes a call for each capability.
    for (set, name) in [
        (CapSet::Inheritable, "inheritable"),
        (CapSet::Effective, "effective"),
        (CapSet::Permitted, "permitted"),
    ] {
        caps::clear(None, set).map_err(capabilities("clear a capability set"))?;
        let left = caps::read(None, set).map_err(capabilities("read a capability set"))?;
        if !left.is_empty() {
            return Err(PrivilegeError::Left(name));
        }
    }
    Ok(())
}

pub fn without_effect<T>(act: impl FnOnce() -> T) -> Result<T, PrivilegeError> {
    let capabilities = |act| move |source| PrivilegeError::Capabilities { act, source };
    let effective = caps::read(None, CapSet::Effective).map_err(capabilities("read the capabilities"))?;
    caps::clear(None, CapSet::Effective).map_err(capabilities("clear a capability set"))?;
    let done = act();
    caps::set(None, CapSet::Effective, &effective).map_err(capabilities("restore a capability set"))?;
    Ok(done)
}

/// Empties the bounding set, which child processes inherit. False if this process may not empty it.
pub fn drop_bounds() -> Result<bool, PrivilegeError> {
    let may = caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)
        .map_err(|source| PrivilegeError::Capabilities { act: "read the capabilities", source })?;
    if may {
        drop_bounding_set()?;
    }
    Ok(may)
}

/// Drops every capability from the bounding set. A drop copies the process's credentials, so each capability is checked
/// first. The loop is over numbers, since the kernel may have capabilities that no library names.
fn drop_bounding_set() -> Result<(), PrivilegeError> {
    for capability in 0..CAPABILITY_BITS {
        if !system::may_bound(capability) {
            continue;
        }
        match system::drop_bound(capability) {
            // Beyond the last one that this kernel has.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return Ok(()),
            Err(source) => {
                return Err(PrivilegeError::System { act: "empty the bounding set", source });
            }
            Ok(()) => {}
        }
    }
    Ok(())
}
