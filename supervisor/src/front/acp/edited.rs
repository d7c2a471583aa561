use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Maximum size in bytes of a plan's file.
const MOST: u64 = 256 << 10;

/// Reads the file that the supervisor created for a plan and that the person has edited. Blocks the thread.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let cannot = |error: &dyn std::fmt::Display| format!("cannot read the plan's file: {error}");
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path).map_err(|error| cannot(&error))?;
    if !file.metadata().map_err(|error| cannot(&error))?.is_file() {
        return Err(cannot(&"the path is not a regular file"));
    }
    let mut text = String::new();
    file.take(MOST + 1).read_to_string(&mut text).map_err(|error| cannot(&error))?;
    if text.len() as u64 > MOST {
        return Err(cannot(&"the file has more than 256 KiB"));
    }
    Ok(text)
}
