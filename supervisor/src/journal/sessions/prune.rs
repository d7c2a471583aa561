//! Deletes old sessions: those whose last write is long ago, and, if all sessions together are too large, the oldest
//! ones.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::index::logs;
use crate::journal::checkpoints;
use crate::journal::session::{LogError, Removal, begun, remove};

const DAY: u64 = 24 * 60 * 60;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keep {
    /// Maximum age in days, since the last write, of a session that is kept; `None` keeps sessions of any age.
    pub days: Option<u64>,
    /// Maximum total size in MiB of the sessions that are kept, the newest first; `None` keeps any size.
    pub mib: Option<u64>,
}

/// The sessions that were deleted. In a dry run, those that would be deleted.
#[derive(Debug, Default)]
pub(crate) struct Pruned {
    pub deleted: Vec<Gone>,
    pub held: Vec<PathBuf>,
    pub failed: Vec<LogError>,
}

#[derive(Debug)]
pub(crate) struct Gone {
    pub log: PathBuf,
    pub bytes: u64,
}

impl Keep {
    pub(crate) const fn is_everything(&self) -> bool {
        self.days.is_none() && self.mib.is_none()
    }
}

impl Pruned {
    /// Returns a sentence about the deleted sessions; `None` if there are none.
    pub(crate) fn line(&self) -> Option<String> {
        let bytes: u64 = self.deleted.iter().map(|gone| gone.bytes).sum();
        let unit = if self.deleted.len() == 1 { "session" } else { "sessions" };
        (!self.deleted.is_empty()).then(|| {
            format!(
                "deleted {} old {unit} ({} KiB), because of sessions.keep_days and sessions.keep_mib",
                self.deleted.len(),
                bytes.div_ceil(1 << 10)
            )
        })
    }
}

/// Deletes the sessions that [`Keep`] excludes, the oldest first. If `project` is given, deletes only sessions of that
/// project. Keeps sessions that a process has open. In a dry run (`is_rehearsal`) nothing is deleted.
pub(crate) fn prune(
    sessions: &Path,
    project: Option<&Path>,
    keep: Keep,
    now: SystemTime,
    is_rehearsal: bool,
) -> io::Result<Pruned> {
    let mut pruned = Pruned::default();
    if keep.is_everything() {
        return Ok(pruned);
    }
    let is_meant = |name: &str| project.is_none_or(|project| is_of(&sessions.join(name), project));
    let mut logs: Vec<_> = logs(sessions)?
        .into_iter()
        .filter(|(name, _)| is_meant(name))
        .map(|(name, file)| (modified(&file), name, file.len()))
        .collect();
    logs.sort();
    let mut total: u64 = logs.iter().map(|(_, _, bytes)| bytes).sum();
    let oldest = keep.days.map(|days| Duration::from_secs(days.saturating_mul(DAY)));
    let most = keep.mib.map(|mib| mib.saturating_mul(1 << 20));
    for (changed, name, bytes) in logs {
        // A time in the future counts as age zero.
        let age = now.duration_since(changed).unwrap_or_default();
        let is_old = oldest.is_some_and(|oldest| age > oldest);
        if !is_old && most.is_none_or(|most| total <= most) {
            continue;
        }
        let log = sessions.join(name);
        match remove(&log, is_rehearsal) {
            Ok(Removal::Removed) => {
                total -= bytes;
                if let (Some(state), false) = (sessions.parent(), is_rehearsal) {
                    let session = log.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
                    // Checkpoints that remain are removed by the next prune.
                    let _ = checkpoints::remove(state, session);
                }
                pruned.deleted.push(Gone { log, bytes });
            }
            Ok(Removal::Held) => pruned.held.push(log),
            Err(error) => pruned.failed.push(error),
        }
    }
    Ok(pruned)
}

/// True if the log's session began in this project.
fn is_of(log: &Path, project: &Path) -> bool {
    begun(log).is_some_and(|started| started.project.as_path() == project)
}

fn modified(file: &fs::Metadata) -> SystemTime {
    file.modified().unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;
    use crate::journal::session::SessionLog;

    /// Creates a directory with logs of these sizes in MiB. Each log is a day older than the next.
    fn sessions(sizes: &[u64], now: SystemTime) -> (TempDir, PathBuf) {
        let state = TempDir::new().unwrap();
        let sessions = state.path().join("sessions");
        fs::create_dir(&sessions).unwrap();
        for (at, size) in sizes.iter().enumerate() {
            let file = File::create(sessions.join(format!("s-{at}.jsonl"))).unwrap();
            file.set_len(size << 20).unwrap();
            let age = Duration::from_secs((sizes.len() - 1 - at) as u64 * DAY);
            file.set_modified(now - age).unwrap();
        }
        (state, sessions)
    }

    fn names(pruned: &Pruned) -> Vec<String> {
        pruned.deleted.iter().map(|gone| gone.log.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_old_ones_go_and_the_oldest_until_the_rest_is_small_enough() {
        let now = SystemTime::now();
        let by = |keep: Keep| {
            let (_state, sessions) = sessions(&[5, 1, 1, 3], now);
            let rehearsed = names(&prune(&sessions, None, keep, now, true).unwrap());
            let checkpoints: Vec<_> =
                (0..4).map(|at| sessions.with_file_name("checkpoints").join(format!("s-{at}"))).collect();
            for checkpoints in &checkpoints {
                fs::create_dir_all(checkpoints).unwrap();
            }
            let pruned = prune(&sessions, None, keep, now, false).unwrap();
            assert_eq!(names(&pruned), rehearsed);
            assert_eq!(
                checkpoints.iter().filter(|checkpoints| !checkpoints.exists()).count(),
                rehearsed.len()
            );
            assert_eq!(fs::read_dir(&sessions).unwrap().count(), 4 - rehearsed.len());
            rehearsed
        };
        let (days, mib) =
            (|days| Keep { days: Some(days), mib: None }, |mib| Keep { days: None, mib: Some(mib) });
        assert_eq!(by(days(1)), ["s-0", "s-1"]);
        assert_eq!(by(days(0)), ["s-0", "s-1", "s-2"]);
        assert_eq!(by(days(u64::MAX)), Vec::<String>::new());
        assert_eq!(by(mib(9)), ["s-0"]);
        assert_eq!(by(mib(4)), ["s-0", "s-1"]);
        assert_eq!(by(mib(0)), ["s-0", "s-1", "s-2", "s-3"]);
        assert_eq!(by(Keep { days: Some(2), mib: Some(3) }), ["s-0", "s-1", "s-2"]);
        assert_eq!(by(Keep::default()), Vec::<String>::new());
    }

    #[test]
    fn what_is_open_or_no_log_stays() {
        let now = SystemTime::now();
        let (state, sessions) = sessions(&[1], now);
        let open = SessionLog::create(state.path(), &"open".into()).unwrap();
        symlink("/etc/passwd", sessions.join("link.jsonl")).unwrap();
        fs::write(sessions.join("notes.txt"), "").unwrap();
        fs::create_dir(sessions.join("d.jsonl")).unwrap();
        let later = now + Duration::from_secs(10 * DAY);
        let pruned = prune(&sessions, None, Keep { days: Some(1), mib: Some(0) }, later, false).unwrap();
        assert_eq!(names(&pruned), ["s-0"]);
        assert_eq!(pruned.held, [open.path()]);
        assert!(pruned.failed.is_empty());
        assert_eq!(
            pruned.line().unwrap(),
            "deleted 1 old session (1024 KiB), because of sessions.keep_days and sessions.keep_mib"
        );
        assert_eq!(fs::read_dir(&sessions).unwrap().count(), 4);
    }
}
