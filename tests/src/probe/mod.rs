//! Actions of an attacker, as plain system calls.

mod files;
pub mod ipc;
mod kernel;
mod metadata;
mod namespaces;
pub mod plain;
mod processes;
mod programs;
mod sockets;
mod tables;
pub mod victim;

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, ExitCode, Stdio};

use nix::libc;
use serde_json::json;

/// Function of an action. Returns the data that it reads.
type Act = fn(&Arguments) -> io::Result<Vec<u8>>;

/// Environment variable that makes a process carry out a single action.
const ALONE: &str = "PROBE_ALONE";

/// Carries out a list of actions separated by `--`. After the word `plainly`, carries out a single action, and prints
/// an error as a normal program would.
pub fn run(arguments: &[OsString]) -> ExitCode {
    if let Some((first, act)) = arguments.split_first()
        && first == "plainly"
    {
        return plain::run(act);
    }
    if std::env::var_os(ALONE).is_some() {
        print(arguments);
        return ExitCode::SUCCESS;
    }
    for act in arguments.split(|argument| argument == "--") {
        alone(act);
    }
    ExitCode::SUCCESS
}

/// Carries out one action in a separate process, so that the action's effects end with that process. If a signal kills
/// the process, prints the signal.
fn alone(act: &[OsString]) {
    let me = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    let child = Command::new(me).args(act).env(ALONE, "1").stdin(Stdio::null()).output();
    let said = match child {
        Ok(child) if child.status.success() && !child.stdout.is_empty() => child.stdout,
        Ok(child) => line(act, -1, child.status.to_string().as_bytes()),
        Err(error) => line(act, error.raw_os_error().unwrap_or(-1), b"not started"),
    };
    // The actions continue also if nobody reads the output.
    let _ = io::stdout().write_all(&said);
}

fn print(act: &[OsString]) {
    let (errno, said) = match carry_out(act) {
        Ok(said) => (0, said),
        Err(error) => (error.raw_os_error().unwrap_or(-1), error.to_string().into_bytes()),
    };
    let _ = io::stdout().write_all(&line(act, errno, &said));
}

fn line(act: &[OsString], errno: i32, said: &[u8]) -> Vec<u8> {
    let words: Vec<_> = act.iter().map(|word| word.to_string_lossy()).collect();
    let said = String::from_utf8_lossy(said);
    format!("{}\n", json!({"act": words.join(" "), "errno": errno, "said": said})).into_bytes()
}

fn carry_out(act: &[OsString]) -> io::Result<Vec<u8>> {
    let (name, arguments) = act.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let tables = [
        files::ACTS,
        metadata::ACTS,
        programs::ACTS,
        sockets::ACTS,
        tables::ACTS,
        ipc::ACTS,
        processes::ACTS,
        namespaces::ACTS,
        kernel::ACTS,
    ];
    let known = tables.into_iter().flatten().find(|(known, _)| name == known);
    let (_, act) = known.ok_or_else(|| io::Error::other("no such act"))?;
    act(&Arguments(arguments))
}

struct Arguments<'a>(&'a [OsString]);

impl Arguments<'_> {
    fn os(&self, index: usize) -> io::Result<&OsStr> {
        let argument = self.0.get(index).map(OsString::as_os_str);
        argument.ok_or_else(|| io::Error::other(format!("argument {index} is missing")))
    }

    fn text(&self, index: usize) -> io::Result<&str> {
        self.os(index)?.to_str().ok_or_else(|| io::Error::other(format!("argument {index} is no text")))
    }

    fn path(&self, index: usize) -> io::Result<CString> {
        Ok(CString::new(self.os(index)?.as_bytes())?)
    }

    fn number<N: std::str::FromStr>(&self, index: usize) -> io::Result<N> {
        let text = self.text(index)?;
        text.parse().map_err(|_| io::Error::other(format!("{text} is no number")))
    }
}

/// Converts the return value of a system call. A negative value becomes an `Err` with the error in `errno`.
fn check(answer: impl Into<i64>) -> io::Result<i64> {
    let answer = answer.into();
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// Converts the return value of a system call that reads no data.
fn done(answer: impl Into<i64>) -> io::Result<Vec<u8>> {
    check(answer).map(|_| Vec::new())
}

/// Converts the return value to a descriptor. The descriptor stays open until this process ends.
fn descriptor(answer: impl Into<i64>) -> io::Result<libc::c_int> {
    check(answer).and_then(|answer| i32::try_from(answer).map_err(io::Error::other))
}
