//! System V objects, POSIX objects and keyrings of the host: creates those of a victim, and attacks them.

use std::ffi::{CStr, CString};
use std::io;
use std::ptr;

use nix::libc::{self, c_int, c_long, key_t, uid_t};

use super::victim::SECRET;
use super::{Act, check, descriptor, done};

const ROOM: usize = 64;

/// System V message (`struct msgbuf`, msgop(2)).
#[repr(C)]
struct Message {
    kind: c_long,
    text: [u8; ROOM],
}

impl Message {
    fn new(text: &str) -> Self {
        let mut message = Self { kind: 1, text: [0; ROOM] };
        message.text[..text.len()].copy_from_slice(text.as_bytes());
        message
    }
}

pub(super) const ACTS: &[(&str, Act)] = &[
    ("shm-read", |a| Ok(attach(a.number(0)?)?.to_vec())),
    ("shm-write", |a| {
        attach(a.number(0)?)?[0] = b'X';
        Ok(Vec::new())
    }),
    ("shm-remove", |a| {
        // SAFETY: integers.
        done(unsafe { libc::shmctl(a.number(0)?, libc::IPC_RMID, ptr::null_mut()) })
    }),
    ("message-receive", |a| {
        let mut message = Message::new("");
        // SAFETY: the message has that much room.
        let received =
            unsafe { libc::msgrcv(a.number(0)?, (&raw mut message).cast(), ROOM, 0, libc::IPC_NOWAIT) };
        check(received as i64).map(|_| message.text.to_vec())
    }),
    ("message-send", |a| {
        let message = Message::new("sent by the adversary");
        // SAFETY: the message is that long.
        done(unsafe { libc::msgsnd(a.number(0)?, (&raw const message).cast(), 8, libc::IPC_NOWAIT) })
    }),
    ("semaphore-set", |a| {
        // SAFETY: integers.
        done(unsafe { libc::semctl(a.number(0)?, 0, libc::SETVAL, 9) })
    }),
    ("queue-send", |a| {
        let name = a.path(0)?;
        // SAFETY: a C string; four bytes to send.
        unsafe {
            let queue = libc::mq_open(name.as_ptr(), libc::O_WRONLY | libc::O_NONBLOCK);
            check(queue)?;
            done(libc::mq_send(queue, c"sent".as_ptr(), 4, 0))
        }
    }),
    ("queue-remove", |a| {
        let name = a.path(0)?;
        // SAFETY: a C string.
        done(unsafe { libc::mq_unlink(name.as_ptr()) })
    }),
    ("key-read", |a| {
        let name = a.path(0)?;
        let mut secret = vec![0_u8; ROOM];
        // SAFETY: C strings; the secret has that much room.
        let length = unsafe {
            let key = check(libc::syscall(
                libc::SYS_keyctl,
                KEYCTL_SEARCH,
                USER_KEYRING,
                c"user".as_ptr(),
                name.as_ptr(),
                0,
            ))?;
            check(libc::syscall(libc::SYS_keyctl, KEYCTL_READ, key, secret.as_mut_ptr(), ROOM))?
        };
        secret.truncate(usize::try_from(length).unwrap_or(0));
        Ok(secret)
    }),
];

const USER_KEYRING: c_int = -4;
const KEYCTL_SEARCH: c_int = 10;
const KEYCTL_READ: c_int = 11;
const KEYCTL_SET_TIMEOUT: c_int = 15;

/// Stores the secret in this user's keyring for ten minutes. Replaces an earlier one, because a user may have only 200
/// keys.
pub(super) fn keep_key(name: &CStr) -> io::Result<()> {
    // SAFETY: C strings, and a secret that is that long.
    unsafe {
        let key = check(libc::syscall(
            libc::SYS_add_key,
            c"user".as_ptr(),
            name.as_ptr(),
            SECRET.as_ptr(),
            SECRET.len(),
            USER_KEYRING,
        ))?;
        check(libc::syscall(libc::SYS_keyctl, KEYCTL_SET_TIMEOUT, key, 600)).map(drop)
    }
}

fn attach(segment: c_int) -> io::Result<&'static mut [u8]> {
    // SAFETY: the kernel chooses the place; every segment here has at least this size, and stays attached until this
    // process ends.
    unsafe {
        let place = libc::shmat(segment, ptr::null(), 0);
        if place.addr() == usize::MAX {
            return Err(io::Error::last_os_error());
        }
        Ok(std::slice::from_raw_parts_mut(place.cast(), ROOM))
    }
}

/// Makes another user the owner of a segment. The owner may remove the segment (shmctl(2), `IPC_SET`).
fn give(segment: c_int, owner: uid_t) -> io::Result<()> {
    // SAFETY: a structure that the kernel fills in and takes back.
    unsafe {
        let mut facts: libc::shmid_ds = std::mem::zeroed();
        check(libc::shmctl(segment, libc::IPC_STAT, &raw mut facts))?;
        facts.shm_perm.uid = owner;
        check(libc::shmctl(segment, libc::IPC_SET, &raw mut facts)).map(drop)
    }
}

#[derive(Debug)]
pub struct Objects {
    /// Id of a shared memory segment with the secret.
    pub segment: c_int,
    /// Id of a message queue that contains the secret.
    pub messages: c_int,
    /// Id of a semaphore with the value 3.
    pub semaphore: c_int,
    /// Name of an empty POSIX message queue.
    pub queue: String,
    opened: c_int,
}

impl Objects {
    /// Creates the objects. `owner` becomes the owner of the segment and of the POSIX queue, which gets the name
    /// `name`.
    pub fn new(name: &str, owner: uid_t) -> io::Result<Self> {
        let queue = format!("/{name}");
        let c_queue = CString::new(queue.as_str())?;
        let (private, mode): (key_t, c_int) = (libc::IPC_PRIVATE, 0o666 | libc::IPC_CREAT);
        let message = Message::new(SECRET);
        // SAFETY: integers, C strings, and a message that is as long as it says; the umask comes back.
        unsafe {
            let segment = descriptor(libc::shmget(private, 4096, mode))?;
            let messages = descriptor(libc::msgget(private, mode))?;
            let semaphore = descriptor(libc::semget(private, 1, mode))?;
            check(libc::msgsnd(messages, (&raw const message).cast(), SECRET.len(), 0))?;
            check(libc::semctl(semaphore, 0, libc::SETVAL, 3))?;
            let flags = libc::O_CREAT | libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC;
            let none = ptr::null::<libc::mq_attr>();
            let opened = descriptor(libc::mq_open(c_queue.as_ptr(), flags, 0o600, none))?;
            // Without another owner there is nothing to change, and the kernel may deny a group to which this user does
            // not belong.
            if owner != libc::geteuid() {
                check(libc::fchown(opened, owner, owner))?;
                give(segment, owner)?;
            }
            attach(segment)?[..SECRET.len()].copy_from_slice(SECRET.as_bytes());
            Ok(Self { segment, messages, semaphore, queue, opened })
        }
    }

    /// Returns the change that an attacker has made to the objects; `None` without a change.
    pub fn harm(&self) -> Option<&'static str> {
        // SAFETY: structures of zeros for the kernel to fill in; integers.
        unsafe {
            let mut memory: libc::shmid_ds = std::mem::zeroed();
            let mut messages: libc::msqid_ds = std::mem::zeroed();
            let mut queue: libc::mq_attr = std::mem::zeroed();
            libc::mq_getattr(self.opened, &raw mut queue);
            // Marked for removal while attached: SHM_DEST; linux/shm.h.
            let removed = libc::shmctl(self.segment, libc::IPC_STAT, &raw mut memory) < 0
                || u32::from(memory.shm_perm.mode) & 0o1000 != 0;
            libc::msgctl(self.messages, libc::IPC_STAT, &raw mut messages);
            [
                (
                    removed || attach(self.segment).is_ok_and(|place| place[0] == b'X'),
                    "shared memory changed",
                ),
                (messages.msg_qnum != 1, "a message queue changed"),
                (libc::semctl(self.semaphore, 0, libc::GETVAL) != 3, "a semaphore changed"),
                (queue.mq_curmsgs != 0, "a POSIX message queue was written"),
                (self.is_gone(), "a POSIX message queue was removed"),
            ]
            .into_iter()
            .find_map(|(harmed, what)| harmed.then_some(what))
        }
    }

    fn is_gone(&self) -> bool {
        let Ok(name) = CString::new(self.queue.as_str()) else { return false };
        // SAFETY: a C string; what is opened is closed.
        unsafe {
            let opened = libc::mq_open(name.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            if opened >= 0 {
                libc::close(opened);
            }
            opened < 0
        }
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // SAFETY: integers and a C string.
        unsafe {
            libc::shmctl(self.segment, libc::IPC_RMID, ptr::null_mut());
            libc::msgctl(self.messages, libc::IPC_RMID, ptr::null_mut());
            libc::semctl(self.semaphore, 0, libc::IPC_RMID);
            libc::close(self.opened);
            if let Ok(name) = CString::new(self.queue.as_str()) {
                libc::mq_unlink(name.as_ptr());
            }
        }
    }
}
