//! Reads the picture in the clipboard, for Ctrl+V. Terminals send no pictures, so a desktop program reads it.
//!
//! Only a key of the person starts the program. Program and arguments are fixed. The program is searched in absolute
//! directories of `PATH` outside of the project, since an agent may write in the project. The program starts in `/`
//! with few environment variables. Its output is limited in size and time, and checked like a file of `:image`.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{AccessFlags, access};

/// Time limit for all programs together.
const PATIENCE: Duration = Duration::from_secs(3);

/// Time between two checks if a program has ended after it closed its output.
const PAUSE: Duration = Duration::from_millis(5);

/// Requested formats, in order of preference. Desktops offer pictures of other formats as PNG too.
const FORMATS: [&str; 2] = ["image/png", "image/jpeg"];

/// Environment variables that a program receives.
const VARIABLES: [&str; 7] =
    ["WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DISPLAY", "XAUTHORITY", "HOME", "PATH", "LC_ALL"];

struct ClipboardProgram {
    name: &'static str,
    /// Environment variable that is set on the desktops for which this program is made.
    desktop: &'static str,
    /// Arguments before and behind the name of the format.
    arguments: (&'static [&'static str], &'static [&'static str]),
}

const PROGRAMS: [ClipboardProgram; 2] = [
    ClipboardProgram {
        name: "wl-paste",
        desktop: "WAYLAND_DISPLAY",
        arguments: (&["--no-newline", "--type"], &[]),
    },
    ClipboardProgram {
        name: "xclip",
        desktop: "DISPLAY",
        arguments: (&["-selection", "clipboard", "-t"], &["-o"]),
    },
];

#[derive(Debug, thiserror::Error)]
pub(crate) enum ClipboardError {
    #[error("the clipboard cannot be read: this terminal has no desktop (WAYLAND_DISPLAY, DISPLAY)")]
    NoDesktop,
    #[error("the clipboard cannot be read: {0} is not installed")]
    NoProgram(String),
    #[error("the clipboard has no picture")]
    NoPicture,
    #[error("the clipboard cannot be read: {0} did not answer in {seconds} s", seconds = PATIENCE.as_secs())]
    Late(&'static str),
    #[error("the clipboard cannot be read: {name}: {source}")]
    Failed { name: &'static str, source: io::Error },
}

/// Returns the bytes of the picture in the clipboard. Returns only the first `most + 1` bytes of a larger picture.
pub(crate) fn picture(project: &Path, most: usize) -> Result<Vec<u8>, ClipboardError> {
    read(&|name| std::env::var_os(name), project, most)
}

fn read(
    variable: &dyn Fn(&str) -> Option<OsString>,
    project: &Path,
    most: usize,
) -> Result<Vec<u8>, ClipboardError> {
    let deadline = Instant::now() + PATIENCE;
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    let fitting: Vec<_> = PROGRAMS.iter().filter(|program| is_set(program.desktop)).collect();
    if fitting.is_empty() {
        return Err(ClipboardError::NoDesktop);
    }
    let path = variable("PATH").unwrap_or_default();
    let found = fitting.iter().find_map(|program| Some((program, find(program.name, &path, project)?)));
    let Some((program, file)) = found else {
        let names: Vec<_> = fitting.iter().map(|program| program.name).collect();
        return Err(ClipboardError::NoProgram(names.join(" or ")));
    };
    for format in FORMATS {
        let mut command = Command::new(&file);
        command.args(program.arguments.0).arg(format).args(program.arguments.1).current_dir("/").env_clear();
        command.envs(VARIABLES.iter().filter_map(|name| Some((name, variable(name)?))));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let failed = |source| ClipboardError::Failed { name: program.name, source };
        let mut child = command.spawn().map_err(failed)?;
        let printed = output(&mut child, deadline, most);
        // The program may have ended already.
        let _ = child.kill();
        child.wait().map_err(failed)?;
        match printed.map_err(failed)? {
            None => return Err(ClipboardError::Late(program.name)),
            Some(bytes) if !bytes.is_empty() => return Ok(bytes),
            Some(_) => {}
        }
    }
    Err(ClipboardError::NoPicture)
}

/// Returns the path of the program; `None` if it is missing. Skips relative directories and directories in the project.
fn find(name: &str, path: &OsString, project: &Path) -> Option<PathBuf> {
    let directories = std::env::split_paths(path).filter(|directory| directory.is_absolute());
    let mut files = directories.filter_map(|directory| directory.join(name).canonicalize().ok());
    files.find(|file| !file.starts_with(project) && file.is_file() && access(file, AccessFlags::X_OK).is_ok())
}

/// Returns at most `most + 1` bytes of a program's output; empty if the program fails, and `None` if it is too slow.
fn output(child: &mut Child, deadline: Instant, most: usize) -> io::Result<Option<Vec<u8>>> {
    let Some(mut stdout) = child.stdout.take() else { return Ok(None) };
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let wait = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
        let ready = poll(&mut [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)], wait);
        match ready {
            Ok(0) => return Ok(None),
            Err(nix::errno::Errno::EINTR) => continue,
            ready => ready?,
        };
        let room = (most + 1 - bytes.len()).min(chunk.len());
        match stdout.read(&mut chunk[..room])? {
            0 => break,
            count => bytes.extend_from_slice(&chunk[..count]),
        }
        if bytes.len() > most {
            return Ok(Some(bytes));
        }
    }
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(if status.success() { bytes } else { Vec::new() }));
        }
        sleep(PAUSE);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A simulated desktop with one program, in a directory of `PATH`.
    struct Desktop {
        place: tempfile::TempDir,
        variables: Vec<(&'static str, OsString)>,
    }

    impl Desktop {
        fn new(desktop: &'static str, name: &str, script: &str) -> Self {
            let place = tempfile::tempdir().unwrap();
            let programs = place.path().join("bin");
            fs::create_dir(&programs).unwrap();
            let file = programs.join(name);
            // Another process writes the program. A child that another test forks would inherit the file as it is open
            // for writing, and a file that is open for writing cannot be executed (ETXTBSY).
            let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$2" && chmod 755 "$2""#;
            let done = Command::new("sh").args(["-c", write, "sh", script]).arg(&file).status().unwrap();
            assert!(done.success());
            let path = std::env::join_paths([Path::new("relative"), &programs]).unwrap();
            Self { place, variables: vec![(desktop, "x".into()), ("PATH", path), ("SECRET", "s".into())] }
        }

        fn read(&self, project: &Path, most: usize) -> Result<Vec<u8>, String> {
            let variable = |name: &str| {
                self.variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
            };
            read(&variable, project, most).map_err(|error| error.to_string())
        }
    }

    const NOWHERE: &str = "/no/such/project";

    #[test]
    fn each_desktop_has_its_program_with_fixed_arguments() {
        let script = "echo \"$* in $PWD, $SECRET$HOME\"";
        let wayland = Desktop::new("WAYLAND_DISPLAY", "wl-paste", script);
        assert_eq!(wayland.read(Path::new(NOWHERE), 100).unwrap(), b"--no-newline --type image/png in /, \n");
        let x11 = Desktop::new("DISPLAY", "xclip", script);
        let said = x11.read(Path::new(NOWHERE), 100).unwrap();
        assert_eq!(said, b"-selection clipboard -t image/png -o in /, \n");
    }

    #[test]
    fn another_format_is_asked_for_if_there_is_no_first_one() {
        let desktop = Desktop::new("WAYLAND_DISPLAY", "wl-paste", "[ $3 = image/jpeg ] && printf JPEG");
        assert_eq!(desktop.read(Path::new(NOWHERE), 100).unwrap(), b"JPEG");
        let empty = Desktop::new("WAYLAND_DISPLAY", "wl-paste", "exit 1");
        assert_eq!(empty.read(Path::new(NOWHERE), 100).unwrap_err(), "the clipboard has no picture");
        let failing = Desktop::new("WAYLAND_DISPLAY", "wl-paste", "echo half; exit 1");
        assert_eq!(failing.read(Path::new(NOWHERE), 100).unwrap_err(), "the clipboard has no picture");
    }

    #[test]
    fn a_program_of_the_project_or_of_a_relative_directory_is_not_started() {
        let desktop = Desktop::new("WAYLAND_DISPLAY", "wl-paste", "echo planted");
        let project = desktop.place.path().canonicalize().unwrap();
        let said = desktop.read(&project, 100).unwrap_err();
        assert_eq!(said, "the clipboard cannot be read: wl-paste is not installed");
        let nothing = Desktop { variables: vec![], ..Desktop::new("DISPLAY", "xclip", "") };
        assert!(nothing.read(Path::new(NOWHERE), 100).unwrap_err().contains("has no desktop"));
    }

    #[test]
    fn what_never_ends_is_cut_by_size_or_by_time() {
        let endless = Desktop::new("WAYLAND_DISPLAY", "wl-paste", "exec /bin/cat /dev/zero");
        assert_eq!(endless.read(Path::new(NOWHERE), 1000).unwrap().len(), 1001);
        let silent = Desktop::new("WAYLAND_DISPLAY", "wl-paste", "exec /bin/sleep 60");
        let began = Instant::now();
        let said = silent.read(Path::new(NOWHERE), 1000).unwrap_err();
        assert_eq!(said, "the clipboard cannot be read: wl-paste did not answer in 3 s");
        let closed = Desktop::new("WAYLAND_DISPLAY", "wl-paste", "exec >&-; exec /bin/sleep 60");
        assert!(closed.read(Path::new(NOWHERE), 1000).unwrap_err().contains("did not answer"));
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}
