//! Control data of a message (`cmsg(3)`). Its descriptors are translated from the caller's numbers to this process's.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc::{self, c_int};

use super::caller::Caller;
use crate::mediate::kernel::status::Status;

/// Size of `struct cmsghdr` in bytes (length, level, type). Items start at multiples of eight.
const ITEM: usize = 16;
/// Maximum number of descriptors of a message (`SCM_MAX_FD`, net/scm.h).
const MAX_DESCRIPTORS: usize = 253;

/// Control data with the descriptor numbers of this process.
#[derive(Debug, Default)]
pub(in crate::mediate) struct Control {
    pub(in crate::mediate) bytes: Vec<u8>,
    held: Vec<OwnedFd>,
}

impl Control {
    /// Translates control data. `allows` returns true if an item of this level and name may be sent.
    pub(in crate::mediate) fn carry(
        caller: &Caller<'_>,
        bytes: Vec<u8>,
        allows: impl Fn(c_int, c_int) -> bool,
    ) -> Result<Self, Errno> {
        let mut control = Self { bytes, held: vec![] };
        let mut at = 0;
        // CMSG_FIRSTHDR, CMSG_OK and CMSG_NXTHDR of linux/socket.h.
        while let Some(header) = control.bytes.get(at..).and_then(|rest| rest.first_chunk::<ITEM>()) {
            let item = Item::parse(*header);
            if item.length < ITEM || item.length > control.bytes.len() - at {
                return Err(Errno::EINVAL);
            }
            if !allows(item.level, item.kind) {
                return Err(Errno::EPERM);
            }
            control.carry_item(caller, item, at + ITEM)?;
            at += item.length.next_multiple_of(8);
        }
        Ok(control)
    }

    fn carry_item(&mut self, caller: &Caller<'_>, item: Item, start: usize) -> Result<(), Errno> {
        let end = start + item.length - ITEM;
        let Some(content) = self.bytes.get_mut(start..end) else {
            return Err(Errno::EINVAL);
        };
        match (item.level, item.kind) {
            (libc::SOL_SOCKET, libc::SCM_RIGHTS) => descriptors(caller, content, &mut self.held),
            (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) => credentials(caller, content),
            _ => Ok(()),
        }
    }
}

#[derive(Clone, Copy)]
struct Item {
    length: usize,
    level: c_int,
    kind: c_int,
}

impl Item {
    fn parse(header: [u8; ITEM]) -> Self {
        let (length, rest) = header.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let number = |at: usize| {
            rest.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |&n| c_int::from_ne_bytes(n))
        };
        Self { length: usize::from_ne_bytes(*length), level: number(0), kind: number(4) }
    }
}

fn descriptors(caller: &Caller<'_>, content: &mut [u8], held: &mut Vec<OwnedFd>) -> Result<(), Errno> {
    let numbers = content.as_chunks_mut::<4>().0;
    if held.len() + numbers.len() > MAX_DESCRIPTORS {
        return Err(Errno::EINVAL);
    }
    for number in numbers {
        let descriptor = caller.descriptor(c_int::from_ne_bytes(*number))?;
        *number = descriptor.as_raw_fd().to_ne_bytes();
        held.push(descriptor);
    }
    Ok(())
}

/// Translates `struct ucred`, which has to name the caller. The kernel accepts only the sender's pid: this process's.
fn credentials(caller: &Caller<'_>, content: &mut [u8]) -> Result<(), Errno> {
    let ([pid, uid, gid], []) = content.as_chunks_mut::<4>() else {
        return Err(Errno::EINVAL);
    };
    let status = Status::of(caller.thread())?;
    let own = status.process == c_int::from_ne_bytes(*pid)
        && status.uids.contains(&u32::from_ne_bytes(*uid))
        && status.gids.contains(&u32::from_ne_bytes(*gid));
    if !own {
        return Err(Errno::EPERM);
    }
    *pid = std::process::id().to_ne_bytes();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::caller::tests::with_own_calls;
    use super::*;

    fn item(count: usize) -> Vec<u8> {
        let numbers = [0; 4].repeat(count);
        let length = ITEM + numbers.len();
        let kind = [libc::SOL_SOCKET, libc::SCM_RIGHTS].map(c_int::to_ne_bytes).concat();
        let mut item = [&length.to_ne_bytes()[..], &kind, &numbers].concat();
        item.resize(length.next_multiple_of(8), 0);
        item
    }

    #[test]
    fn the_descriptors_of_all_items_are_bounded() {
        with_own_calls(|caller| {
            let carried = |counts: &[usize]| {
                let bytes = counts.iter().flat_map(|&count| item(count)).collect();
                Control::carry(caller, bytes, |_, _| true).map(|control| control.held.len())
            };
            assert_eq!(carried(&[3, 2]), Ok(5));
            assert_eq!(carried(&[MAX_DESCRIPTORS]), Ok(MAX_DESCRIPTORS));
            assert_eq!(carried(&[MAX_DESCRIPTORS, 1]), Err(Errno::EINVAL));
            assert_eq!(carried(&[MAX_DESCRIPTORS + 1]), Err(Errno::EINVAL));
        });
    }
}
