//! Status of a thread (`proc_pid_status(5)`).

use nix::errno::Errno;
use nix::libc::{mode_t, pid_t};

use super::text;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::mediate) struct Status {
    /// The kernel's letter for the thread's state; 0 if unknown.
    pub(in crate::mediate) state: u8,
    pub(in crate::mediate) process: pid_t,
    /// Process id of the parent, which will reap the process.
    pub(in crate::mediate) parent: pid_t,
    pub(in crate::mediate) group: pid_t,
    pub(in crate::mediate) threads: usize,
    pub(in crate::mediate) uids: [u32; 3],
    pub(in crate::mediate) gids: [u32; 3],
    pub(in crate::mediate) umask: mode_t,
    pub(in crate::mediate) pending: u64,
    pub(in crate::mediate) shared_pending: u64,
    pub(in crate::mediate) blocked: u64,
}

impl Status {
    pub(in crate::mediate) fn of(thread: pid_t) -> Result<Self, Errno> {
        text::read_string(&format!("/proc/{thread}/status"))
            .map(|text| Self::parse(&text))
            .map_err(|_| Errno::ESRCH)
    }

    fn parse(text: &str) -> Self {
        let mut status = Self::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once(":\t")) {
            let set = || u64::from_str_radix(value, 16).unwrap_or(0);
            match name {
                "State" => status.state = value.bytes().next().unwrap_or(0),
                "Tgid" => status.process = value.parse().unwrap_or(0),
                "PPid" => status.parent = value.parse().unwrap_or(0),
                // By its numbers in this pid namespace and those beneath it.
                "NSpgid" => status.group = three(value)[0].cast_signed(),
                "Threads" => status.threads = value.parse().unwrap_or(0),
                "Uid" => status.uids = three(value),
                "Gid" => status.gids = three(value),
                "Umask" => status.umask = mode_t::from_str_radix(value, 8).unwrap_or(0o777),
                "SigPnd" => status.pending = set(),
                "ShdPnd" => status.shared_pending = set(),
                "SigBlk" => status.blocked = set(),
                _ => {}
            }
        }
        status
    }
}

fn three(value: &str) -> [u32; 3] {
    let mut numbers = value.split('\t').map(|number| number.parse().unwrap_or(u32::MAX));
    std::array::from_fn(|_| numbers.next().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_this_thread() {
        let status = Status::of(nix::unistd::gettid().as_raw()).unwrap();
        assert_eq!(status.process, std::process::id().cast_signed());
        assert_eq!(status.parent, nix::unistd::getppid().as_raw());
        assert_eq!(status.group, nix::unistd::getpgrp().as_raw());
        assert!(status.threads >= 1);
        assert_eq!(status.uids[1], nix::unistd::geteuid().as_raw());
        assert_eq!(status.gids[0], nix::unistd::getgid().as_raw());
        assert_eq!(Status::of(pid_t::MAX), Err(Errno::ESRCH));
    }

    /// The kernel cuts a thread's name after fifteen bytes, even within a character: a `status` may be no UTF-8.
    #[test]
    fn of_a_thread_whose_name_is_no_text() {
        let status = std::thread::spawn(|| {
            crate::system::set_name(c"caf\xc3\xa9 \xc3");
            Status::of(nix::unistd::gettid().as_raw())
        });
        assert_eq!(status.join().unwrap().map(|status| status.process), Ok(std::process::id().cast_signed()));
    }

    #[test]
    fn signals_are_hexadecimal() {
        let text = "Name:\tTgid:\nUmask:\t0027\nState:\tT (stopped)\nTgid:\t7\nPPid:\t5\nNSpgid:\t6\t1\nThreads:\t3\nUid:\t1\t2\t3\t4\n\
                    SigPnd:\t0000000000000200\nShdPnd:\t0000000000000002\nSigBlk:\t8000000000000000\n";
        let expected = Status {
            state: b'T',
            process: 7,
            parent: 5,
            group: 6,
            threads: 3,
            uids: [1, 2, 3],
            umask: 0o27,
            pending: 0x200,
            shared_pending: 2,
            blocked: 1 << 63,
            ..Status::default()
        };
        assert_eq!(Status::parse(text), expected);
    }
}
