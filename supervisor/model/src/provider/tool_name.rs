//! Names of tools in the calls of a model. In requests, an API accepts only names of the form that it prescribes.

use std::borrow::Cow;

const LONGEST: usize = 128;

/// Replaces the characters that APIs reject by `_`. The call is then one of an unknown tool. `None` for an empty name.
pub(crate) fn harmless(name: &str) -> Option<Cow<'_, str>> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() {
        return None;
    }
    if name.len() <= LONGEST && name.chars().all(fits) {
        return Some(Cow::Borrowed(name));
    }
    Some(name.chars().take(LONGEST).map(|c| if fits(c) { c } else { '_' }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r7_a_name_is_made_one_that_a_request_may_hold() {
        let long = "é".repeat(200);
        for (name, expected) in [
            ("read_file", Some("read_file")),
            ("a\nb", Some("a_b")),
            ("../../etc", Some("______etc")),
            (long.as_str(), Some("_".repeat(LONGEST).as_str())),
            ("", None),
        ] {
            assert_eq!(harmless(name).as_deref(), expected, "{name:?}");
        }
    }
}
