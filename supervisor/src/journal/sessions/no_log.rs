//! Detects an export that was given where a log is expected. Because of its other digest chain, it would be reported as
//! a changed log.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use protocol::shell_word::shell_word;
use serde::Deserialize;

use super::archive::LONGEST_HEAD;

/// The file is an export and not a log.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot read {file} as a log: the file is an export\n  hint: bailiwick import {file} makes a session of this export",
    file = shell_word(.0)
)]
pub(crate) struct IsExport(PathBuf);

/// Fails if a file is an export of any version. An unreadable file or a pipe is no error here; its reader reports that.
pub(crate) fn check_no_export(file: &Path) -> Result<(), IsExport> {
    if has_head(file) { Err(IsExport(file.to_owned())) } else { Ok(()) }
}

fn has_head(path: &Path) -> bool {
    #[derive(Deserialize)]
    struct ExportVersion {
        #[serde(rename = "bailiwick_export")]
        _version: u32,
    }
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    let Some(file) = is_file.then(|| File::open(path).ok()).flatten() else { return false };
    let mut first = Vec::new();
    let read = BufReader::new(file.take(LONGEST_HEAD as u64)).read_until(b'\n', &mut first);
    read.is_ok() && serde_json::from_slice::<ExportVersion>(&first).is_ok()
}
