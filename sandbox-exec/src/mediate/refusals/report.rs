//! Writes reports of denials to the process that started the programs.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;

use ipc::confinement::BrokerReport;
use ipc::frame;
use ipc::id::Generation;
use ipc::refusal::{MAX_REFUSAL, Refusal, Target};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Maximum size in bytes of the denied path or address in a report. Leaves room for the rest of the report.
pub(super) const MOST_BYTES: usize = 2048;

/// Writes a report. False if it is too long or does not fit into the pipe.
///
/// A pipe that is ready takes all bytes of a report at once (pipe(7), `pipe_poll` of fs/pipe.c); other writers write
/// only a few bytes. The pipe stays blocking, since the flag would also hold for these writers.
pub(super) fn write(pipe: &mut File, refusal: &Refusal) -> bool {
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

fn size(target: &Target) -> usize {
    match target {
        Target::Socket(path) | Target::File(path) => path.as_bytes().len(),
        Target::Abstract(name) => name.len(),
        Target::Object(phrase) => phrase.len(),
        Target::Host { name, .. } => name.as_str().len(),
        Target::Internet(..) | Target::Process(_) => 0,
    }
}

pub(super) fn has_room(pipe: &File) -> bool {
    let mut polled = [PollFd::new(pipe.as_fd(), PollFlags::POLLOUT)];
    let ready = poll(&mut polled, PollTimeout::ZERO);
    let events = polled[0].revents().unwrap_or(PollFlags::empty());
    ready.is_ok() && events == PollFlags::POLLOUT
}
