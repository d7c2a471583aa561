//! Pictures dropped on the terminal window. The terminal pastes the path of the file; the UI offers to attach the
//! picture.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use ipc::image::Image;

/// Maximum length in bytes of a paste that may be a path.
const LONGEST: usize = 4096;

/// Extensions of picture files. The content is checked later.
const ENDINGS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// Picture whose path was pasted, and which can be attached instead, until the next paste.
#[derive(Debug)]
pub(crate) struct Dropped {
    /// Pasted text, as it stands in the prompt.
    pub text: String,
    pub image: Image,
}

/// Returns the path if a paste is the path of one picture: bare, quoted, escaped, or as a `file:` URL.
pub(crate) fn path_in(paste: &str) -> Option<PathBuf> {
    let text = paste.trim();
    if text.len() > LONGEST || text.chars().any(char::is_control) {
        return None;
    }
    let quoted =
        |mark: char| text.strip_prefix(mark)?.strip_suffix(mark).filter(|inner| !inner.contains(mark));
    let bytes = if let Some(inner) = quoted('\'').or_else(|| quoted('"')) {
        inner.as_bytes().to_vec()
    } else if let Some(address) = text.strip_prefix("file://") {
        decoded(address.strip_prefix("localhost").unwrap_or(address))?
    } else {
        unescaped(text)?
    };
    let begins = bytes.starts_with(b"/") || bytes.starts_with(b"~/");
    let name = String::from_utf8_lossy(&bytes).to_lowercase();
    let is_path = begins && ENDINGS.iter().any(|ending| name.ends_with(ending)) && !bytes.contains(&0);
    is_path.then(|| OsString::from_vec(bytes).into())
}

/// Removes the backslashes of shell quoting; `None` if an unescaped space shows that there are two paths.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => plain.push(chars.next()?),
            c if c.is_whitespace() => return None,
            c => plain.push(c),
        }
    }
    Some(plain.into_bytes())
}

/// Returns the path of a percent-encoded `file:` URL (RFC 8089); `None` if the encoding is invalid.
fn decoded(address: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(address.len());
    let mut rest = address.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?
            }
            byte => byte,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_path_of_a_picture_is_found_in_every_form() {
        for (paste, path) in [
            ("/home/me/a.png", "/home/me/a.png"),
            ("~/a.JPEG \n", "~/a.JPEG"),
            ("'/home/me/a b.png' ", "/home/me/a b.png"),
            ("\"/home/me/a b.webp\"", "/home/me/a b.webp"),
            ("/home/me/a\\ b\\(1\\).gif", "/home/me/a b(1).gif"),
            ("file:///home/me/a%20b.png", "/home/me/a b.png"),
            ("file://localhost/a.jpg", "/a.jpg"),
        ] {
            assert_eq!(path_in(paste), Some(path.into()), "{paste}");
        }
    }

    #[test]
    fn other_texts_are_no_path() {
        for paste in [
            "",
            "a.png",
            "/home/me/a.txt",
            "/home/me/a.png /home/me/b.png",
            "/home/me/a.png\n/home/me/b.png",
            "see /home/me/a.png",
            "'/a.png' '/b.png'",
            "file://host/a.png",
            "file:///a%2.png%",
            "file:///a%00.png",
            "/a\\",
            "/a\u{1b}.png",
            &format!("/{}.png", "a".repeat(LONGEST)),
        ] {
            assert_eq!(path_in(paste), None, "{paste}");
        }
    }
}
