//! What the rules refuse is told to whoever started the programs, call by call.
//!
//! Nothing waits for that: a report is written only where the pipe has room for the whole of it, and is else counted, and told with
//! the next one. What is the same as before is told again when it has happened twice, four times, eight times as often. So what is
//! remembered is bounded, and so is what a flood of refused calls writes.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipc::confinement::BrokerReport;
use ipc::frame;
use ipc::id::Generation;
use ipc::refusal::{Act, MAX_REFUSAL, Refusal, Target};
use nix::errno::Errno;
use nix::libc::pid_t;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::listeners::Listeners;
use super::status::Status;
use super::text;

/// How many children of the program are remembered, and how many refusals beneath each.
const MOST_ORIGINS: usize = 32;
const MOST_EACH: usize = 32;
/// The most ancestors that are looked at.
const MOST_ANCESTORS: usize = 256;
/// The most bytes of a name: what leaves room in a report for everything else.
const MOST_BYTES: usize = 2048;

/// What this process calls itself, which the program is still called while it tries what must be refused.
const OWN_NAME: &str = "sandbox-exec";

/// Why a call fails that is judged here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hindrance {
    /// The rules do not allow it; without them it would have gone on.
    Rules {
        /// What it was about.
        target: Target,
        /// What the caller is told.
        errno: Errno,
    },
    /// Anything else: it would have failed without the rules too, or nobody knows.
    Other(Errno),
}

impl Hindrance {
    /// What the caller is told.
    pub(super) fn errno(&self) -> Errno {
        match self {
            Self::Rules { errno, .. } | Self::Other(errno) => *errno,
        }
    }
}

impl From<Errno> for Hindrance {
    fn from(errno: Errno) -> Self {
        Self::Other(errno)
    }
}

/// Tells of refusals.
#[derive(Debug)]
pub struct Refusals(Option<Telling>);

#[derive(Debug)]
struct Telling {
    program: pid_t,
    tries: Arc<AtomicBool>,
    /// The unix sockets of the host.
    listeners: Listeners,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    pipe: File,
    origins: VecDeque<Origin>,
}

/// A child of the program, with all its descendants.
#[derive(Debug)]
struct Origin {
    process: pid_t,
    /// When it began, in ticks: its number can be another's later.
    began: u64,
    refused: Vec<Refusal>,
    untold: u64,
}

impl Refusals {
    /// Tells nobody.
    pub fn untold() -> Self {
        Self(None)
    }

    /// Of this program, a child of this process, to the reader of a pipe, if there is one. For as long as it is known that it only
    /// `tries` what must be refused, it is not asked what it calls itself.
    pub(crate) fn told(
        program: pid_t,
        tries: Arc<AtomicBool>,
        telling: Option<(OwnedFd, Listeners)>,
    ) -> Self {
        let state = |pipe| Mutex::new(State { pipe: File::from(pipe), origins: VecDeque::new() });
        Self(telling.map(|(pipe, listeners)| Telling { program, tries, listeners, state: state(pipe) }))
    }

    /// Tells of what the rules do not allow a thread, whose call must wait until then; what that is told itself.
    pub(super) fn tell(&self, thread: pid_t, act: Act, hindrance: Hindrance) -> Errno {
        let errno = hindrance.errno();
        if let Hindrance::Rules { target, .. } = hindrance
            && let Some(telling) = self.0.as_ref().filter(|telling| !telling.only_tries(thread))
        {
            telling.tell(thread, act, target, errno);
        }
        errno
    }
}

impl Telling {
    fn tell(&self, thread: pid_t, act: Act, target: Target, errno: Errno) {
        if let Target::Socket(path) = &target
            && self.listeners.answers(path.as_path()) == Some(false)
        {
            // Without the rules it would have failed as well.
            return;
        }
        let Some((caller, process)) = self.lineage(thread) else { return };
        let program = name(caller);
        let Some(began) = began(process) else { return };
        let refusal = Refusal {
            process: process.cast_unsigned(),
            program,
            act,
            object: target,
            errno: errno as i32,
            count: 1,
            untold: 0,
        };
        let mut state = self.lock();
        let State { pipe, origins } = &mut *state;
        origin(origins, process, began).count(refusal, |refusal| write(pipe, refusal));
    }

    /// Whether this thread will be the program, and tries what must be refused.
    fn only_tries(&self, thread: pid_t) -> bool {
        thread == self.program && (self.tries.load(Ordering::Acquire) || name(thread) == OWN_NAME)
    }

    /// The process of a thread, and the child of the program that it descends from, if it is not the program itself. What
    /// this process has adopted descends from nobody else any more.
    fn lineage(&self, thread: pid_t) -> Option<(pid_t, pid_t)> {
        let own = std::process::id().cast_signed();
        let mut status = Status::of(thread).ok()?;
        let caller = status.process;
        for _ in 0..MOST_ANCESTORS {
            if status.process == self.program || [self.program, own].contains(&status.parent) {
                return Some((caller, status.process));
            }
            status = Status::of(status.parent).ok()?;
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Origin {
    /// Counts a refusal, and tells of it if that says something new.
    fn count(&mut self, refusal: Refusal, tell: impl FnOnce(&Refusal) -> bool) {
        let same = |known: &Refusal| (known.act, &known.object) == (refusal.act, &refusal.object);
        if let Some(known) = self.refused.iter_mut().find(|known| same(known)) {
            known.count = known.count.saturating_add(1);
            if known.count.is_power_of_two() {
                tell(&Refusal { untold: self.untold, ..known.clone() });
            }
            return;
        }
        let new = Refusal { untold: self.untold, ..refusal };
        // What was not told is new the next time too.
        if self.refused.len() < MOST_EACH && tell(&new) {
            self.refused.push(new);
        } else {
            self.untold = self.untold.saturating_add(1);
        }
    }
}

/// Finds a child of the program among those remembered; the oldest of too many is forgotten.
fn origin(origins: &mut VecDeque<Origin>, process: pid_t, began: u64) -> &mut Origin {
    let known = origins.iter().position(|origin| (origin.process, origin.began) == (process, began));
    let at = known.unwrap_or_else(|| {
        if origins.len() >= MOST_ORIGINS {
            origins.pop_front();
        }
        origins.push_back(Origin { process, began, refused: vec![], untold: 0 });
        origins.len() - 1
    });
    &mut origins[at]
}

/// Writes a report, if it fits into the pipe now; whether it was written.
///
/// A pipe that is ready takes so many bytes at once and whole (pipe(7), `pipe_poll` of fs/pipe.c). This process writes one report at a
/// time, and whoever else writes there says that the program was started, when little was said before, and that it has ended.
/// The pipe is not made nonblocking for it: that would be so for all who have it.
fn write(pipe: &mut File, refusal: &Refusal) -> bool {
    if size(&refusal.object) > MOST_BYTES {
        return false;
    }
    let Ok(body) = frame::seal(Generation::default(), &BrokerReport::Refused(refusal.clone())) else {
        return false;
    };
    let Ok(length) = u32::try_from(body.len()) else { return false };
    let bytes = [&length.to_le_bytes()[..], &body].concat();
    bytes.len() <= MAX_REFUSAL && has_room(pipe) && pipe.write_all(&bytes).is_ok()
}

/// How many bytes its name has, where that is anybody's choice.
fn size(target: &Target) -> usize {
    match target {
        Target::Socket(path) | Target::File(path) => path.as_bytes().len(),
        Target::Abstract(name) => name.len(),
        Target::Object(phrase) => phrase.len(),
        Target::Internet(..) | Target::Process(_) => 0,
    }
}

fn has_room(pipe: &File) -> bool {
    let mut polled = [PollFd::new(pipe.as_fd(), PollFlags::POLLOUT)];
    let ready = poll(&mut polled, PollTimeout::ZERO);
    let events = polled[0].revents().unwrap_or(PollFlags::empty());
    ready.is_ok() && events == PollFlags::POLLOUT
}

/// What a process calls itself (`proc_pid_comm(5)`).
fn name(process: pid_t) -> String {
    let name = text::read(&format!("/proc/{process}/comm")).unwrap_or_default();
    let name = name.strip_suffix(b"\n").unwrap_or(&name);
    String::from_utf8_lossy(name).into_owned()
}

/// When a process began: the twenty-second field (`proc_pid_stat(5)`), counted behind its name, which may hold anything.
fn began(process: pid_t) -> Option<u64> {
    let stat = text::read_string(&format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::SocketAddr;
    use std::time::Instant;

    use ipc::path::WirePath;
    use ipc::place::Place;
    use nix::fcntl::OFlag;
    use nix::unistd::{getppid, gettid, pipe2};

    use super::*;

    fn to(port: u16) -> Hindrance {
        let target = Target::Internet(SocketAddr::from(([192, 0, 2, 1], port)), Place::Elsewhere);
        Hindrance::Rules { target, errno: Errno::ENETUNREACH }
    }

    /// Tells of this test's own thread, as if its process were a child of the program's; and what was told.
    struct Told {
        refusals: Refusals,
        read: File,
    }

    impl Told {
        fn new() -> Self {
            let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).unwrap();
            Self {
                refusals: Refusals::told(
                    getppid().as_raw(),
                    Arc::default(),
                    Some((write, Listeners::here())),
                ),
                read: read.into(),
            }
        }

        fn tell(&self, hindrance: Hindrance) -> Errno {
            self.refusals.tell(gettid().as_raw(), Act::Connect, hindrance)
        }

        fn next(&mut self) -> Option<Refusal> {
            let mut length = [0; 4];
            self.read.read_exact(&mut length).ok()?;
            let mut body = vec![0; u32::from_le_bytes(length) as usize];
            self.read.read_exact(&mut body).unwrap();
            match frame::open(Generation::default(), &body).unwrap() {
                BrokerReport::Refused(refusal) => Some(refusal),
                other => panic!("{other:?}"),
            }
        }

        fn counts(&mut self) -> Vec<(u64, u64)> {
            std::iter::from_fn(|| self.next()).map(|refusal| (refusal.count, refusal.untold)).collect()
        }
    }

    #[test]
    fn the_same_is_told_when_it_has_happened_twice_as_often() {
        let mut told = Told::new();
        for _ in 0..9 {
            assert_eq!(told.tell(to(1)), Errno::ENETUNREACH);
        }
        assert_eq!(told.counts(), [(1, 0), (2, 0), (4, 0), (8, 0)]);
        assert_eq!(told.tell(Hindrance::Other(Errno::ENOENT)), Errno::ENOENT);
        assert_eq!(told.counts(), [], "nobody refused it");
    }

    #[test]
    fn who_did_it_is_told_by_its_name_and_by_the_child_of_the_program_that_it_descends_from() {
        let mut told = Told::new();
        told.tell(to(1));
        let refusal = told.next().unwrap();
        let own = std::process::id();
        assert_eq!(refusal.process, own);
        assert_eq!(refusal.program, name(own.cast_signed()));
        assert_eq!((refusal.act, refusal.errno), (Act::Connect, Errno::ENETUNREACH as i32));
    }

    #[test]
    fn a_flood_of_different_ones_is_counted_and_writes_no_more() {
        let mut told = Told::new();
        for port in (1..).take(MOST_EACH + 7) {
            told.tell(to(port));
        }
        assert_eq!(told.counts().len(), MOST_EACH);
        told.tell(to(1));
        assert_eq!(told.counts(), [(2, 7)]);
    }

    #[test]
    fn a_pipe_that_nobody_reads_holds_nobody_up_and_what_did_not_fit_is_told_later() {
        let (read, write) = pipe2(OFlag::O_CLOEXEC).unwrap();
        let mut fill = File::from(write.try_clone().unwrap());
        while has_room(&fill) {
            fill.write_all(&[0; MAX_REFUSAL]).unwrap();
        }
        let refusals = Refusals::told(getppid().as_raw(), Arc::default(), Some((write, Listeners::here())));
        let began = Instant::now();
        for port in 1..100 {
            assert_eq!(refusals.tell(gettid().as_raw(), Act::Send, to(port)), Errno::ENETUNREACH);
        }
        assert!(began.elapsed().as_secs() < 60, "it never waited");
        let state = refusals.0.as_ref().unwrap().lock();
        assert_eq!((state.origins[0].refused.len(), state.origins[0].untold), (0, 99));
        drop((state, read));
        assert_eq!(refusals.tell(gettid().as_raw(), Act::Send, to(1)), Errno::ENETUNREACH, "nobody is there");
    }

    #[test]
    fn what_is_too_long_for_a_report_is_not_cut_but_counted() {
        let mut told = Told::new();
        let long = Target::File(WirePath::from(&format!("/{}", "x".repeat(MOST_BYTES))));
        told.tell(Hindrance::Rules { target: long, errno: Errno::EACCES });
        told.tell(to(1));
        assert_eq!(told.counts(), [(1, 1)]);
    }

    #[test]
    fn the_oldest_child_of_the_program_is_forgotten_first() {
        let mut origins = VecDeque::new();
        for process in (0..).take(MOST_ORIGINS + 1) {
            origin(&mut origins, process, 1);
        }
        assert_eq!((origins.len(), origins[0].process), (MOST_ORIGINS, 1));
        assert_eq!(origin(&mut origins, 1, 2).began, 2, "the number is another's");
    }
}
