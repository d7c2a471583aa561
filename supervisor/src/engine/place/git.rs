//! The user's git, run in a sandbox that may read the same as an agent and write nothing.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, pipe};
use std::path::Path;
use std::thread;
use std::time::Duration;

use ipc::confinement::{Confinement, Environment};

use boundary::monitor::{Launch, Launched, Spawner, Stdio};
use boundary::tripwire::{ConfinedGit, GitQuestion};

/// Time limit for one call of git, since the user waits for it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Variables with which git fetches no missing objects, ignores replacement objects, and writes nothing.
pub(crate) const GIT_READS: &[(&str, &str)] =
    &[("GIT_NO_LAZY_FETCH", "1"), ("GIT_NO_REPLACE_OBJECTS", "1"), ("GIT_OPTIONAL_LOCKS", "0")];

/// Prefix of variables that contain git configuration or name a file with it, git-config(1).
const CONFIGURATION: &str = "GIT_CONFIG";

#[derive(Debug)]
pub(super) struct ReadingGit {
    spawner: Spawner,
    confinement: Confinement,
}

impl ReadingGit {
    /// Prepares to run git in the confinement `confinement`, but without write access.
    pub(super) fn new(spawner: Spawner, confinement: Confinement) -> Self {
        let set = GIT_READS.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let pass = names.filter(|name| name.starts_with(CONFIGURATION)).collect();
        let environment = Environment { pass, set: set.collect(), ..Environment::default() };
        Self { spawner, confinement: Confinement { environment, read_only: true, ..confinement } }
    }

    fn launch(&self, launch: Launch) -> io::Result<Launched> {
        // On a thread of its own, since a thread of the runtime must not wait for the runtime.
        let spawn = || self.spawner.spawn_and_wait(launch);
        let launched = thread::scope(|scope| scope.spawn(spawn).join());
        launched.map_err(|_| io::ErrorKind::Other)?.map_err(io::Error::other)
    }
}

impl ConfinedGit for ReadingGit {
    fn start(&self, directory: &Path, command: &[&OsStr]) -> io::Result<GitQuestion> {
        let (stdin, questions) = pipe()?;
        let (answers, stdout) = pipe()?;
        let nowhere = File::options().write(true).open("/dev/null")?;
        let streams = Stdio::Given { stdin: stdin.into(), stdout: stdout.into(), stderr: nowhere.into() };
        let confinement = Confinement { project: directory.into(), ..self.confinement.clone() };
        let command: Vec<OsString> = command.iter().map(|word| (*word).to_owned()).collect();
        let launched = self.launch(Launch { confinement, command, arguments: Vec::new(), stdio: streams })?;
        Ok(GitQuestion::new([questions.into(), answers.into()], [launched.pidfd, launched.status], PATIENCE))
    }
}
