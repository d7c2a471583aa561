use std::convert::Infallible;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::execve;

use crate::stage::{Failure, Stage};

/// Executes a command; a name without a slash is searched in `PATH` of `environment`. Returns only on failure.
pub(super) fn execute(
    command: &[OsString],
    environment: &[(OsString, OsString)],
) -> Result<Infallible, Failure> {
    let refuse = |name: &OsStr, error: &dyn std::fmt::Display| {
        Stage::Execute.failed(format!("cannot execute {}: {error}", name.display()))
    };
    let name = command.first().map(OsString::as_os_str).unwrap_or_default();
    let c_string = |bytes: &[u8]| CString::new(bytes).map_err(|_| refuse(name, &"a word holds a NUL byte"));
    let arguments = command.iter().map(|word| c_string(word.as_bytes())).collect::<Result<Vec<_>, _>>()?;
    let variables = environment
        .iter()
        .map(|(name, value)| c_string(&[name.as_bytes(), b"=", value.as_bytes()].concat()))
        .collect::<Result<Vec<_>, _>>()?;
    let mut worst = Errno::ENOENT;
    for candidate in candidates(name, environment) {
        let Err(errno) = execve(&c_string(candidate.as_os_str().as_bytes())?, &arguments, &variables);
        match errno {
            Errno::ENOENT | Errno::ENOTDIR => {}
            Errno::EACCES => worst = errno,
            _ => return Err(refuse(name, &io::Error::from(errno))),
        }
    }
    Err(refuse(name, &io::Error::from(worst)))
}

fn candidates(name: &OsStr, environment: &[(OsString, OsString)]) -> Vec<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return vec![name.into()];
    }
    let path =
        environment.iter().find(|(variable, _)| *variable == "PATH").map(|(_, value)| value.as_os_str());
    // Default path of execvp(3).
    let path = path.unwrap_or(OsStr::new("/bin:/usr/bin"));
    std::env::split_paths(path).map(|directory| Path::new(&directory).join(name)).collect()
}
