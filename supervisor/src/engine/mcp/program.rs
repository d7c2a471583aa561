//! Finds the directories that a server's program needs to read. Without them the program does not start in its sandbox.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use boundary::policy::{SYSTEM, users_home};

use super::installed::InstalledServer;
use crate::settings::config::{ConfigOrigin, McpServer, at_home};

/// Directories of the system's programs, in the order in which an installer searches them.
const SYSTEM_PROGRAMS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// Maximum length of the first line of a script, which names an interpreter (`BINPRM_BUF_SIZE`, execve(2)).
const LINE: u64 = 256;

/// Maximum number of interpreters that are followed. Each is the interpreter of the program before it.
const INTERPRETERS: usize = 4;

/// Returns the directories of those programs that are not installed with the system.
pub(crate) fn toolchain(programs: &[&str]) -> Vec<String> {
    let is_systems = |name: &str| SYSTEM_PROGRAMS.iter().any(|place| Path::new(place).join(name).is_file());
    let mut places: Vec<String> = Vec::new();
    for name in programs.iter().filter(|name| !is_systems(name)) {
        let mut server = McpServer::new("", ConfigOrigin::Default);
        (server.command, server.read) = ((*name).to_owned(), places.clone());
        places.extend(unread(&server).iter().filter_map(|place| place.to_str()).map(str::to_owned));
    }
    places
}

/// Returns directories of the installed program's interpreters that the server's table does not permit to read. Only
/// directories in `toolchain` count, because the package chooses the interpreter.
pub(crate) fn interpreters(
    server: &McpServer,
    installed: &InstalledServer,
    toolchain: &[String],
) -> Vec<String> {
    let tree = installed.tree.display().to_string();
    let mut started = McpServer { command: installed.command().to_owned(), ..server.clone() };
    started.read.push(tree);
    of_toolchain(&unread(&started), toolchain)
}

fn of_toolchain(places: &[PathBuf], toolchain: &[String]) -> Vec<String> {
    let is_of_it = |place: &&PathBuf| toolchain.iter().any(|root| place.starts_with(root));
    places.iter().filter(is_of_it).filter_map(|place| place.to_str()).map(str::to_owned).collect()
}

/// Returns directories of the server's program and its interpreters that the server cannot read.
pub(super) fn unread(server: &McpServer) -> Vec<PathBuf> {
    let home = users_home();
    let given = server.read.iter().chain(&server.write);
    let given = given.filter_map(|path| fs::canonicalize(at_home(path.as_ref(), home.as_deref())).ok());
    let mut readable: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).chain(given).collect();
    let mut unread = Vec::new();
    for program in programs(&server.command) {
        // A link is followed through its own directory and to its target.
        for place in [Some(program.clone()), fs::canonicalize(&program).ok()].into_iter().flatten() {
            if !readable.iter().any(|root| place.starts_with(root))
                && let Some(tree) = tree(&place)
            {
                readable.push(tree.clone());
                unread.push(tree);
            }
        }
    }
    unread
}

/// Returns the program of a command, followed by its interpreters.
fn programs(command: &str) -> Vec<PathBuf> {
    let mut programs = Vec::new();
    let mut next = found(command);
    while let Some(program) = next.filter(|_| programs.len() < INTERPRETERS) {
        next = interpreter(&program);
        programs.push(program);
    }
    programs
}

pub(super) fn found(command: &str) -> Option<PathBuf> {
    if command.contains('/') {
        return Some(PathBuf::from(command)).filter(|program| program.exists());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|place| place.join(command)).find(|program| program.is_file())
}

/// Returns the interpreter in a script's first line; for `env` its first argument. `None` if there is none.
fn interpreter(program: &Path) -> Option<PathBuf> {
    let file =
        File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(program).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut line = Vec::new();
    file.take(LINE).read_to_end(&mut line).ok()?;
    let line = line.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_whitespace();
    let first = words.next()?;
    if first.ends_with("/env") {
        found(words.find(|word| !word.starts_with('-'))?)
    } else {
        Some(first.into())
    }
}

/// Returns the directory that a program needs: the parent of `bin`, or else its own; never a home, `.local` or `/`.
fn tree(program: &Path) -> Option<PathBuf> {
    let directory = program.parent()?;
    let tree = if directory.ends_with("bin") { directory.parent()? } else { directory };
    let is_wide = |tree: &Path| {
        tree.parent().is_none()
            || tree.ends_with(".local")
            || users_home().is_some_and(|home| home.starts_with(tree))
    };
    [tree, directory].into_iter().find(|tree| !is_wide(tree)).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_places_of_a_program_and_its_interpreter_are_named_until_the_server_may_read_them() {
        let place = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(place.path()).unwrap();
        let [venv, python] = ["venv", "python/3.11"].map(|name| root.join(name));
        for tree in [&venv, &python] {
            fs::create_dir_all(tree.join("bin")).unwrap();
        }
        fs::write(python.join("bin/python3.11"), "\x7fELF").unwrap();
        symlink(python.join("bin/python3.11"), venv.join("bin/python")).unwrap();
        fs::write(venv.join("bin/server"), format!("#!{}/bin/python\nx\n", venv.display())).unwrap();
        let mut server = McpServer::new("s", ConfigOrigin::Default);
        server.command = venv.join("bin/server").display().to_string();
        assert_eq!(unread(&server), [venv.clone(), python.clone()]);
        // A package cannot read a directory of the user by naming an interpreter in it.
        let toolchain = [python.display().to_string()];
        assert_eq!(of_toolchain(&unread(&server), &toolchain), toolchain);
        assert!(of_toolchain(&unread(&server), &[]).is_empty());
        server.read = vec![venv.display().to_string()];
        assert_eq!(unread(&server), std::slice::from_ref(&python));
        server.read.push(python.display().to_string());
        assert!(unread(&server).is_empty());
        server.command = "sh".to_owned();
        assert!(unread(&server).is_empty());
        server.command = "no-such-program".to_owned();
        assert!(unread(&server).is_empty());
    }
}
