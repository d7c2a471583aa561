//! Runs `bailiwick exec` in tests.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use model::replay::ReplayServer;

use crate::process::Finished;
use crate::world::{KEY, World};

impl World {
    /// Returns `bailiwick exec` with the project, an API key, this base URL, and exactly these other arguments.
    pub fn task<S: AsRef<OsStr>>(&self, base_url: &str, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.bailiwick(["exec", "--base-url", base_url]);
        command.arg("-C").arg(self.project()).args(self.tier_flags()).args(arguments);
        command.env("ANTHROPIC_API_KEY", KEY);
        command
    }

    /// Creates a directory outside of the project with the file `there.txt`. The world's user can write both.
    pub fn outside(&self) -> PathBuf {
        let place = self.root().join("outside");
        fs::create_dir(&place).expect("our own directory");
        fs::write(place.join("there.txt"), "untouched\n").expect("our own file");
        for path in [&place, &place.join("there.txt")] {
            self.give(path);
        }
        place
    }

    pub fn run(&self, server: &ReplayServer, arguments: &[&str]) -> Finished {
        Finished::of(&mut self.exec(server, arguments))
    }

    /// Replaces the path of the test's directory in a text by a fixed word, because the path differs from run to run.
    pub fn stable(&self, text: &str) -> String {
        text.replace(&self.root().display().to_string(), "[world]")
    }
}

impl Finished {
    /// Returns the `data` of the last event: the result of the run.
    pub fn result(&self) -> serde_json::Value {
        let events = self.events();
        let last = events.last().unwrap_or_else(|| panic!("no events: {}", self.stderr));
        assert_eq!(last["type"], "result", "{last}");
        last["data"].clone()
    }

    /// Fails the test, and shows the whole output, if the program has ended with another exit code.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "the check itself may be all that is wanted")]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
        self
    }
}
