//! `bailiwick sessions prune`: deletes old sessions.

use std::io::{self, Write};
use std::time::SystemTime;

use super::sessions::{counted, size};
use crate::journal::sessions::{Keep, Pruned, prune};
use crate::process::directories::Directories;
use crate::process::exit::Exit;
use crate::process::messages::{complain, harmless};
use crate::settings::args::PruneArgs;

/// Deletes the sessions beyond the limits. Without any limit, deletes nothing and fails.
pub(super) fn run(args: &PruneArgs, directories: &Directories) -> Exit {
    let keep = Keep { days: args.older_than, mib: args.larger_than };
    if keep.is_everything() {
        complain(
            &"cannot delete sessions: no limit given\n  hint: --older-than DAYS, --larger-than MIB, or both; \
            --dry-run only lists these sessions",
        );
        return Exit::Usage;
    }
    let project =
        args.directory.as_ref().map(|project| project.canonicalize().unwrap_or_else(|_| project.clone()));
    let pruned = prune(&directories.sessions(), project.as_deref(), keep, SystemTime::now(), args.dry_run);
    let pruned = match pruned {
        Ok(pruned) => pruned,
        Err(error) => {
            complain(&format!("cannot delete sessions: {error}"));
            return Exit::Internal;
        }
    };
    for error in &pruned.failed {
        complain(error);
    }
    match print(&pruned, args.dry_run) {
        Ok(()) if pruned.failed.is_empty() => Exit::Done,
        _ => Exit::Internal,
    }
}

fn print(pruned: &Pruned, is_rehearsal: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let verb = if is_rehearsal { "would delete" } else { "deleted" };
    for gone in &pruned.deleted {
        let id = gone.log.file_stem().unwrap_or_default().to_string_lossy();
        writeln!(out, "{verb} {}  {}", harmless(&id), size(gone.bytes))?;
    }
    for log in &pruned.held {
        let id = log.file_stem().unwrap_or_default().to_string_lossy();
        writeln!(out, "not deleted: {}, which a process has open", harmless(&id))?;
    }
    let bytes = pruned.deleted.iter().map(|gone| gone.bytes).sum();
    writeln!(out, "{verb} {}, {}", counted(pruned.deleted.len()), size(bytes))?;
    out.flush()
}
