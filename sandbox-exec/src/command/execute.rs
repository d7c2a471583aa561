//! Start of a command, from the fork of its single-threaded reaper up to exec.

use std::convert::Infallible;
use std::ffi::c_int;
use std::fs::File;
use std::io::{Read, Write};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc::pid_t;
use nix::unistd::{Pid, chdir, execve, pipe2, setpgid};

use super::reaper::{Failed, at};
use super::request::{CommandFilter, Image, Request};
use crate::domain::Domain;
use crate::launch::default_signals;
use crate::seccomp::Program;
use crate::stage::Stage;
use crate::system::process;

pub(super) struct Started {
    pub(super) command: pid_t,
    pub(super) failure: Option<c_int>,
}

struct Attempt<'a> {
    image: Image,
    domain: Option<&'a Domain>,
    filter: Option<Program>,
}

pub(super) fn start(request: &Request, domain: Option<&Domain>) -> Result<Started, Failed> {
    let image = request.image().map_err(at(Stage::Usage))?;
    let attempt = Attempt { image, domain, filter: request.filter.map(CommandFilter::program) };
    let (told, tell) = pipe2(OFlag::O_CLOEXEC).map_err(at(Stage::Start))?;
    let mut tell = File::from(tell);
    let child = process::in_child(|| attempt.run(&mut tell)).map_err(at(Stage::Start))?;
    drop(tell);
    // The end of the file comes with exec or exit.
    let mut failure = [0; size_of::<c_int>()];
    let failed = File::from(told).read_exact(&mut failure);
    Ok(Started { command: child.as_raw(), failure: failed.is_ok().then(|| c_int::from_le_bytes(failure)) })
}

impl Attempt<'_> {
    fn run(&self, tell: &mut File) -> u8 {
        let Err(failed) = self.execute();
        // If this fails, the exit code still names the stage.
        let _told = tell.write_all(&failed.status().to_le_bytes());
        failed.0.code()
    }

    fn execute(&self) -> Result<Infallible, Failed> {
        let Image { cwd, argv, environment } = &self.image;
        // A process group of its own, so that `kill 0` does not reach the reaper.
        setpgid(Pid::from_raw(0), Pid::from_raw(0)).map_err(at(Stage::Session))?;
        chdir(cwd.as_c_str()).map_err(at(Stage::Directory))?;
        default_signals().map_err(at(Stage::Session))?;
        self.domain.map_or(Ok(()), Domain::enter).map_err(at(Stage::Landlock))?;
        self.filter.map_or(Ok(()), |filter| filter.attach()).map_err(at(Stage::Seccomp))?;
        let program = argv.first().ok_or(Failed(Stage::Execute, Errno::ENOENT.into()))?;
        execve(program, argv, environment).map_err(at(Stage::Execute))
    }
}
