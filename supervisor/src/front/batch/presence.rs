//! Waits for a stopped container engine. The stop is no failure of a task. Only one waiting run prints a message.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::command::Runs;
use super::contained::ask;
use super::engine::Engine;
use super::process::ProcessStop;
use crate::process::messages::say;

/// Longest time that a run waits for the engine.
const PATIENCE: Duration = Duration::from_mins(30);

/// Time between two checks of the engine.
const BETWEEN: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub(super) struct EnginePresence {
    is_away: AtomicBool,
}

impl EnginePresence {
    /// Waits until the engine answers. Fails after [`PATIENCE`]. `directory` is for files with the engine's output.
    pub(super) async fn wait(
        &self,
        engine: &Engine,
        directory: &Path,
        mut stop: ProcessStop,
    ) -> io::Result<()> {
        let until = Instant::now() + PATIENCE;
        let answers = directory.join("engine.answer");
        loop {
            let asked = ask(Runs::with_engine(engine, engine.list()), &answers).await?;
            fs::remove_file(&answers)?;
            if asked.status.success() {
                if self.is_away.swap(false, Ordering::Relaxed) {
                    say(&format!("{} responds again; the batch continues", engine.program));
                }
                return Ok(());
            }
            if !self.is_away.swap(true, Ordering::Relaxed) {
                say(&format!("{} does not respond; the batch waits", engine.program));
            }
            if Instant::now() > until {
                let minutes = PATIENCE.as_secs() / 60;
                return Err(io::Error::other(format!(
                    "{} did not respond for {minutes} minutes",
                    engine.program
                )));
            }
            tokio::select! {
                _ = stop.wait_for(Option::is_some) => return Ok(()),
                () = sleep(BETWEEN) => {}
            }
        }
    }
}
