//! Helpers that all kernel tests of sandbox-exec share.
#![allow(dead_code, reason = "each test file is a program of its own and uses a part")]

pub(crate) mod order;
pub(crate) mod place;
mod reaper;
pub(crate) mod waiting;

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use ipc::rights::Rights;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sandbox_exec::command::{CommandSpec, DomainAccess, Ending, Running};

pub(crate) fn worker_rights(project: &Path) -> Rights {
    Rights {
        read: vec!["/".into()],
        write: vec![std::fs::canonicalize(project).unwrap().into()],
        ..Rights::default()
    }
}

pub(crate) fn spec(cwd: &Path, script: &str) -> CommandSpec {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    CommandSpec {
        argv: vec!["/bin/bash".into(), "-c".into(), script.into()],
        environment: vec![("PATH".into(), path), ("LC_ALL".into(), "C".into())],
        cwd: cwd.to_owned(),
        access: DomainAccess::Standing,
    }
}

pub(crate) fn read_all(descriptor: &OwnedFd) -> Vec<u8> {
    let mut file = File::from(descriptor.try_clone().unwrap());
    let mut all = vec![];
    loop {
        let mut polled = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
        poll(&mut polled, PollTimeout::from(20_000u16)).unwrap();
        let mut buffer = [0; 4096];
        match file.read(&mut buffer) {
            Ok(0) => return all,
            Ok(read) => all.extend_from_slice(&buffer[..read]),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "after twenty seconds"),
        }
    }
}

pub(crate) fn finish(running: Running) -> (String, Ending) {
    let output = String::from_utf8_lossy(&read_all(&running.output)).into_owned();
    let status = read_all(&running.status).try_into().expect("four bytes");
    running.reap().unwrap();
    (output, Ending::from_bytes(status))
}
