//! The directories of Bailiwick: XDG base directories, or everything below `BAILIWICK_HOME`.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Bailiwick's three directories. Workers cannot read them, except for the caches of their own project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directories {
    /// Settings, and a key file for each provider.
    pub config: PathBuf,
    /// Everything that must be kept: session logs, plans, checkpoints, the protected files' baselines, files moved
    /// aside, and locks and sockets of running sessions.
    pub state: PathBuf,
    /// Data that can be made again. Each project has its own caches, which its agents may write.
    pub cache: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum DirectoriesError {
    /// Neither `BAILIWICK_HOME` nor `HOME` is an absolute path.
    #[error(
        "neither BAILIWICK_HOME nor HOME is an absolute path; set BAILIWICK_HOME to a directory of your own"
    )]
    NoHome,
    /// `BAILIWICK_HOME` is relative: it would name another directory in each working directory.
    #[error(
        "BAILIWICK_HOME is {0:?}, which is not an absolute path\n  hint: set it to the absolute path of a \
         directory of your own"
    )]
    RelativeHome(PathBuf),
    /// A directory cannot be created.
    #[error("cannot make {path}: {source}; set BAILIWICK_HOME to a directory that you can write")]
    Make { path: PathBuf, source: io::Error },
}

impl Directories {
    /// Determines the directories from environment variables.
    pub fn from_environment(get: impl Fn(&str) -> Option<OsString>) -> Result<Self, DirectoriesError> {
        let absolute = |name: &str| get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        if let Some(home) =
            get("BAILIWICK_HOME").map(PathBuf::from).filter(|home| !home.as_os_str().is_empty())
        {
            if !home.is_absolute() {
                return Err(DirectoriesError::RelativeHome(home));
            }
            return Ok(Self {
                config: home.join("config"),
                state: home.join("state"),
                cache: home.join("cache"),
            });
        }
        let home = absolute("HOME");
        let place = |variable: &str, below: &str| {
            let base = absolute(variable).or_else(|| home.as_ref().map(|home| home.join(below)));
            base.map(|base| base.join("bailiwick")).ok_or(DirectoriesError::NoHome)
        };
        Ok(Self {
            config: place("XDG_CONFIG_HOME", ".config")?,
            state: place("XDG_STATE_HOME", ".local/state")?,
            cache: place("XDG_CACHE_HOME", ".cache")?,
        })
    }

    pub fn of_process() -> Result<Self, DirectoriesError> {
        Self::from_environment(|name| std::env::var_os(name))
    }

    /// Returns the environment variable that determines the location of `place`; `None` for a default location.
    pub fn chosen_by(&self, place: &Path, get: impl Fn(&str) -> Option<OsString>) -> Option<&'static str> {
        let is_set = |name: &&str| get(name).is_some_and(|value| Path::new(&value).is_absolute());
        let own = [
            (&self.config, "XDG_CONFIG_HOME"),
            (&self.state, "XDG_STATE_HOME"),
            (&self.cache, "XDG_CACHE_HOME"),
        ];
        let resolved = |own: &PathBuf| own.canonicalize().unwrap_or_else(|_| own.clone());
        let (_, name) = own.into_iter().find(|(own, _)| place.starts_with(resolved(own)))?;
        ["BAILIWICK_HOME", name].into_iter().find(is_set)
    }

    /// Returns all three directories, which are hidden from agents.
    pub fn own(&self) -> [PathBuf; 3] {
        [&self.config, &self.state, &self.cache].map(PathBuf::clone)
    }

    pub fn sessions(&self) -> PathBuf {
        self.state.join("sessions")
    }

    pub fn plans(&self) -> PathBuf {
        self.state.join("plans")
    }

    /// Returns the directory of the locks that protect private temporary directories in use.
    pub fn locks(&self) -> PathBuf {
        self.state.join("temps")
    }

    /// Returns the directory of the sockets of running sessions.
    pub fn live(&self) -> PathBuf {
        self.state.join("live")
    }

    /// Returns the directory for files that were moved out of git directories, because git would execute or obey them.
    pub fn aside(&self) -> PathBuf {
        self.state.join("moved-aside")
    }

    /// Returns the directory for the original states of protected files, kept while a session may change these files.
    pub fn baselines(&self) -> PathBuf {
        self.state.join("baselines")
    }

    pub fn key_file(&self, provider: &str) -> PathBuf {
        self.config.join(format!("{provider}.key"))
    }

    /// Creates the directories that a session needs, with mode 0700.
    pub fn make(&self) -> Result<(), DirectoriesError> {
        for path in [&self.config, &self.sessions(), &self.locks(), &self.live()] {
            make_private(path).map_err(|source| DirectoriesError::Make { path: path.clone(), source })?;
        }
        Ok(())
    }
}

fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directories(variables: &[(&str, &str)]) -> Result<Directories, DirectoriesError> {
        let variables = variables.to_vec();
        Directories::from_environment(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn each_directory_follows_its_variable() {
        let found =
            directories(&[("HOME", "/h"), ("XDG_STATE_HOME", "/s"), ("XDG_CACHE_HOME", "relative")]).unwrap();
        assert_eq!(found.config, Path::new("/h/.config/bailiwick"));
        assert_eq!(found.state, Path::new("/s/bailiwick"));
        assert_eq!(found.cache, Path::new("/h/.cache/bailiwick"), "a relative value is ignored, as XDG says");
    }

    #[test]
    fn bailiwick_home_moves_everything() {
        let found = directories(&[("HOME", "/h"), ("BAILIWICK_HOME", "/b")]).unwrap();
        assert_eq!(found.key_file("anthropic"), Path::new("/b/config/anthropic.key"));
        assert_eq!(found.sessions(), Path::new("/b/state/sessions"));
    }

    #[test]
    fn a_place_names_the_variable_that_chose_it() {
        let chosen = |variables: &[(&str, &str)], place: &str| {
            let get = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
            };
            directories(variables).unwrap().chosen_by(Path::new(place), get)
        };
        let home = ("HOME", "/nonexistent");
        assert_eq!(chosen(&[home, ("BAILIWICK_HOME", "/b")], "/b/config"), Some("BAILIWICK_HOME"));
        let state = [home, ("XDG_STATE_HOME", "/s")];
        assert_eq!(chosen(&state, "/s/bailiwick"), Some("XDG_STATE_HOME"));
        assert_eq!(chosen(&state, "/nonexistent/.config/bailiwick"), None);
        assert_eq!(chosen(&state, "/etc"), None);
    }

    #[test]
    fn a_relative_bailiwick_home_is_an_error_and_an_empty_one_is_none() {
        let error = directories(&[("HOME", "/h"), ("BAILIWICK_HOME", "b")]).unwrap_err().to_string();
        assert!(
            error.starts_with("BAILIWICK_HOME is \"b\", which is not an absolute path\n  hint: "),
            "{error}"
        );
        let unset = directories(&[("HOME", "/h"), ("BAILIWICK_HOME", "")]).unwrap();
        assert_eq!(unset, directories(&[("HOME", "/h")]).unwrap());
    }

    #[test]
    fn no_home_is_an_error_with_a_remedy() {
        let error = directories(&[]).unwrap_err().to_string();
        assert!(error.contains("set BAILIWICK_HOME"), "{error}");
    }
}
