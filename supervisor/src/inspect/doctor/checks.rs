//! Checks of the environment: shell, git, terminal, key and directories.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use model::provider::socket_of;
use model::secrets::{KeyError, TakenKeys, find_key};
use nix::sys::statvfs::statvfs;
use protocol::shell_word::shell_word;

use super::{CheckState, DoctorCheck};
use crate::engine::inside;
use crate::engine::place::ProjectSandbox;
use crate::settings::config::Sources;
use crate::settings::config::{Effective, Layer};

pub(super) fn shell() -> DoctorCheck {
    match on_path("bash") {
        Some(path) => DoctorCheck::new("shell", CheckState::Ok, path.display().to_string()),
        None => DoctorCheck::new("shell", CheckState::Warn, "no bash: shell_exec cannot run commands")
            .remedy("install bash"),
    }
}

pub(super) async fn git(setup: &ProjectSandbox) -> DoctorCheck {
    let Some(path) = on_path("git") else {
        return DoctorCheck::new(
            "git",
            CheckState::Warn,
            "no git: a patch may miss files that are tracked although they are ignored",
        )
        .remedy("install git");
    };
    let confinement = setup.confinement(setup.policy.observer(setup.policy.temp.clone()));
    let command = vec![path.clone().into_os_string(), "--version".into()];
    let said = match inside::run_program(setup, confinement, command, Vec::new()).await {
        Ok(said) => said.output,
        // Another check reports that nothing can be confined.
        Err(_) => return DoctorCheck::new("git", CheckState::Ok, path.display().to_string()),
    };
    match said.trim().strip_prefix("git version ") {
        Some(version) => {
            DoctorCheck::new("git", CheckState::Ok, format!("{}, {}", version.escape_debug(), path.display()))
        }
        None => DoctorCheck::new(
            "git",
            CheckState::Warn,
            format!("{} does not run in the sandbox", path.display()),
        )
        .remedy("bailiwick sandbox -- git --version shows the cause"),
    }
}

pub(super) fn terminal() -> DoctorCheck {
    if !std::io::stdout().is_terminal() {
        return DoctorCheck::new("terminal", CheckState::Ok, "none (output goes to a pipe or a file)");
    }
    let term = std::env::var("TERM").unwrap_or_default();
    if matches!(term.as_str(), "" | "dumb") {
        return DoctorCheck::new("terminal", CheckState::Warn, "dumb: the terminal UI does not work on such a terminal").remedy(
            "set TERM to the name of your terminal, as in TERM=xterm-256color; bailiwick exec needs no terminal",
        );
    }
    let term = term.escape_debug().to_string();
    let colour = match std::env::var("COLORTERM").as_deref() {
        Ok("truecolor" | "24bit") => ", truecolor",
        _ => "",
    };
    match crossterm::terminal::size() {
        Ok((width, height)) if tui::is_tiny((width, height)) => DoctorCheck::new(
            "terminal",
            CheckState::Warn,
            format!("{term}, {width}x{height}{colour}: too small"),
        )
        .remedy("make the terminal at least 40x10"),
        Ok((width, height)) => {
            DoctorCheck::new("terminal", CheckState::Ok, format!("{term}, {width}x{height}{colour}"))
        }
        Err(_) => DoctorCheck::new("terminal", CheckState::Ok, format!("{term}{colour}")),
    }
}

/// Returns the base URL of the model provider for sessions on this machine.
pub(super) fn base_url(setup: &ProjectSandbox) -> String {
    let sources = Sources::read(&setup.directories, Path::new(".")).ok();
    let effective = sources.map(|sources| sources.effective(&Layer::default()));
    let kind = effective.as_ref().map(Effective::provider).unwrap_or_default();
    effective.as_ref().and_then(Effective::base_url).unwrap_or(kind.base_url()).to_owned()
}

pub(super) fn key(setup: &ProjectSandbox, keys: &TakenKeys) -> DoctorCheck {
    // Another check reports settings that cannot be read.
    let sources = Sources::read(&setup.directories, Path::new(".")).ok();
    let effective = sources.map(|sources| sources.effective(&Layer::default()));
    let kind = effective.as_ref().map(Effective::provider).unwrap_or_default();
    let base_url = effective.as_ref().and_then(Effective::base_url).unwrap_or(kind.base_url());
    if socket_of(base_url).is_some() {
        return DoctorCheck::new("key", CheckState::Ok, "no key is needed: a relay has the key");
    }
    let (variable, file) = (kind.key_variable(), setup.directories.key_file(kind.vendor()));
    match find_key(keys.of(kind), variable, &file) {
        Ok(key) => DoctorCheck::new("key", CheckState::Ok, format!("in {}", key.origin)),
        Err(KeyError::Missing { .. }) if !kind.needs_key(base_url) => DoctorCheck::new(
            "key",
            CheckState::Ok,
            format!("no key; {} may not need one", base_url.escape_debug()),
        ),
        Err(KeyError::Missing { .. }) => {
            DoctorCheck::new("key", CheckState::Warn, "no key found").remedy(format!(
                "set {variable}, or write the key into {} (mode 0600). No key yet? bailiwick demo",
                shell_word(&file)
            ))
        }
        Err(error) => {
            let text = error.to_string();
            let (found, next) = text.split_once("\n  hint: ").unwrap_or((&text, "see SECURITY.md"));
            DoctorCheck::new("key", CheckState::Warn, found).remedy(next)
        }
    }
}

pub(super) fn settings(setup: &ProjectSandbox) -> DoctorCheck {
    match Sources::read(&setup.directories, Path::new(".")) {
        Ok(sources) => match sources.question() {
            None => DoctorCheck::new("settings", CheckState::Ok, sources.summary()),
            Some(question) => {
                let text = format!("{}; the project has files that need your trust", sources.summary());
                let project = shell_word(&question.project);
                let remedy = format!("bailiwick config trust -C {project}");
                DoctorCheck::new("settings", CheckState::Warn, text).remedy(remedy)
            }
        },
        Err(error) => {
            let text = error.to_string();
            let (found, next) = text.split_once("\n  hint: ").unwrap_or((&text, "bailiwick config keys"));
            DoctorCheck::new("settings", CheckState::Warn, found.replace('\n', "; ")).remedy(next)
        }
    }
}

/// Minimum free space in bytes, below which a log or a build may not fit.
const LITTLE_SPACE: u64 = 64 << 20;

pub(super) fn state_directory(setup: &ProjectSandbox) -> DoctorCheck {
    directory("state dir", &setup.directories.state, "set BAILIWICK_HOME to a directory that you can write")
}

/// Checks the directory of private temporary directories, in which commands may build.
pub(super) fn temp_directory(setup: &ProjectSandbox) -> DoctorCheck {
    let temp = setup.policy.temp.as_path();
    directory(
        "temp dir",
        temp.parent().unwrap_or(temp),
        "set BAILIWICK_HOME to a directory that you can write",
    )
}

fn directory(name: &'static str, path: &Path, remedy: &'static str) -> DoctorCheck {
    if let Err(error) = tempfile::tempfile_in(path) {
        return DoctorCheck::new(name, CheckState::Fail, format!("{}: {error}", path.display()))
            .remedy(remedy);
    }
    let free = statvfs(path).map_or(0, |stat| stat.blocks_available() * stat.fragment_size());
    let check =
        DoctorCheck::new(name, CheckState::Ok, format!("{}, writable, {} free", path.display(), size(free)));
    if free < LITTLE_SPACE {
        DoctorCheck { state: CheckState::Warn, ..check }.remedy("free some space in this directory")
    } else {
        check
    }
}

fn size(bytes: u64) -> String {
    match bytes >> 20 {
        mib if mib >= 1024 => format!("{} GiB", mib >> 10),
        mib => format!("{mib} MiB"),
    }
}

pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}
