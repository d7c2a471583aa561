//! Actions through system call interfaces other than the usual one: that of i386, and `io_uring`.

use std::ffi::c_void;
use std::io;
use std::net::SocketAddr;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::libc::{self, c_int};

use super::sockets::internet;
use super::{Act, check};

pub(super) const ACTS: &[(&str, Act)] = &[
    #[cfg(target_arch = "x86_64")]
    ("int80-truncate", |a| {
        let path = low(a.path(0)?.as_bytes_with_nul())?;
        // On i386, open(2) has number 5 (arch/x86/entry/syscalls/syscall_32.tbl).
        answer(int80(5, [path, i64::from(libc::O_WRONLY | libc::O_TRUNC), 0]))
    }),
    #[cfg(target_arch = "x86_64")]
    ("int80-connect", |a| {
        // On i386, socket(2) has number 359, and connect(2) 362.
        let socket = int80(359, [libc::AF_INET.into(), libc::SOCK_STREAM.into(), 0]);
        answer(socket)?;
        let address = internet(a)?;
        answer(int80(362, [socket, low(&address.bytes)?, 16]))
    }),
    ("io-uring-truncate", |a| {
        let path = a.path(0)?;
        let flags = u32::try_from(libc::O_WRONLY | libc::O_TRUNC).map_err(io::Error::other)?;
        Ring::new()?.open(path.as_ptr() as u64, flags).map(|_| Vec::new())
    }),
    ("io-uring-connect", |a| {
        let SocketAddr::V4(_) = a.number(0)? else { return Err(io::Error::other("IPv4 only")) };
        let address = internet(a)?;
        let mut ring = Ring::new()?;
        let socket = ring.socket()?;
        ring.connect(socket, address.bytes.as_ptr() as u64).map(|_| Vec::new())
    }),
];

/// Converts a system call's raw result, where negative numbers are errors.
fn answer(answer: i64) -> io::Result<Vec<u8>> {
    if answer < 0 {
        return Err(io::Error::from_raw_os_error(i32::try_from(-answer).unwrap_or(-1)));
    }
    Ok(Vec::new())
}

/// Copies bytes to an address below four gigabytes, which a 32-bit pointer can hold.
#[cfg(target_arch = "x86_64")]
fn low(bytes: &[u8]) -> io::Result<i64> {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT);
    // SAFETY: a fresh mapping, larger than the bytes, which stays until this process ends.
    unsafe {
        let place = libc::mmap(ptr::null_mut(), 4096.max(bytes.len()), protection, flags, -1, 0);
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        ptr::copy_nonoverlapping(bytes.as_ptr(), place.cast(), bytes.len());
        Ok(place as i64)
    }
}

#[cfg(target_arch = "x86_64")]
fn int80(number: i64, [one, two, three]: [i64; 3]) -> i64 {
    // The result has 32 bits, in the lower half of the register.
    let mut result = number;
    // SAFETY: the entry of i386; its pointers lie in memory of this process. The compiler keeps rbx for itself, and the
    // kernel may clear r8 to r11 on this way.
    unsafe {
        std::arch::asm!(
            "xchg rbx, {one}", "int 0x80", "xchg rbx, {one}",
            one = inout(reg) one => _, inout("rax") result, in("rcx") two, in("rdx") three,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    let [a, b, c, d, ..] = result.to_le_bytes();
    i32::from_le_bytes([a, b, c, d]).into()
}

/// Output of `io_uring_setup(2)` as 32-bit words (`struct io_uring_params`).
type Parameters = [u32; 30];
const SUBMISSION_TAIL: usize = 11;
const SUBMISSION_MASK: usize = 12;
const SUBMISSION_ARRAY: usize = 16;
const COMPLETION_HEAD: usize = 20;
const COMPLETION_MASK: usize = 22;
const COMPLETIONS: usize = 25;
const ENTRIES: u32 = 8;

/// Submission queue entry (`struct io_uring_sqe`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Entry {
    operation: u8,
    flags: u8,
    priority: u16,
    descriptor: i32,
    offset: u64,
    address: u64,
    length: u32,
    operation_flags: u32,
    data: u64,
    rest: [u64; 3],
}

/// `io_uring` that carries out one operation at a time.
struct Ring {
    descriptor: c_int,
    parameters: Parameters,
    words: *mut u8,
    entries: *mut Entry,
}

impl Ring {
    fn new() -> io::Result<Self> {
        let mut parameters: Parameters = [0; 30];
        // SAFETY: the parameters are as large as the kernel's.
        let made =
            unsafe { check(libc::syscall(libc::SYS_io_uring_setup, ENTRIES, parameters.as_mut_ptr()))? };
        let descriptor = c_int::try_from(made).map_err(io::Error::other)?;
        // Both rings are one mapping since Linux 5.4 (IORING_FEAT_SINGLE_MMAP); a page is more than 8 entries need.
        let (ring, entries) = (map(descriptor, 0)?, map(descriptor, 0x1000_0000)?);
        Ok(Self { descriptor, parameters, words: ring.cast(), entries: entries.cast() })
    }

    fn word(&self, name: usize) -> *mut u32 {
        let offset = usize::try_from(self.parameters[name]).unwrap_or(0);
        // SAFETY: an offset that the kernel gave, into the mapping that it is for.
        unsafe { self.words.add(offset).cast() }
    }

    fn submit(&mut self, entry: Entry) -> io::Result<c_int> {
        // SAFETY: every pointer is the kernel's own offset into a mapping of this ring, which has one user.
        unsafe {
            let tail = self.word(SUBMISSION_TAIL);
            let slot = *tail & *self.word(SUBMISSION_MASK);
            *self.entries.add(slot as usize) = entry;
            *self.word(SUBMISSION_ARRAY).add(slot as usize) = slot;
            AtomicU32::from_ptr(tail).store(*tail + 1, Ordering::Release);
            let none = ptr::null::<c_void>();
            // The arguments are: submit 1 entry, wait for 1 completion, and IORING_ENTER_GETEVENTS (1).
            check(libc::syscall(libc::SYS_io_uring_enter, self.descriptor, 1, 1, 1, none, 0))?;
            let head = self.word(COMPLETION_HEAD);
            let at = (*head & *self.word(COMPLETION_MASK)) as usize;
            // `struct io_uring_cqe`: 64 bits of data, the result, flags.
            let result = *self.word(COMPLETIONS).add(at * 4 + 2).cast::<i32>();
            AtomicU32::from_ptr(head).store(*head + 1, Ordering::Release);
            answer(result.into()).map(|_| result)
        }
    }

    fn open(&mut self, path: u64, flags: u32) -> io::Result<c_int> {
        let here = libc::AT_FDCWD;
        let entry = Entry { operation: 18, descriptor: here, address: path, ..Entry::default() };
        self.submit(Entry { operation_flags: flags, ..entry })
    }

    fn socket(&mut self) -> io::Result<c_int> {
        self.submit(Entry { operation: 45, descriptor: libc::AF_INET, offset: 1, ..Entry::default() })
    }

    fn connect(&mut self, socket: c_int, address: u64) -> io::Result<c_int> {
        self.submit(Entry { operation: 16, descriptor: socket, offset: 16, address, ..Entry::default() })
    }
}

fn map(descriptor: c_int, offset: i64) -> io::Result<*mut c_void> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
    // SAFETY: a mapping of the ring, which stays until this process ends.
    let place = unsafe { libc::mmap(ptr::null_mut(), 1024, protection, flags, descriptor, offset) };
    if place == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(place) }
}
