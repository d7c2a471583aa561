//! Changes of files as a person sees them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use ipc::path::WirePath;

/// Prefix of the JSON key for a path that is not UTF-8. Paths of changes are absolute, so no path begins with it.
const ENCODED: &str = "base64:";

/// The change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum FileChange {
    /// A new file.
    Add {
        /// Whole content; bytes that are not UTF-8 as `\xNN`.
        content: String,
    },
    /// A removed file.
    Delete {
        /// The content that is lost; bytes that are not UTF-8 as `\xNN`.
        content: String,
    },
    /// A file with new content, a new path, or both.
    Update {
        /// The change as a unified diff; bytes that are not UTF-8 as `\xNN`.
        unified_diff: String,
        /// The new path, if the file moves.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        move_path: Option<WirePath>,
    },
}

/// Changes of files, sorted by absolute path.
///
/// In JSON an object; a path that is not UTF-8 has the key `base64:…`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileChanges(pub BTreeMap<WirePath, FileChange>);

impl Serialize for FileChanges {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (path, change) in &self.0 {
            if let Ok(text) = std::str::from_utf8(path.as_bytes()) {
                map.serialize_entry(text, change)?;
            } else {
                let key = format!("{ENCODED}{}", STANDARD.encode(path.as_bytes()));
                map.serialize_entry(&key, change)?;
            }
        }
        map.end()
    }
}

impl schemars::JsonSchema for FileChanges {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FileChanges".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Changes by absolute path, in the order of the paths; one that is not UTF-8 has the key `base64:…`.",
            "type": "object",
            "propertyNames": {"pattern": "^(/|base64:)"},
            "additionalProperties": generator.subschema_for::<FileChange>(),
        })
    }
}

impl<'de> Deserialize<'de> for FileChanges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ChangesVisitor)
    }
}

struct ChangesVisitor;

impl<'de> Visitor<'de> for ChangesVisitor {
    type Value = FileChanges;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of changes by absolute path")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FileChanges, A::Error> {
        let mut changes = BTreeMap::new();
        while let Some((key, change)) = map.next_entry::<String, FileChange>()? {
            let path = path(&key).map_err(A::Error::custom)?;
            if changes.insert(path, change).is_some() {
                return Err(A::Error::custom(format!("the path {key:?} occurs twice")));
            }
        }
        Ok(FileChanges(changes))
    }
}

fn path(key: &str) -> Result<WirePath, String> {
    let bytes = match key.strip_prefix(ENCODED) {
        Some(encoded) => STANDARD.decode(encoded).map_err(|error| format!("{key:?}: {error}"))?,
        None => key.as_bytes().to_vec(),
    };
    if bytes.first() != Some(&b'/') || bytes.contains(&0) {
        return Err(format!("{key:?} is not an absolute path"));
    }
    Ok(WirePath::from(OsStr::from_bytes(&bytes)))
}
