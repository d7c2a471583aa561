//! `bailiwick sessions delete`: deletes sessions by name.

use std::io::{self, Write};
use std::path::Path;

use super::sessions::size;
use crate::engine::opening::find_log;
use crate::journal::sessions::{Deleted, Deletion, delete};
use crate::process::directories::Directories;
use crate::process::exit::{Exit, printed};
use crate::process::messages::{complain, harmless};
use crate::settings::args::DeleteArgs;

/// Deletes the named sessions. Deletes none of them if a name is unknown.
pub(super) fn run(args: &DeleteArgs, directories: &Directories) -> Exit {
    let find = |name: &String| find_log(&directories.sessions(), Some(name), Path::new("."));
    let mut logs = match args.sessions.iter().map(find).collect::<Result<Vec<_>, _>>() {
        Ok(logs) => logs,
        Err(error) => {
            complain(&error);
            return Exit::Usage;
        }
    };
    logs.sort();
    logs.dedup();
    let mut exit = Exit::Done;
    for log in logs {
        match delete(&directories.state, &log) {
            Ok(Deletion::Done(deleted)) => exit = printed(print(&log, &deleted), exit),
            Ok(Deletion::Held) => {
                complain(&format!(
                    "cannot delete the session {}: another process has this session open\n  hint: end the session there first",
                    id(&log)
                ));
                exit = Exit::Usage;
            }
            Err(error) => {
                complain(&format!("cannot delete the session {}: {error}", id(&log)));
                exit = Exit::Internal;
            }
        }
    }
    exit
}

fn print(log: &Path, deleted: &Deleted) -> io::Result<()> {
    let checkpoints = if deleted.had_checkpoints { ", and its checkpoints" } else { "" };
    writeln!(io::stdout(), "deleted {}: its log ({}){checkpoints}", id(log), size(deleted.bytes))
}

fn id(log: &Path) -> String {
    harmless(&log.file_stem().unwrap_or_default().to_string_lossy())
}
