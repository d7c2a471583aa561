use std::fmt;

use super::summary::SEPARATOR;
use crate::path::WirePath;

/// A path as one word of a line. Special characters are quoted and escaped, so that a path cannot look like two words,
/// like another item of the line or like another path.
pub struct Word<'a>(pub &'a WirePath);

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_path().to_str() {
            Some(text) if text.chars().all(is_plain) => f.write_str(text),
            _ => f.write_str(&format!("{:?}", self.0).replace(SEPARATOR, r"\u{b7}")),
        }
    }
}

fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "/._-+:@%=~#".contains(c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn word(path: &WirePath) -> String {
        Word(path).to_string()
    }

    #[test]
    fn a_usual_path_stands_as_it_is_and_any_other_is_quoted() {
        for plain in ["/home/me/p", "/tmp/bw-1", "/srv/Größe/a.b_c+d@e"] {
            assert_eq!(word(&plain.into()), plain);
        }
        assert_eq!(word(&"/home/me/a b".into()), r#""/home/me/a b""#);
        assert_eq!(word(&"/a,caches".into()), r#""/a,caches""#);
        assert_eq!(word(&"/rv · net on · b".into()), r#""/rv \u{b7} net on \u{b7} b""#);
        assert_eq!(word(&"/a\n\"\u{202e}".into()), r#""/a\n\"\u{202e}""#);
        assert_eq!(word(&b"/a\xff".to_vec().into()), r#""/a\xFF""#);
    }

    fn path() -> impl Strategy<Value = WirePath> {
        let odd = prop_oneof![
            Just(b" \xc2\xb7 net on".to_vec()),
            Just(b"\xef\xbf\xbd".to_vec()),
            Just(b"\\xFF".to_vec()),
            proptest::collection::vec(1u8.., 0..4),
        ];
        proptest::collection::vec(odd, 0..3).prop_map(|parts| [b"/".to_vec(), parts.concat()].concat().into())
    }

    proptest! {
        #[test]
        fn no_two_paths_are_the_same_word_and_none_is_an_item(left in path(), right in path()) {
            // Two equal paths may have different words: `/.` equals `/` by its components.
            let is_same = left.as_path().as_os_str() == right.as_path().as_os_str();
            prop_assert_eq!(is_same, word(&left) == word(&right));
            prop_assert!(!word(&left).contains(SEPARATOR) && !word(&left).contains(char::is_control));
            let is_bare = !word(&left).starts_with('"');
            prop_assert!(!(is_bare && word(&left).contains(char::is_whitespace)));
        }
    }
}
