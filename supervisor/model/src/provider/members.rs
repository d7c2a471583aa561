//! The fields of a JSON object, in order, with the bytes of each value.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

pub(crate) struct ReplyMembers(Vec<(String, Box<RawValue>)>);

impl ReplyMembers {
    pub(crate) fn set(&mut self, name: &str, value: Box<RawValue>) {
        match self.0.iter_mut().find(|(member, _)| member == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|(member, _)| member == name).map(|(_, value)| &**value)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), &**value))
    }

    pub(crate) fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut json = String::from("{");
        for (name, value) in &self.0 {
            if json.len() > 1 {
                json.push(',');
            }
            json.push_str(&serde_json::to_string(name)?);
            json.push(':');
            json.push_str(value.get());
        }
        json.push('}');
        Ok(json)
    }
}

impl<'de> Deserialize<'de> for ReplyMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = ReplyMembers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ReplyMembers, A::Error> {
                let mut members = ReplyMembers(Vec::new());
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    members.0.push((name, value));
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_changed_stays_as_it_was() {
        let mut members: ReplyMembers =
            serde_json::from_str(r#"{"b":1.0, "a":[ 1e2 ],"\u00e9":null}"#).expect("an object");
        members.set("a", RawValue::from_string("2".to_owned()).expect("JSON"));
        members.set("new", RawValue::from_string("{ }".to_owned()).expect("JSON"));
        assert_eq!(members.to_json().expect("JSON"), r#"{"b":1.0,"a":2,"é":null,"new":{ }}"#);
    }
}
