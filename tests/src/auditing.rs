//! The machine's auditing, for the tests of what is read from its records.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};
use nix::unistd::geteuid;

/// `AUDIT_GET` and `AUDIT_SET` of linux/audit.h.
const GET: u16 = 1000;
const SET: u16 = 1001;
/// The size of `struct audit_status`.
const STATUS: usize = 44;

/// The variable that allows a test to switch auditing on while it runs.
const ALLOWED: &str = "BAILIWICK_TEST_AUDIT";

/// Auditing is on until this is gone; then it is as it was.
#[derive(Debug)]
pub struct Auditing {
    /// Whether it was off.
    switched: bool,
    _alone: MutexGuard<'static, ()>,
}

impl Auditing {
    /// Sees to it that auditing is on; where it is not, and may not be switched on, that is said aloud.
    ///
    /// # Panics
    ///
    /// Where it may be switched on and the kernel refuses.
    pub fn on() -> Option<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        if !geteuid().is_root() {
            eprintln!("skipped: the machine's auditing is root's");
            return None;
        }
        match is_on() {
            Ok(true) => return Some(Self { switched: false, _alone: alone }),
            Ok(false) if std::env::var_os(ALLOWED).is_some_and(|value| value == "1") => {}
            _ => {
                eprintln!(
                    "skipped: the machine's auditing is off, and {ALLOWED}=1 does not allow to switch it on"
                );
                return None;
            }
        }
        switch(true).expect("auditing can be switched on");
        Some(Self { switched: true, _alone: alone })
    }
}

impl Drop for Auditing {
    fn drop(&mut self) {
        if self.switched {
            switch(false).expect("auditing can be switched off again");
        }
    }
}

fn is_on() -> Result<bool, Errno> {
    let answer = ask(GET, &[])?;
    let enabled = answer.get(20..24).and_then(|field| field.try_into().ok()).ok_or(Errno::EIO)?;
    Ok(u32::from_ne_bytes(enabled) != 0)
}

/// `AUDIT_STATUS_ENABLED`, and the value.
fn switch(on: bool) -> Result<(), Errno> {
    let mut status = [0; STATUS];
    status[..4].copy_from_slice(&1_u32.to_ne_bytes());
    status[4..8].copy_from_slice(&u32::from(on).to_ne_bytes());
    ask(SET, &status)?;
    if is_on()? == on { Ok(()) } else { Err(Errno::EPERM) }
}

/// Asks the kernel, and gives its first answer: to `AUDIT_SET` an acknowledgement.
fn ask(kind: u16, content: &[u8]) -> Result<Vec<u8>, Errno> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket: OwnedFd = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkAudit)?;
    let acknowledge = if kind == SET { libc::NLM_F_ACK } else { 0 };
    let flags = u16::try_from(libc::NLM_F_REQUEST | acknowledge).map_err(|_| Errno::EINVAL)?;
    let length = u32::try_from(16 + content.len()).map_err(|_| Errno::EINVAL)?;
    let header = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &flags.to_ne_bytes(), &[0; 8]].concat();
    let question = [&header, content].concat();
    sendto(socket.as_raw_fd(), &question, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    let mut answer = vec![0; 4 << 10];
    let length = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    answer.truncate(length);
    Ok(answer)
}
