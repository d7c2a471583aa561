//! Installs the packages that the command of an MCP server needs, and explains failures.

use std::time::{Duration, Instant};

use boundary::install::{InstallError, Registry, SelfInstaller};
use boundary::monitor::Ended;
use protocol::shell_word::shell_word;

use super::McpRefusal;
use crate::command::app::sessions::size;
use crate::engine::mcp::{self, Installations, InstalledServer, NewInstallation, NotInstalled, denied};
use crate::engine::place::ProjectSandbox;
use crate::process::exit::Exit;
use crate::process::messages::{one_line, say};
use crate::settings::config::McpServer;

/// Time between two progress lines.
const PROGRESS: Duration = Duration::from_secs(10);

/// Maximum number of lines of an installer's output that are shown.
const LINES: usize = 8;

/// Texts with which npm, pip and uv report that a registry does not answer.
const UNREACHED: [&str; 9] = [
    "code ENOTFOUND",
    "code EAI_AGAIN",
    "code ECONNREFUSED",
    "code ECONNRESET",
    "code ETIMEDOUT",
    "name resolution",
    "NewConnectionError",
    "ConnectTimeoutError",
    "dns error",
];

/// Exit status of a shell that did not find a program (sh(1)).
const NOT_FOUND: i32 = 127;

/// Returns the packages that a server's command would install; `None` if it installs nothing. Fails if a package does
/// not come from a registry.
pub(super) fn installer(server: &McpServer) -> Result<Option<SelfInstaller>, McpRefusal> {
    let McpServer { command, args, .. } = server;
    let found = SelfInstaller::of(command, args);
    if found.is_none() && SelfInstaller::is_runner(command, args) {
        return Err(McpRefusal::usage(format!(
            "cannot install the package in the command {}: expected a name from the registry with or without a version, and no other source, registry \
             or flag\n  hint: install it by hand, then add the installed program",
            one_line(command)
        )));
    }
    Ok(found)
}

pub(super) async fn install(
    setup: &ProjectSandbox,
    name: &str,
    what: &SelfInstaller,
) -> Result<NewInstallation, McpRefusal> {
    let (packages, registry) = (what.packages.join(" "), what.registry.name());
    say(&format!(
        "installing {} in a sandbox that can reach only {registry} and write only its own directory",
        one_line(&packages)
    ));
    let programs = toolchain(what);
    let installations = Installations::new(&setup.directories);
    let work = installations.install(setup, name, what, programs);
    tokio::pin!(work);
    let begun = Instant::now();
    let installed = loop {
        tokio::select! {
            installed = &mut work => break installed,
            () = tokio::time::sleep(PROGRESS) => say(&format!("still installing after {} s", begun.elapsed().as_secs())),
        }
    };
    installed.map_err(|error| refusal(what, &error))
}

/// Returns the paths of the programs that an installer needs and that are not in the system's directories.
pub(super) fn toolchain(what: &SelfInstaller) -> Vec<String> {
    mcp::toolchain(match what.registry {
        Registry::Npm => &["npm", "node"],
        Registry::PyPi => &["python3"],
    })
}

pub(super) fn lines(installed: &InstalledServer) -> String {
    let InstalledServer { packages, registry, version, sha256, entries, bytes, .. } = installed;
    let package = one_line(&packages.join(" "));
    format!(
        "installed {package}, version {} from {registry}: {entries} files and directories, {}; the server runs without {registry}\n\
         digest    {sha256}\n",
        one_line(version),
        size(*bytes),
    )
}

pub(super) fn blocked(new: &NewInstallation) -> String {
    let lines = denied(&new.refused);
    lines.iter().fold(String::new(), |text, line| text + "          during the installation, " + line + "\n")
}

fn refusal(what: &SelfInstaller, error: &NotInstalled) -> McpRefusal {
    let packages = what.packages.join(" ");
    let why = match error {
        NotInstalled::Install(InstallError::Failed { ended, said, refused }) => {
            let blocked = denied(refused).iter().fold(String::new(), |text, line| text + "\n  " + line);
            failure(what, *ended, said) + &blocked
        }
        error => error.to_string(),
    };
    McpRefusal(Exit::NoSandbox, format!("cannot install {}: {why}", one_line(&packages)))
}

fn failure(what: &SelfInstaller, ended: Ended, said: &str) -> String {
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let registry = what.registry.name();
    if ended == Ended::Exited(NOT_FOUND) && has(&["not found"]) {
        let (missing, remedy) = match what.registry {
            Registry::Npm => ("npm and node are not installed", "install Node.js, which has both"),
            Registry::PyPi => (
                "neither python3 with its module venv nor uv is installed",
                "install one of them from your system's packages",
            ),
        };
        return format!("{missing}, or are where no sandbox can read\n  hint: {remedy}");
    }
    if has(&["code E404", "code ETARGET", "No matching distribution found", "No solution found"]) {
        let package = what.packages.first().map(|package| what.registry.unversioned(package));
        let package = package.map(shell_word).unwrap_or_default();
        let versions = match what.registry {
            Registry::Npm => format!("npm view {package} versions"),
            Registry::PyPi => format!("pip index versions {package}"),
        };
        return format!(
            "{registry} has no such package, or not in this version\n  hint: {versions}\n{}",
            last(said)
        );
    }
    if has(&UNREACHED) {
        return format!(
            "{registry} cannot be reached\n  hint: try again once this machine reaches {registry}\n{}",
            last(said)
        );
    }
    if has(&["npm error command"]) {
        return format!(
            "a script of the package failed ({ended}): such a script can reach only {registry} and write only its own directory\n{}",
            last(said)
        );
    }
    format!("the installer failed ({ended})\n{}", last(said))
}

/// Returns the last lines of an installer's output, indented.
fn last(said: &str) -> String {
    let lines: Vec<_> = said.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    last.iter().map(|line| format!("  | {}", one_line(line))).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str, code: i32, said: &str) -> String {
        let mut words = line.split(' ').map(str::to_owned);
        let command = words.next().unwrap();
        let what = SelfInstaller::of(&command, &words.collect::<Vec<_>>()).unwrap();
        failure(&what, Ended::Exited(code), said)
    }

    #[test]
    fn failures_of_installers_are_told_in_words() {
        insta::assert_snapshot!(said("npx x", 127, "sh: 7: npm: not found"), @r"
        npm and node are not installed, or are where no sandbox can read
          hint: install Node.js, which has both
        ");
        let missing = "npm error code ETARGET\nnpm error notarget No matching version\n";
        insta::assert_snapshot!(said("npx @s/x@9", 1, missing), @r"
        npm has no such package, or not in this version
          hint: npm view @s/x versions
          | npm error code ETARGET
          | npm error notarget No matching version
        ");
        insta::assert_snapshot!(said("uvx x==3", 1, "ERROR: No matching distribution found for x"), @r"
        PyPI has no such package, or not in this version
          hint: pip index versions x
          | ERROR: No matching distribution found for x
        ");
        insta::assert_snapshot!(said("npx x", 1, "npm error code EAI_AGAIN"), @r"
        npm cannot be reached
          hint: try again once this machine reaches npm
          | npm error code EAI_AGAIN
        ");
        insta::assert_snapshot!(said("npx x", 1, "a\x1b[2J\n\nnpm error command sh -c exit 3"), @r"
        a script of the package failed (exited with code 1): such a script can reach only npm and write only its own directory
          | a\u{1b}[2J
          | npm error command sh -c exit 3
        ");
        insta::assert_snapshot!(said("uvx x", 9, "no room"), @r"
        the installer failed (exited with code 9)
          | no room
        ");
    }
}
