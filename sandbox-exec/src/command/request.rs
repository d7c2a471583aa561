//! Request of a worker to a reaper to run a command, sent over a pipe.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ipc::path::WirePath;
use nix::libc::pid_t;
use serde::{Deserialize, Serialize};

use super::{CommandError, CommandSpec};
use crate::seccomp::{Policy, Program};

/// Maximum size of a request in bytes. The kernel accepts 6 MiB of arguments and environment (execve(2)).
const LONGEST: u64 = 16 << 20;

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Request {
    pub(super) worker: pid_t,
    /// True if the reaper gets a domain for the command; false without Landlock.
    pub(super) has_domain: bool,
    /// True if the reaper gets a domain that only bounds signals and abstract unix sockets (Landlock scopes).
    pub(super) has_signals: bool,
    pub(super) filter: Option<CommandFilter>,
    cwd: WirePath,
    argv: Vec<WirePath>,
    environment: Vec<WirePath>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) enum CommandFilter {
    ReadOnly(Policy),
    ReadOnlyOnline(Policy),
    Offline(Policy),
}

impl CommandFilter {
    pub(super) fn program(self) -> Program {
        match self {
            Self::ReadOnly(policy) => Program::read_only(policy),
            Self::ReadOnlyOnline(policy) => Program::read_only_online(policy),
            Self::Offline(policy) => Program::offline(policy),
        }
    }
}

#[derive(Debug)]
pub(super) struct Image {
    pub(super) cwd: CString,
    pub(super) argv: Vec<CString>,
    pub(super) environment: Vec<CString>,
}

impl Request {
    pub(super) fn new(command: &CommandSpec) -> Result<Self, CommandError> {
        let program = command.argv.first().ok_or(CommandError::Empty)?;
        for path in [Path::new(program), &command.cwd] {
            if !path.is_absolute() {
                return Err(CommandError::Relative(path.into()));
            }
        }
        let variable =
            |(name, value): &(OsString, OsString)| [name.as_bytes(), b"=", value.as_bytes()].concat();
        let argv = command.argv.iter().map(|word| word.as_bytes().to_vec());
        Ok(Self {
            worker: std::process::id().cast_signed(),
            has_domain: false,
            has_signals: false,
            filter: None,
            cwd: word(command.cwd.as_os_str().as_bytes().to_vec(), "the working directory")?,
            argv: argv.map(|bytes| word(bytes, "an argument")).collect::<Result<_, _>>()?,
            environment: command
                .environment
                .iter()
                .map(|pair| word(variable(pair), "a variable"))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Sends the request. Does not wait if the request fits into the pipe.
    pub(super) fn send(&self, pipe: OwnedFd) -> io::Result<()> {
        File::from(pipe).write_all(&serde_json::to_vec(self)?)
    }

    pub(super) fn receive(pipe: OwnedFd) -> io::Result<Self> {
        let mut bytes = vec![];
        File::from(pipe).take(LONGEST).read_to_end(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    pub(super) fn image(&self) -> io::Result<Image> {
        let c_string = |word: &WirePath| Ok(CString::new(word.as_bytes())?);
        let all = |words: &[WirePath]| words.iter().map(c_string).collect::<io::Result<_>>();
        Ok(Image { cwd: c_string(&self.cwd)?, argv: all(&self.argv)?, environment: all(&self.environment)? })
    }
}

fn word(bytes: Vec<u8>, what: &'static str) -> Result<WirePath, CommandError> {
    if bytes.contains(&0) { Err(CommandError::Nul { what }) } else { Ok(bytes.into()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;
    use std::thread;

    use super::*;
    use crate::command::DomainAccess;

    fn command(program: &str, cwd: &str) -> CommandSpec {
        CommandSpec {
            argv: vec![program.into()],
            environment: vec![],
            cwd: cwd.into(),
            access: DomainAccess::Standing,
        }
    }

    #[test]
    fn what_cannot_be_executed_is_named() {
        let error = |command: &CommandSpec| Request::new(command).unwrap_err().to_string();
        assert_eq!(error(&command("true", "/")), "true is not an absolute path");
        assert_eq!(error(&command("/bin/true", "here")), "here is not an absolute path");
        assert_eq!(error(&command("/bin/\0true", "/")), "an argument holds a NUL byte");
        assert_eq!(error(&CommandSpec { argv: vec![], ..command("", "/") }), "the command is empty");
    }

    #[test]
    fn a_request_arrives_whatever_its_bytes_and_however_long_it_is() {
        let bytes = OsString::from_vec(vec![b'\n', 0xff, b'"']);
        let mut command = command("/bin/true", "/");
        command.argv.extend([bytes.clone(), "x".repeat(1 << 20).into()]);
        command.environment.push(("A".into(), bytes));
        let request = Request::new(&command).unwrap();
        let (read, write) = nix::unistd::pipe().unwrap();
        let received = thread::scope(|scope| {
            scope.spawn(|| request.send(write).unwrap());
            Request::receive(read).unwrap()
        });
        let image = received.image().unwrap();
        assert_eq!(image.argv[1].as_bytes(), b"\n\xff\"");
        assert_eq!(image.argv[2].as_bytes().len(), 1 << 20);
        assert_eq!(image.environment[0].as_bytes(), b"A=\n\xff\"");
        assert_eq!((image.cwd.as_bytes(), received.worker), (&b"/"[..], std::process::id().cast_signed()));
    }

    #[test]
    fn a_request_that_breaks_off_is_none() {
        let (read, write) = nix::unistd::pipe().unwrap();
        nix::unistd::write(&write, b"{\"worker\":1,").unwrap();
        drop(write);
        assert!(Request::receive(read).is_err());
    }
}
