//! The task of `exec`, from its argument or from standard input.

use std::io::{self, IsTerminal, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv};
use nix::sys::stat::{SFlag, fstat};
use nix::unistd::{Whence, lseek};

use crate::engine::opening::Refusal;
use crate::process::messages::say;

const MOST: usize = 1 << 20;

/// Time after which a message says that the task is expected on standard input.
const PATIENCE_MS: u16 = 1000;

pub(super) fn text(argument: Option<&str>) -> Result<String, Refusal> {
    match argument {
        Some(text) if text != "-" => {
            Some(text).filter(|text| !text.trim().is_empty()).map(str::to_owned).ok_or_else(none)
        }
        None if io::stdin().is_terminal() => Err(none()),
        Some(_) | None => read(&mut announced()),
    }
}

/// True if standard input has data although the task comes from the command line. Does not wait for data.
pub(super) fn is_left_out() -> bool {
    has_something(io::stdin().as_fd())
}

fn has_something(input: BorrowedFd<'_>) -> bool {
    let Ok(about) = fstat(input) else { return false };
    match SFlag::from_bits_truncate(about.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFREG => lseek(input, 0, Whence::SeekCur).is_ok_and(|read| read < about.st_size),
        SFlag::S_IFIFO => {
            let mut input = [PollFd::new(input, PollFlags::POLLIN)];
            poll(&mut input, PollTimeout::ZERO) == Ok(1)
                && input[0].revents().is_some_and(|events| events.contains(PollFlags::POLLIN))
        }
        // Node.js gives its children a pair of sockets. A closed one is readable too, but has no data.
        SFlag::S_IFSOCK => {
            let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
            recv(input.as_raw_fd(), &mut [0], flags).is_ok_and(|length| length > 0)
        }
        _ => false,
    }
}

/// Error message for a task on the command line together with data on standard input.
pub(super) const LEFT_OUT: &str = "cannot use a task and standard input together\n  hint: put the input into a file of the project and name that file in the task, or write - as the task and pass the whole task on standard input";

/// Returns a reader of standard input. If no data arrives within a second, prints that the task is expected there.
fn announced() -> impl Read {
    let stdin = io::stdin();
    let mut input = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    if poll(&mut input, PollTimeout::from(PATIENCE_MS)) == Ok(0) {
        say("reading the task from standard input");
    }
    stdin
}

fn read(input: &mut impl Read) -> Result<String, Refusal> {
    let mut bytes = Vec::new();
    let read = input.take(MOST as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| Refusal::usage(format!("cannot read the task from standard input: {error}")))?;
    if bytes.len() > MOST {
        let text = "cannot use standard input as the task: the input has more than 1 MiB\n  hint: put the input into a file of the project, and name that file in the task";
        return Err(Refusal::usage(text));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Refusal::usage(format!("cannot use standard input as the task: byte {at} is not UTF-8"))
    })?;
    if text.trim().is_empty() {
        return Err(Refusal::usage(format!("no task given: standard input is empty{HINT}")));
    }
    Ok(text)
}

const HINT: &str = "\n  hint: bailiwick exec --mode auto \"fix the failing test\"";

fn none() -> Refusal {
    Refusal::usage(format!("no task given{HINT}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(mut input: &[u8]) -> String {
        let Err(Refusal(_, text)) = read(&mut input) else { panic!("it is a task") };
        text
    }

    #[test]
    fn data_that_is_not_read_is_noticed_whatever_brings_it() {
        use std::fs::File;
        use std::io::{Seek, SeekFrom, Write};
        use std::os::unix::net::UnixStream;

        for data in [&b""[..], b"x", b"two\nlines\n"] {
            let is_something = !data.is_empty();
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(data).unwrap();
            assert!(!has_something(file.as_fd()), "a file that was read to its end");
            file.seek(SeekFrom::Start(0)).unwrap();
            assert_eq!(has_something(file.as_fd()), is_something, "a file");
            let (reader, mut writer) = io::pipe().unwrap();
            writer.write_all(data).unwrap();
            assert_eq!(has_something(reader.as_fd()), is_something, "a pipe");
            drop(writer);
            assert_eq!(has_something(reader.as_fd()), is_something, "a pipe without a writer");
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            theirs.write_all(data).unwrap();
            assert_eq!(has_something(ours.as_fd()), is_something, "a socket");
            drop(theirs);
            assert_eq!(has_something(ours.as_fd()), is_something, "a socket without a peer");
        }
        for nothing in ["/dev/null", "/dev/zero", "/"] {
            assert!(!has_something(File::open(nothing).unwrap().as_fd()), "{nothing}");
        }
    }

    #[test]
    fn input_is_a_task_unless_it_is_empty_too_long_or_no_text() {
        assert_eq!(read(&mut &b"fix\nit\n"[..]).ok().as_deref(), Some("fix\nit\n"));
        assert!(read(&mut vec![b'x'; MOST].as_slice()).is_ok());
        assert!(fault(&vec![b'x'; MOST + 1]).contains("more than 1 MiB"));
        assert!(fault(b" \n").starts_with("no task given: standard input is empty\n"));
        assert_eq!(fault(b"ab\xff"), "cannot use standard input as the task: byte 2 is not UTF-8");
    }
}
