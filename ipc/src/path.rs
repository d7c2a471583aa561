//! The type of all paths in messages.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

/// Path as the kernel knows it: any bytes but NUL, lossless in every format.
///
/// In JSON it is a string if the bytes are UTF-8, else an object `{"base64": "…"}`. serde fails for such a `PathBuf`.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WirePath(PathBuf);

impl WirePath {
    /// Returns the path as a type of the standard library.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Returns the bytes of the path.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_os_str().as_bytes()
    }

    /// True if `self` is `root` or is beneath it. Compares whole components.
    pub fn is_within(&self, root: &Self) -> bool {
        // A session has hundreds of hidden paths, most of them elsewhere. Names that differ in a letter show that
        // quickly.
        let differ = self.as_bytes().iter().zip(root.as_bytes()).find(|(inner, outer)| inner != outer);
        match differ {
            Some((inner, outer)) if is_in_a_name(*inner) && is_in_a_name(*outer) => false,
            _ => self.0.starts_with(&root.0),
        }
    }
}

/// True if a byte is a normal part of a name, and neither ends a component nor may begin one like `.` or `..`.
const fn is_in_a_name(byte: u8) -> bool {
    !matches!(byte, b'/' | b'.')
}

/// Returns the parent and the name of a path, if it has both. Splits a canonical path by bytes, since splitting by
/// components is several times slower.
pub fn split(path: &Path) -> Option<(&Path, &OsStr)> {
    let bytes = path.as_os_str().as_bytes();
    let slash = bytes.iter().rposition(|byte| *byte == b'/')?;
    match &bytes[slash + 1..] {
        b"" | b"." | b".." => Some((path.parent()?, path.file_name()?)),
        name => Some((Path::new(OsStr::from_bytes(&bytes[..slash.max(1)])), OsStr::from_bytes(name))),
    }
}

/// True if a path is spelt exactly as `above` joined with `name`. False for other spellings, such as `a/./b` or `a//b`.
pub fn is_joined(path: &Path, above: &Path, name: &OsStr) -> bool {
    let slash = usize::from(above.as_os_str() != "/");
    path.as_os_str().len() == above.as_os_str().len() + slash + name.len()
}

impl fmt::Debug for WirePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for WirePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

impl AsRef<Path> for WirePath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl<T: AsRef<OsStr> + ?Sized> From<&T> for WirePath {
    fn from(path: &T) -> Self {
        Self(PathBuf::from(path))
    }
}

impl From<PathBuf> for WirePath {
    fn from(path: PathBuf) -> Self {
        Self(path)
    }
}

impl From<Vec<u8>> for WirePath {
    fn from(bytes: Vec<u8>) -> Self {
        Self(OsString::from_vec(bytes).into())
    }
}

impl From<WirePath> for PathBuf {
    fn from(path: WirePath) -> Self {
        path.0
    }
}

impl Serialize for WirePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_bytes(self.as_bytes());
        }
        if let Some(text) = self.0.to_str() {
            return serializer.serialize_str(text);
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("base64", &STANDARD.encode(self.as_bytes()))?;
        map.end()
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for WirePath {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "WirePath".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A path: text where its bytes are UTF-8, else those bytes in base64. Never a NUL.",
            "oneOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {"base64": {"type": "string", "contentEncoding": "base64"}},
                    "required": ["base64"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

impl<'de> Deserialize<'de> for WirePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(PathVisitor)
        } else {
            deserializer.deserialize_byte_buf(PathVisitor)
        }
    }
}

struct PathVisitor;

impl<'de> Visitor<'de> for PathVisitor {
    type Value = WirePath;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path without NUL bytes, as text, bytes or {\"base64\": …}")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<WirePath, E> {
        self.visit_byte_buf(text.as_bytes().to_vec())
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<WirePath, E> {
        self.visit_byte_buf(bytes.to_vec())
    }

    fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<WirePath, E> {
        if bytes.contains(&0) {
            return Err(E::invalid_value(de::Unexpected::Bytes(&bytes), &self));
        }
        Ok(bytes.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WirePath, A::Error> {
        let (key, text): (String, String) =
            map.next_entry()?.ok_or_else(|| de::Error::missing_field("base64"))?;
        if key != "base64" {
            return Err(de::Error::unknown_field(&key, &["base64"]));
        }
        let bytes = STANDARD.decode(text).map_err(de::Error::custom)?;
        self.visit_byte_buf(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn utf8_path_is_a_json_string() {
        let json = serde_json::to_string(&WirePath::from("a b/ü")).unwrap();
        assert_eq!(json, r#""a b/ü""#);
    }

    #[test]
    fn other_path_is_a_json_object() {
        let json = serde_json::to_string(&WirePath::from(b"a\xff".to_vec())).unwrap();
        assert_eq!(json, r#"{"base64":"Yf8="}"#);
    }

    #[test]
    fn nul_is_refused_in_every_form() {
        for json in [r#""a\u0000""#, r#"{"base64":"AA=="}"#] {
            assert!(serde_json::from_str::<WirePath>(json).is_err(), "{json}");
        }
        assert!(crate::codec::decode::<WirePath>(&crate::codec::encode(&b"\0".to_vec()).unwrap()).is_err());
    }

    proptest! {
        #[test]
        fn what_is_within_is_what_begins_with_the_same_components(inner in "[/.ab]{0,5}", outer in "[/.ab]{0,5}") {
            let is_within = WirePath::from(&inner).is_within(&WirePath::from(&outer));
            prop_assert_eq!(is_within, Path::new(&inner).starts_with(&outer));
        }
    }

    #[test]
    fn sibling_with_the_same_prefix_is_not_within() {
        assert!(!WirePath::from("/a/bc").is_within(&"/a/b".into()));
        assert!(WirePath::from("/a/b").is_within(&"/a/b".into()));
    }

    proptest! {
        #[test]
        fn any_bytes_survive_both_formats(bytes in proptest::collection::vec(1u8.., 0..40)) {
            let path = WirePath::from(bytes);
            let json = serde_json::to_string(&path).unwrap();
            prop_assert_eq!(&serde_json::from_str::<WirePath>(&json).unwrap(), &path);
            let wire = crate::codec::encode(&path).unwrap();
            prop_assert_eq!(&crate::codec::decode::<WirePath>(&wire).unwrap(), &path);
        }
    }
}
