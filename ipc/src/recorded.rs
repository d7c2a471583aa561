//! Values for which logs of older schemas have a sentence.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A value in an event: in JSON an object. Schemas before 6 have a sentence instead, which is kept but not parsed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Recorded<T> {
    /// The value, in an event of schema 6 or later.
    Value(T),
    /// The sentence in an event of an older schema.
    Unstructured(String),
}

impl<T> Recorded<T> {
    /// Returns the value, or `None` in an event of an older schema.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Unstructured(_) => None,
        }
    }
}

impl<T> From<T> for Recorded<T> {
    fn from(value: T) -> Self {
        Self::Value(value)
    }
}

impl<T: fmt::Display> fmt::Display for Recorded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => value.fmt(f),
            Self::Unstructured(sentence) => f.write_str(sentence),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Recorded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RecordedVisitor(PhantomData))
    }
}

struct RecordedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for RecordedVisitor<T> {
    type Value = Recorded<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, or a string as in an older schema")
    }

    fn visit_str<E: Error>(self, sentence: &str) -> Result<Recorded<T>, E> {
        Ok(Recorded::Unstructured(sentence.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Recorded<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Recorded::Value)
    }
}

/// The schema of the value alone, since events of the current schema have no sentences.
#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema> schemars::JsonSchema for Recorded<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}
