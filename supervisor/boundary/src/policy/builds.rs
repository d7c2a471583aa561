//! Replaces build directories outside of the writable directories by directories in the private caches, so that builds
//! in the sandbox succeed. Build directories that agents may write stay shared with the user's own builds.

use std::ffi::OsString;
use std::fs::{Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use complaint::resolved;
use ipc::confinement::Environment;
use libc::O_NONBLOCK;
use toml_edit::Document;

/// Environment variables that set build directories, each with the name of the replacement in the private caches. Not
/// included, and thus not passed on: lists of directories, and directories that must exist (`GOTMPDIR`).
const VARIABLES: &[(&str, &str)] = &[
    // Cargo's directory of all build results.
    ("CARGO_TARGET_DIR", "cargo-target"),
    // The same directory, by the name of its setting.
    ("CARGO_BUILD_TARGET_DIR", "cargo-target"),
    // Cargo's directory of intermediate results.
    ("CARGO_BUILD_BUILD_DIR", "cargo-build"),
    // The directory in which conda-build creates environments.
    ("CONDA_BLD_PATH", "conda-bld"),
    // Caches of tools that would otherwise write into the project.
    ("MYPY_CACHE_DIR", "mypy"),
    ("NX_CACHE_DIRECTORY", "nx"),
    ("PYTHONPYCACHEPREFIX", "pycache"),
    ("RUFF_CACHE_DIR", "ruff"),
    ("TURBO_CACHE_DIR", "turbo"),
    ("ZIG_LOCAL_CACHE_DIR", "zig"),
];

/// Keys in the `build` table of cargo's settings, each with the variable that overrides it and the replacement's name.
const CARGOS_SETTINGS: &[(&str, &str, &str)] = &[
    ("target-dir", "CARGO_TARGET_DIR", "cargo-target"),
    ("build-dir", "CARGO_BUILD_BUILD_DIR", "cargo-build"),
];

const MOST: u64 = 1 << 20;

#[derive(Clone, Debug, Default)]
pub struct Builds {
    /// Variables that are passed on unchanged, since agents may write to the directories in them.
    stay: Vec<&'static str>,
    outside: Vec<Outside>,
}

#[derive(Clone, Debug)]
struct Outside {
    variable: &'static str,
    /// Name of the directory in the private caches that replaces the one in the variable.
    name: &'static str,
    said: String,
}

#[derive(Clone, Copy, Debug)]
pub struct BuildRoots<'a> {
    /// Path of the project, on which relative paths are based.
    pub project: &'a Path,
    /// Directories besides the project that agents may write.
    pub write: &'a [PathBuf],
    pub home: Option<&'a Path>,
}

impl Builds {
    pub fn find(
        value: impl Fn(&str) -> Option<OsString>,
        environment: &Environment,
        around: BuildRoots<'_>,
    ) -> Self {
        let mut builds = Self::default();
        for &(variable, name) in VARIABLES.iter().filter(|(variable, _)| !is_named(environment, variable)) {
            let place = value(variable).filter(|place| !place.is_empty()).map(PathBuf::from);
            match place.map(|place| (around.may_be_written(around.project, &place), place)) {
                Some((true, _)) => builds.stay.push(variable),
                Some((false, place)) => {
                    let said = format!("{variable}={}", place.display());
                    builds.outside.push(Outside { variable, name, said });
                }
                None => {}
            }
        }
        let is_set = |variable| value(variable).is_some() || is_named(environment, variable);
        let is_said = |name| VARIABLES.iter().any(|(variable, of)| *of == name && is_set(variable));
        let settings = around.of_cargos_settings(value("CARGO_HOME").map(PathBuf::from));
        builds.outside.extend(settings.into_iter().filter(|outside| !is_said(outside.name)));
        builds
    }

    pub fn lead(&self, environment: &mut Environment, place: &Path) {
        environment.pass.extend(self.stay.iter().map(ToString::to_string));
        let moved = |outside: &Outside| {
            (outside.variable.to_owned(), super::caches::bytes(&place.join(outside.name)))
        };
        environment.set.extend(self.outside.iter().map(moved));
    }

    pub fn notes(&self, environment: &Environment) -> Vec<String> {
        let note = |Outside { variable, said, .. }: &Outside| {
            let (_, place) = environment.set.iter().find(|(name, _)| name == variable)?;
            let place = String::from_utf8_lossy(place);
            Some(format!("{said} is outside the writable directories: builds in the sandbox use {place}"))
        };
        self.outside.iter().filter_map(note).collect()
    }
}

pub(super) fn is_named(environment: &Environment, variable: &str) -> bool {
    let set = environment.set.iter().map(|(name, _)| name);
    environment.pass.iter().chain(set).any(|name| name == variable)
}

impl BuildRoots<'_> {
    /// True if agents may write to the directory, links resolved, at least in mode `auto`. A path that begins with a
    /// template of cargo counts as writable only if the template is `{workspace-root}`, the project.
    fn may_be_written(&self, base: &Path, directory: &Path) -> bool {
        if directory.as_os_str().as_bytes().starts_with(b"{") {
            return directory.starts_with("{workspace-root}");
        }
        let real = resolved(&base.join(directory));
        real.starts_with(self.project) || self.write.iter().any(|root| real.starts_with(root))
    }

    /// Returns the build directories that `~/.cargo/config.toml` sets outside of writable directories. Relative paths
    /// start at the parent of cargo's home (The Cargo Book, "Config-relative paths"). Ignores a home that agents may
    /// write.
    fn of_cargos_settings(&self, cargo_home: Option<PathBuf>) -> Vec<Outside> {
        let cargo_home = cargo_home.or_else(|| Some(self.home?.join(".cargo"))).unwrap_or_default();
        let is_users_own = !self.may_be_written(self.project, &cargo_home);
        let settings = is_users_own.then(|| settings(&cargo_home.join("config.toml"))).flatten();
        let Some((settings, base)) = settings.zip(cargo_home.parent()) else { return Vec::new() };
        let outside = |&(setting, variable, name): &(&str, &'static str, &'static str)| {
            let named = settings.get("build")?.get(setting)?.as_str()?;
            let said = format!("build.{setting}={named}");
            (!self.may_be_written(base, Path::new(named))).then_some(Outside { variable, name, said })
        };
        CARGOS_SETTINGS.iter().filter_map(outside).collect()
    }
}

fn settings(file: &Path) -> Option<Document<String>> {
    // Opening a pipe would block.
    let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(file).ok()?;
    file.metadata().ok().filter(Metadata::is_file)?;
    let mut text = String::new();
    file.take(MOST).read_to_string(&mut text).ok()?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the variables that are set, the number of notes, and the variables that are passed on.
    fn led(said: &[(&str, &str)], environment: &Environment) -> (Vec<String>, usize, Vec<String>) {
        let value = |name: &str| said.iter().find(|(said, _)| *said == name).map(|(_, it)| it.into());
        let write = ["/data".into()];
        let around = BuildRoots { project: Path::new("/no/p"), write: &write, home: None };
        let builds = Builds::find(value, environment, around);
        let mut environment = environment.clone();
        builds.lead(&mut environment, Path::new("/c"));
        let set = environment.set.iter().map(|(name, it)| format!("{name}={}", it.escape_ascii()));
        (set.collect(), builds.notes(&environment).len(), environment.pass)
    }

    #[test]
    fn a_directory_outside_is_moved_and_one_inside_stays() {
        let none = Environment::default();
        let (set, notes, pass) = led(&[("CARGO_TARGET_DIR", "/x"), ("RUFF_CACHE_DIR", "/no/p/r")], &none);
        assert_eq!((set, notes), (vec!["CARGO_TARGET_DIR=/c/cargo-target".to_owned()], 1));
        assert_eq!(pass, ["RUFF_CACHE_DIR"]);
        for inside in ["target", "./a/../b", "/no/p", "/data/x", "{workspace-root}/x"] {
            assert_eq!(led(&[("CARGO_TARGET_DIR", inside)], &none).0, [""; 0], "{inside}");
        }
        for outside in ["../target", "a/../../b", "/no/pp", "/", "{cargo-cache-home}/build"] {
            assert_eq!(led(&[("CARGO_TARGET_DIR", outside)], &none).1, 1, "{outside}");
        }
        assert_eq!(led(&[("CARGO_TARGET_DIR", "")], &none), (vec![], 0, vec![]));
    }

    #[test]
    fn a_flag_has_the_last_word() {
        let set = vec![("CARGO_TARGET_DIR".to_owned(), b"/mine".to_vec())];
        let said = Environment { pass: vec!["RUFF_CACHE_DIR".to_owned()], set, caches: None };
        let led = led(&[("CARGO_TARGET_DIR", "/x"), ("RUFF_CACHE_DIR", "/x")], &said);
        assert_eq!(led, (vec!["CARGO_TARGET_DIR=/mine".to_owned()], 0, vec!["RUFF_CACHE_DIR".to_owned()]));
    }
}
