//! System V memory, semaphores and queues (`sysvipc(7)`) of programs without an ipc namespace. The programs of a
//! sandbox can use only objects that they created.
//!
//! The broker creates each object without a key, and keeps the keys itself. Calls on such an object are left to the
//! kernel: the object's id is in a register, which no other thread can change. An id is reused only after its object is
//! removed, which only the broker does. (A process outside of the same user may remove an object as well; 65,536
//! objects later its id may be reused.)
//!
//! Visible to a program: the creator is the broker, an object's key is reported as 0, a removed object cannot be
//! attached again while in use, and objects of others cannot be listed.

#![expect(unsafe_code, reason = "System V calls take structures by address, and unions")]

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ipc::refusal::{Act, Target};
use nix::errno::Errno;
use nix::libc::{self, c_int, c_long, key_t};

use super::act::MediatedCall;
use super::call::address::integer;
use super::call::listener::NotificationAnswer;
use super::refusals::Denied;

/// Maximum number of objects of a sandbox. The host's limit is for all users together.
const MOST: usize = 256;

/// Flag that some C libraries add to a command: `IPC_64` (`linux/ipc.h`).
const VERSION: c_int = 0x100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ObjectKind {
    Memory,
    Semaphores,
    Queue,
}

#[derive(Debug, Default)]
pub(super) struct Objects {
    own: Mutex<BTreeMap<(ObjectKind, c_int), key_t>>,
}

#[derive(Clone, Copy, Debug)]
struct Wanted {
    key: key_t,
    size: usize,
    flags: c_int,
}

pub(super) fn use_object(call: &MediatedCall<'_, '_>, number: c_long) -> Result<NotificationAnswer, Errno> {
    let objects = call.shared.objects.as_ref().ok_or(Errno::ENOSYS)?;
    let [first, second, third, ..] = call.arguments;
    let (id, key) = (integer(first), integer(first));
    let sized =
        |size: u64| Wanted { key, size: usize::try_from(size).unwrap_or(usize::MAX), flags: integer(third) };
    call.caller.still_waits()?;
    let answer = match number {
        libc::SYS_shmget => objects.obtain(ObjectKind::Memory, sized(second)),
        libc::SYS_semget => objects.obtain(ObjectKind::Semaphores, sized(second & 0xffff_ffff)),
        libc::SYS_msgget => {
            objects.obtain(ObjectKind::Queue, Wanted { key, size: 0, flags: integer(second) })
        }
        libc::SYS_shmctl => objects.control(ObjectKind::Memory, id, integer(second)),
        libc::SYS_semctl => objects.control(ObjectKind::Semaphores, id, integer(third)),
        libc::SYS_msgctl => objects.control(ObjectKind::Queue, id, integer(second)),
        libc::SYS_shmat => objects.use_own(ObjectKind::Memory, id),
        libc::SYS_semop | libc::SYS_semtimedop => objects.use_own(ObjectKind::Semaphores, id),
        libc::SYS_msgsnd | libc::SYS_msgrcv => objects.use_own(ObjectKind::Queue, id),
        _ => Err(Errno::ENOSYS.into()),
    };
    answer.map_err(|hindrance| call.refused(Act::Use, hindrance))
}

impl Objects {
    pub(super) fn remove_all(&self) {
        for (kind, id) in std::mem::take(&mut *self.own()).into_keys() {
            // A process outside may have removed the object first.
            let _ = kind.remove(id);
        }
    }

    fn obtain(&self, kind: ObjectKind, wanted: Wanted) -> Result<NotificationAnswer, Denied> {
        let Wanted { key, size, flags } = wanted;
        let mut own = self.own();
        if let Some(id) = named(&own, kind, key) {
            match kind.size(id) {
                // The object was removed from outside.
                Err(Errno::EINVAL | Errno::EIDRM) => drop(own.remove(&(kind, id))),
                _ if flags & libc::IPC_CREAT != 0 && flags & libc::IPC_EXCL != 0 => {
                    return Err(Errno::EEXIST.into());
                }
                Ok(existing) if existing < size => return Err(Errno::EINVAL.into()),
                // A process that may not look at the object may still know its number.
                _ => return Ok(NotificationAnswer::Value(id.into())),
            }
        }
        if key != libc::IPC_PRIVATE && flags & libc::IPC_CREAT == 0 {
            // Error of the kernel for an unknown key.
            let errno = Errno::ENOENT;
            return Err(kind.find(key).map_or(errno.into(), |id| kind.anothers(id, errno)));
        }
        if own.len() >= MOST {
            return Err(Errno::ENOSPC.into());
        }
        let id = kind.make(size, flags)?;
        own.insert((kind, id), key);
        Ok(NotificationAnswer::Value(id.into()))
    }

    /// Performs a command on an object, or leaves it to the kernel. Commands that list all objects are denied.
    fn control(&self, kind: ObjectKind, id: c_int, command: c_int) -> Result<NotificationAnswer, Denied> {
        match command & !VERSION {
            libc::IPC_RMID => {
                let mut own = self.own();
                own.get(&(kind, id)).ok_or_else(|| kind.anothers(id, Errno::EINVAL))?;
                kind.remove(id)?;
                own.remove(&(kind, id));
                Ok(NotificationAnswer::Value(0))
            }
            command
                if command == libc::IPC_SET
                    || command == libc::IPC_STAT
                    || kind.commands().contains(&command) =>
            {
                self.use_own(kind, id)
            }
            _ => Err(Denied::Rules { target: Target::Object(kind.all().into()), errno: Errno::EPERM }),
        }
    }

    fn use_own(&self, kind: ObjectKind, id: c_int) -> Result<NotificationAnswer, Denied> {
        // Error of the kernel for an unknown number.
        self.own()
            .get(&(kind, id))
            .map(|_| NotificationAnswer::GoesOn)
            .ok_or_else(|| kind.anothers(id, Errno::EINVAL))
    }

    fn own(&self) -> MutexGuard<'_, BTreeMap<(ObjectKind, c_int), key_t>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the id of the object with a key. `None` for `IPC_PRIVATE`, with which each request creates a new object.
fn named(own: &BTreeMap<(ObjectKind, c_int), key_t>, kind: ObjectKind, key: key_t) -> Option<c_int> {
    let named = own.iter().find(|((of, _), named)| (*of, **named) == (kind, key))?;
    (key != libc::IPC_PRIVATE).then_some(named.0.1)
}

impl ObjectKind {
    /// Returns the commands that are allowed besides those for reading, changing the owner and removing.
    const fn commands(self) -> &'static [c_int] {
        match self {
            Self::Memory => &[libc::SHM_LOCK, libc::SHM_UNLOCK],
            Self::Semaphores => &[
                libc::GETPID,
                libc::GETVAL,
                libc::GETALL,
                libc::GETNCNT,
                libc::GETZCNT,
                libc::SETVAL,
                libc::SETALL,
            ],
            Self::Queue => &[],
        }
    }

    const fn all(self) -> &'static str {
        match self {
            Self::Memory => "the machine's shared memory segments",
            Self::Semaphores => "the machine's semaphore sets",
            Self::Queue => "the machine's message queues",
        }
    }

    /// Returns the denial of an object that this sandbox did not create. It counts as a denial by the rules only if the
    /// object exists and plain permissions allow access.
    fn anothers(self, id: c_int, errno: Errno) -> Denied {
        let name = match self {
            Self::Memory => "shared memory segment",
            Self::Semaphores => "semaphore set",
            Self::Queue => "message queue",
        };
        match self.size(id) {
            Ok(_) => Denied::Rules { target: Target::Object(format!("{name} {id}")), errno },
            Err(_) => errno.into(),
        }
    }

    /// Returns the id of the machine's object with a key; `None` if there is none or plain permissions deny it.
    fn find(self, key: key_t) -> Option<c_int> {
        // SAFETY: integers.
        let id = unsafe {
            match self {
                Self::Memory => libc::shmget(key, 0, 0),
                Self::Semaphores => libc::semget(key, 0, 0),
                Self::Queue => libc::msgget(key, 0),
            }
        };
        Errno::result(id).ok()
    }

    fn make(self, size: usize, flags: c_int) -> Result<c_int, Errno> {
        let private = libc::IPC_PRIVATE;
        // SAFETY: integers.
        Errno::result(unsafe {
            match self {
                Self::Memory => libc::shmget(private, size, flags),
                Self::Semaphores => libc::semget(private, c_int::try_from(size).unwrap_or(c_int::MAX), flags),
                Self::Queue => libc::msgget(private, flags),
            }
        })
    }

    fn remove(self, id: c_int) -> Result<(), Errno> {
        // SAFETY: this command reads and writes no structure.
        let removed = unsafe {
            match self {
                Self::Memory => libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()),
                Self::Semaphores => libc::semctl(id, 0, libc::IPC_RMID),
                Self::Queue => libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut()),
            }
        };
        Errno::result(removed).map(drop)
    }

    fn size(self, id: c_int) -> Result<usize, Errno> {
        // SAFETY: structures of integers, which the kernel fills in.
        unsafe {
            match self {
                Self::Memory => {
                    let mut status: libc::shmid_ds = std::mem::zeroed();
                    Errno::result(libc::shmctl(id, libc::IPC_STAT, &raw mut status))?;
                    Ok(status.shm_segsz)
                }
                Self::Semaphores => {
                    let mut status: Semaphores = std::mem::zeroed();
                    Errno::result(libc::semctl(id, 0, libc::IPC_STAT, &raw mut status))?;
                    Ok(usize::try_from(status.count).unwrap_or(usize::MAX))
                }
                Self::Queue => {
                    let mut status: libc::msqid_ds = std::mem::zeroed();
                    Errno::result(libc::msgctl(id, libc::IPC_STAT, &raw mut status))?;
                    // No size is requested for this kind.
                    Ok(usize::MAX)
                }
            }
        }
    }
}

/// `struct semid64_ds`, which not every C library declares (asm/sembuf.h).
#[repr(C)]
struct Semaphores {
    _permissions: libc::ipc_perm,
    _times: [u64; if cfg!(target_arch = "x86_64") { 4 } else { 2 }],
    count: libc::c_ulong,
    _unused: [libc::c_ulong; 2],
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAKE: c_int = libc::IPC_CREAT | 0o600;

    fn number(answer: Result<NotificationAnswer, Denied>) -> Result<c_int, Errno> {
        answer.map_err(|hindrance| hindrance.errno()).map(|answer| match answer {
            NotificationAnswer::Value(value) => c_int::try_from(value).unwrap(),
            other => panic!("{other:?}"),
        })
    }

    fn obtain(
        objects: &Objects,
        kind: ObjectKind,
        (key, size, flags): (key_t, usize, c_int),
    ) -> Result<c_int, Errno> {
        number(objects.obtain(kind, Wanted { key, size, flags }))
    }

    #[test]
    fn keys_are_the_sandboxs_own() {
        let (one, other) = (Objects::default(), Objects::default());
        for kind in [ObjectKind::Memory, ObjectKind::Semaphores, ObjectKind::Queue] {
            assert_eq!(obtain(&one, kind, (7, 1, 0o600)), Err(Errno::ENOENT));
            let made = obtain(&one, kind, (7, 1, MAKE)).unwrap();
            assert_eq!(obtain(&one, kind, (7, 1, MAKE)), Ok(made));
            assert_eq!(obtain(&one, kind, (7, 0, 0)), Ok(made));
            assert_eq!(obtain(&one, kind, (7, 1, MAKE | libc::IPC_EXCL)), Err(Errno::EEXIST));
            assert_ne!(obtain(&other, kind, (7, 1, MAKE | libc::IPC_EXCL)), Ok(made));
            assert_ne!(obtain(&one, kind, (0, 1, MAKE)), obtain(&one, kind, (0, 1, MAKE)));
            number(one.control(kind, made, libc::IPC_RMID)).unwrap();
            assert_eq!(obtain(&one, kind, (7, 1, 0)), Err(Errno::ENOENT));
        }
        let small = obtain(&one, ObjectKind::Memory, (9, 100, MAKE)).unwrap();
        assert_eq!(obtain(&one, ObjectKind::Memory, (9, 101, 0)), Err(Errno::EINVAL));
        ObjectKind::Memory.remove(small).unwrap();
        assert_eq!(obtain(&one, ObjectKind::Memory, (9, 100, 0)), Err(Errno::ENOENT), "somebody removed it");
        one.remove_all();
        other.remove_all();
    }

    #[test]
    fn objects_of_others_are_neither_used_nor_removed_nor_listed() {
        let objects = Objects::default();
        for kind in [ObjectKind::Memory, ObjectKind::Semaphores, ObjectKind::Queue] {
            let own = obtain(&objects, kind, (0, 1, MAKE)).unwrap();
            let foreign = kind.make(1, MAKE).unwrap();
            assert!(matches!(objects.use_own(kind, own), Ok(NotificationAnswer::GoesOn)));
            assert!(matches!(
                objects.control(kind, own, libc::IPC_STAT | VERSION),
                Ok(NotificationAnswer::GoesOn)
            ));
            assert!(objects.use_own(kind, foreign).is_err());
            for command in 0..30 {
                assert!(objects.control(kind, foreign, command).is_err(), "{kind:?} {command}");
            }
            // IPC_INFO, and the commands that take an index into the list: MSG_STAT, SHM_STAT, SEM_STAT and
            // similar.
            let listing: &[c_int] = match kind {
                ObjectKind::Memory => &[3, 13, 14, 15],
                ObjectKind::Semaphores => &[3, 18, 19, 20],
                ObjectKind::Queue => &[3, 11, 12, 13],
            };
            for &command in listing {
                assert!(
                    matches!(
                        objects.control(kind, own, command),
                        Err(Denied::Rules { errno: Errno::EPERM, .. })
                    ),
                    "{kind:?} {command}"
                );
            }
            assert_eq!(kind.size(foreign).map(drop), Ok(()), "it is still there");
            kind.remove(foreign).unwrap();
            objects.remove_all();
            assert!(kind.size(own).is_err(), "nothing is left");
        }
    }

    /// Tests that ids and keys are kept apart by kind. The kernel starts the ids of all kinds at the same value.
    #[test]
    fn a_number_or_a_key_of_one_kind_opens_none_of_another() {
        let kinds = [ObjectKind::Memory, ObjectKind::Semaphores, ObjectKind::Queue];
        for kind in kinds {
            let objects = Objects::default();
            let own = obtain(&objects, kind, (7, 1, MAKE)).unwrap();
            for other in kinds.into_iter().filter(|&other| other != kind) {
                assert!(objects.use_own(other, own).is_err(), "{kind:?} {other:?}");
                assert!(objects.control(other, own, libc::IPC_RMID).is_err(), "{kind:?} {other:?}");
                assert_eq!(obtain(&objects, other, (7, 1, 0)), Err(Errno::ENOENT), "{kind:?} {other:?}");
            }
            assert!(objects.use_own(kind, own).is_ok());
            objects.remove_all();
        }
    }

    #[test]
    fn a_sandbox_has_so_many() {
        let objects = Objects::default();
        for _ in 0..MOST {
            obtain(&objects, ObjectKind::Queue, (0, 0, MAKE)).unwrap();
        }
        assert_eq!(obtain(&objects, ObjectKind::Queue, (0, 0, MAKE)), Err(Errno::ENOSPC));
        objects.remove_all();
    }
}
