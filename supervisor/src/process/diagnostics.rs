//! Diagnostics by `tracing`, set up by environment variables, for a file or standard error, never for a UI.

use std::fs::OpenOptions;
use std::io::IsTerminal;
use std::os::unix::fs::OpenOptionsExt;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// Environment variable with the level and targets in the format of `EnvFilter`: `debug`, `supervisor::monitor=trace` …
const LEVEL: &str = "BAILIWICK_LOG";

/// Environment variable with the file for diagnostics. Without it they go to standard error.
const FILE: &str = "BAILIWICK_LOG_FILE";

/// Fails if diagnostics would go to the terminal on which the caller draws.
pub(crate) fn off_the_terminal() -> anyhow::Result<()> {
    let is_on = std::env::var_os(LEVEL).is_some_and(|level| !level.is_empty());
    if is_on && std::env::var_os(FILE).is_none() && std::io::stderr().is_terminal() {
        anyhow::bail!(
            "{LEVEL} would write onto the terminal that the UI draws on\n  hint: name a file in {FILE}"
        );
    }
    Ok(())
}

/// Turns diagnostics on if [`LEVEL`] is set.
pub(crate) fn start() -> anyhow::Result<()> {
    let Some(level) = std::env::var(LEVEL).ok().filter(|level| !level.is_empty()) else { return Ok(()) };
    let filter = EnvFilter::try_new(&level).map_err(|error| anyhow::anyhow!("{LEVEL}={level}: {error}"))?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_span_events(FmtSpan::NONE)
        .with_ansi(false)
        .without_time();
    match std::env::var_os(FILE) {
        None => subscriber.with_writer(std::io::stderr).init(),
        Some(path) => {
            let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
            let file = file.map_err(|error| anyhow::anyhow!("{FILE}={}: {error}", path.display()))?;
            subscriber.with_writer(std::sync::Mutex::new(file)).init();
        }
    }
    Ok(())
}
