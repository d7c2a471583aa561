//! Copies text: always to a file, and also to the terminal's clipboard (OSC 52), which a terminal may silently ignore.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use tui::Copied;

/// Maximum size in bytes of a text that is sent to a terminal. Many terminals drop longer texts.
const MOST: usize = 100_000;

pub(super) fn file(state: &Path) -> PathBuf {
    state.join("copied.txt")
}

pub(super) fn to_clipboard(text: &str) -> Option<Vec<u8>> {
    (text.len() <= MOST).then(|| format!("\x1b]52;c;{}\x1b\\", BASE64_STANDARD.encode(text)).into_bytes())
}

/// Replaces the file with a new one of mode 0600 that has the text. Symbolic links are not followed.
pub(super) fn write(file: &Path, text: &str) -> io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(directory)?;
    new.as_file().set_permissions(fs::Permissions::from_mode(0o600))?;
    new.write_all(text.as_bytes())?;
    new.persist(file)?;
    Ok(())
}

/// Returns the message about a copy. The message does not promise success, because terminals do not report success.
pub(super) fn told(what: Copied, is_sent: bool, file: &Path, written: &io::Result<()>) -> String {
    let what = what.as_str();
    let file = file.display();
    match (is_sent, written) {
        (true, Ok(())) => format!("{what}: sent to the terminal's clipboard (OSC 52), and written to {file}"),
        (false, Ok(())) => format!("{what}: too long for the terminal's clipboard; written to {file}"),
        (true, Err(error)) => {
            format!("{what}: sent to the terminal's clipboard (OSC 52); cannot write {file}: {error}")
        }
        (false, Err(error)) => {
            format!(
                "{what}: not copied: too long for the terminal's clipboard, and cannot write {file}: {error}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn text_for_the_clipboard_is_base64_and_has_a_bound() {
        assert_eq!(to_clipboard("a\x1b\\b").unwrap(), b"\x1b]52;c;YRtcYg==\x1b\\");
        assert!(to_clipboard(&"x".repeat(MOST)).is_some() && to_clipboard(&"x".repeat(MOST + 1)).is_none());
    }

    #[test]
    fn the_file_is_the_users_own_and_follows_no_link() {
        let place = tempfile::tempdir().unwrap();
        let file = file(place.path());
        let other = place.path().join("other");
        fs::write(&other, "kept").unwrap();
        symlink(&other, &file).unwrap();
        write(&file, "one").unwrap();
        write(&file, "two").unwrap();
        assert_eq!(
            (fs::read_to_string(&file).unwrap().as_str(), fs::read_to_string(&other).unwrap().as_str()),
            ("two", "kept")
        );
        assert_eq!(fs::symlink_metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn the_sentence_claims_no_more_than_is_known() {
        let failed = || Err(io::Error::other("no room"));
        let file = Path::new("/s/copied.txt");
        let told = [(true, Ok(())), (false, Ok(())), (true, failed()), (false, failed())]
            .map(|(sent, written)| told(Copied::Answer, sent, file, &written));
        insta::assert_snapshot!(told.join("\n"), @r"
        the last answer: sent to the terminal's clipboard (OSC 52), and written to /s/copied.txt
        the last answer: too long for the terminal's clipboard; written to /s/copied.txt
        the last answer: sent to the terminal's clipboard (OSC 52); cannot write /s/copied.txt: no room
        the last answer: not copied: too long for the terminal's clipboard, and cannot write /s/copied.txt: no room
        ");
    }
}
