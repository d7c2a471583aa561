use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Splits `NAME` or `NAME=VALUE` into the name and the value, if any. `None` if the name is invalid.
pub fn split_variable(setting: &OsStr) -> Option<(&str, Option<&[u8]>)> {
    let bytes = setting.as_bytes();
    let (name, value) = match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => (&bytes[..at], Some(&bytes[at + 1..])),
        None => (bytes, None),
    };
    let name = std::str::from_utf8(name).ok().filter(|name| is_name(name))?;
    Some((name, value))
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_named_or_set() {
        let split = |text: &'static str| split_variable(OsStr::new(text));
        assert_eq!(split("FOO"), Some(("FOO", None)));
        assert_eq!(split("BAR=a=b"), Some(("BAR", Some(&b"a=b"[..]))));
        assert_eq!(split("_1="), Some(("_1", Some(&b""[..]))));
        for bad in ["", "=x", "A-B", "1A", "A B=c", "\u{e4}"] {
            assert_eq!(split(bad), None, "{bad}");
        }
    }
}
