//! Checks JSON for which no fields are listed: arguments of tool calls, and schemas of tools.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

const DEEPEST: usize = 48;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Free {
    /// The arguments of a tool call, an object that a model wrote.
    Arguments,
    /// A JSON schema without references to other documents.
    Schema,
}

/// Checks a value. An `Err` says why it is rejected: duplicate names, for example, or deep nesting.
pub(super) fn check(json: &str, free: Free) -> Result<(), String> {
    if !json.starts_with('{') {
        return Err("must be an object".to_owned());
    }
    let of_object =
        |json| serde_json::from_str::<FreeKind<'_>>(json).is_ok_and(|kind| kind.r#type == "object");
    if free == Free::Schema && !of_object(json) {
        return Err("must be a schema whose type is object".to_owned());
    }
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let walk = FreeWalk { free, depth: 0, is_reference: false };
    walk.deserialize(&mut deserializer).map_err(|error| {
        let text = error.to_string();
        // The position is relative to the value, so that it would not help the client.
        text.split(" at line ").next().unwrap_or_default().to_owned()
    })
}

#[derive(Deserialize)]
struct FreeKind<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
}

#[derive(Clone, Copy)]
struct FreeWalk {
    free: Free,
    depth: usize,
    /// True if the current value is that of a reference in a schema, such as `$ref`.
    is_reference: bool,
}

impl FreeWalk {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        let depth = self.depth + 1;
        if depth > DEEPEST {
            return Err(E::custom(format_args!("is deeper than {DEEPEST} levels")));
        }
        Ok(Self { depth, is_reference: false, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for FreeWalk {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FreeWalk {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if self.is_reference && !text.starts_with('#') {
            return Err(E::custom("refers to something outside the request"));
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let deeper = self.deeper()?;
        while list.next_element_seed(deeper)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let deeper = self.deeper()?;
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let of_schema = self.free == Free::Schema;
            if of_schema && matches!(&*name, "$id" | "$anchor" | "$dynamicAnchor") {
                return Err(Error::custom(format_args!("has the member {name}, which is not relayed")));
            }
            let is_reference = of_schema && matches!(&*name, "$ref" | "$dynamicRef" | "$recursiveRef");
            if !names.insert(name) {
                return Err(Error::custom("has a member twice"));
            }
            map.next_value_seed(FreeWalk { is_reference, ..deeper })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_named_deep_and_foreign_parts_are_refused() {
        let deep = |levels: usize| format!("{{\"a\":{}1{}}}", "[".repeat(levels), "]".repeat(levels));
        for (json, free, expected) in [
            ("{\"a\":{\"b\":[1,-2,0.5,null,true,\"\\u00e9\"]}}".to_owned(), Free::Arguments, Ok(())),
            ("[1]".to_owned(), Free::Arguments, Err("must be an object")),
            ("{\"a\":{\"b\":1,\"\\u0062\":2}}".to_owned(), Free::Arguments, Err("has a member twice")),
            ("{\"a\":\"\\ud800\"}".to_owned(), Free::Arguments, Err("unexpected end of hex escape")),
            (deep(40), Free::Arguments, Ok(())),
            (deep(60), Free::Arguments, Err("is deeper than 48 levels")),
            ("{\"$ref\":\"https://x.example/s\"}".to_owned(), Free::Arguments, Ok(())),
            (
                "{\"type\":\"object\",\"$ref\":\"https://x.example/s\"}".to_owned(),
                Free::Schema,
                Err("refers to something outside the request"),
            ),
            ("{\"type\":\"object\",\"$ref\":\"#/$defs/a\",\"$defs\":{}}".to_owned(), Free::Schema, Ok(())),
            ("{\"type\":\"array\"}".to_owned(), Free::Schema, Err("must be a schema whose type is object")),
            (
                "{\"type\":\"object\",\"$id\":\"a\"}".to_owned(),
                Free::Schema,
                Err("has the member $id, which is not relayed"),
            ),
        ] {
            let found = check(&json, free);
            match expected {
                Ok(()) => assert_eq!(found, Ok(()), "{json}"),
                Err(why) => assert!(found.as_ref().is_err_and(|found| found.starts_with(why)), "{found:?}"),
            }
        }
    }
}
