//! Reading of logged events.
//!
//! A log can have a hundred thousand lines, so each line is read in one pass and without a copy of its content.

use std::fmt;

use ipc::id::{AgentId, ConversationId, EventId};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{EventKind, OLDEST_SCHEMA, ObservedBy, SCHEMA, SessionEvent};

impl SessionEvent {
    /// Parses the event of a line of JSON.
    pub fn from_json(line: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_str(std::str::from_utf8(line).map_err(serde_json::Error::custom)?)
    }
}

impl<'de> Deserialize<'de> for SessionEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LineVisitor)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    V,
    Id,
    Parent,
    TimeMs,
    Session,
    Agent,
    ParentAgent,
    ObservedBy,
    Type,
    Data,
    #[serde(other)]
    Unknown,
}

#[derive(Default)]
struct Read {
    v: Option<u32>,
    id: Option<EventId>,
    parent: Option<EventId>,
    time_ms: Option<u64>,
    session: Option<ConversationId>,
    agent: Option<AgentId>,
    parent_agent: Option<AgentId>,
    observed_by: Option<ObservedBy>,
    r#type: Option<String>,
    kind: Option<EventKind>,
    /// The value of `data`, kept as raw JSON if it came before `type`.
    content: Option<Box<RawValue>>,
}

struct LineVisitor;

impl<'de> Visitor<'de> for LineVisitor {
    type Value = SessionEvent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SessionEvent, A::Error> {
        let mut read = Read::default();
        while let Some(field) = map.next_key()? {
            read.field(field, &mut map)?;
        }
        read.finish()
    }
}

impl Read {
    fn field<'de, A: MapAccess<'de>>(&mut self, field: Field, map: &mut A) -> Result<(), A::Error> {
        match field {
            Field::V => {
                set(&mut self.v, "v", map)?;
                self.check_version()
            }
            Field::Id => set(&mut self.id, "id", map),
            Field::Parent => set_optional(&mut self.parent, "parent", map),
            Field::TimeMs => set(&mut self.time_ms, "time_ms", map),
            Field::Session => set(&mut self.session, "session", map),
            Field::Agent => set(&mut self.agent, "agent", map),
            Field::ParentAgent => set_optional(&mut self.parent_agent, "parent_agent", map),
            Field::ObservedBy => set(&mut self.observed_by, "observed_by", map),
            Field::Type => set(&mut self.r#type, "type", map),
            Field::Data => self.content(map),
            Field::Unknown => map.next_value::<IgnoredAny>().map(drop),
        }
    }

    /// Fails for a line of another schema version, whose fields may have other meanings.
    fn check_version<E: Error>(&self) -> Result<(), E> {
        match self.v {
            Some(OLDEST_SCHEMA..=SCHEMA) => Ok(()),
            Some(version) => {
                let expected = format!("expected {OLDEST_SCHEMA} to {SCHEMA}");
                Err(E::custom(format!("event of schema version {version}, {expected}")))
            }
            None => Err(E::missing_field("v")),
        }
    }

    fn content<'de, A: MapAccess<'de>>(&mut self, map: &mut A) -> Result<(), A::Error> {
        if self.kind.is_some() || self.content.is_some() {
            return Err(A::Error::duplicate_field("data"));
        }
        match &self.r#type {
            Some(tag) => {
                let tagged = TaggedEvent { tag, map, next: Next::Tag };
                self.kind = Some(EventKind::deserialize(MapAccessDeserializer::new(tagged))?);
            }
            None => self.content = Some(map.next_value()?),
        }
        Ok(())
    }

    fn finish<E: Error>(self) -> Result<SessionEvent, E> {
        self.check_version()?;
        let tag = self.r#type.ok_or_else(|| E::missing_field("type"))?;
        let kind = match (self.kind, self.content) {
            (Some(kind), _) => kind,
            (None, Some(content)) => {
                // The tag must come before the content, since serde keeps raw JSON inside the content only then.
                let tag = serde_json::to_string(&tag).map_err(E::custom)?;
                let line = format!("{{\"type\":{tag},\"data\":{}}}", content.get());
                serde_json::from_str(&line).map_err(E::custom)?
            }
            (None, None) => return Err(E::missing_field("data")),
        };
        Ok(SessionEvent {
            id: self.id.ok_or_else(|| E::missing_field("id"))?,
            parent: self.parent,
            time_ms: self.time_ms.ok_or_else(|| E::missing_field("time_ms"))?,
            session: self.session.ok_or_else(|| E::missing_field("session"))?,
            agent: self.agent.ok_or_else(|| E::missing_field("agent"))?,
            parent_agent: self.parent_agent,
            observed_by: self.observed_by.ok_or_else(|| E::missing_field("observed_by"))?,
            kind,
        })
    }
}

fn set<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    place: &mut Option<T>,
    name: &'static str,
    map: &mut A,
) -> Result<(), A::Error> {
    if place.is_some() {
        return Err(A::Error::duplicate_field(name));
    }
    *place = Some(map.next_value()?);
    Ok(())
}

fn set_optional<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    place: &mut Option<T>,
    name: &'static str,
    map: &mut A,
) -> Result<(), A::Error> {
    if place.is_some() {
        return Err(A::Error::duplicate_field(name));
    }
    *place = map.next_value()?;
    Ok(())
}

/// Deserializer of an event's kind from the tag `type`, which was read already, and from the content that follows.
struct TaggedEvent<'a, A> {
    tag: &'a str,
    map: &'a mut A,
    next: Next,
}

#[derive(Clone, Copy)]
enum Next {
    Tag,
    Content,
    Nothing,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for TaggedEvent<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let key = match self.next {
            Next::Tag => "type",
            Next::Content => "data",
            Next::Nothing => return Ok(None),
        };
        seed.deserialize(StrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.next {
            Next::Tag => {
                self.next = Next::Content;
                seed.deserialize(StrDeserializer::new(self.tag))
            }
            Next::Content | Next::Nothing => {
                self.next = Next::Nothing;
                self.map.next_value_seed(seed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> SessionEvent {
        SessionEvent {
            id: EventId(2),
            parent: Some(EventId(1)),
            time_ms: 7,
            session: "s".into(),
            agent: "1.2".into(),
            parent_agent: Some(AgentId::root()),
            observed_by: ObservedBy::Worker,
            kind: EventKind::ToolCallStarted {
                call: ipc::id::CallId(3),
                tool_use: "t".into(),
                name: "read_file".to_owned(),
                kind: super::super::ToolKind::Read,
                locations: Vec::new(),
                input: RawValue::from_string(r#"{ "path" : "\u00e9" }"#.to_owned()).unwrap(),
            },
        }
    }

    fn fields(line: &str) -> Vec<(String, Box<RawValue>)> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Vec<(String, Box<RawValue>)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = vec![];
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }
        serde_json::Deserializer::from_str(line).deserialize_map(Fields).unwrap()
    }

    fn object(fields: &[(String, Box<RawValue>)]) -> String {
        let fields: Vec<_> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", fields.join(","))
    }

    fn error(line: &str) -> String {
        serde_json::from_str::<SessionEvent>(line).unwrap_err().to_string()
    }

    #[test]
    fn an_events_fields_may_come_in_any_order() {
        let line = serde_json::to_string(&event()).unwrap();
        let mut fields = fields(&line);
        for _ in 0..fields.len() {
            fields.rotate_left(1);
            let read: SessionEvent = serde_json::from_str(&object(&fields)).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), line);
        }
    }

    #[test]
    fn a_field_that_is_missing_or_twice_there_is_named() {
        let line = serde_json::to_string(&event()).unwrap();
        let whole = fields(&line);
        for (place, (name, _)) in whole.iter().enumerate() {
            let mut less =
                whole.iter().map(|(name, value)| (name.clone(), value.clone())).collect::<Vec<_>>();
            let field = less.remove(place);
            if name.starts_with("parent") {
                assert!(serde_json::from_str::<SessionEvent>(&object(&less)).is_ok(), "{name}");
            } else {
                assert!(error(&object(&less)).contains(&format!("missing field `{name}`")), "{name}");
            }
            less.extend([field.clone(), field]);
            assert!(error(&object(&less)).contains(&format!("duplicate field `{name}`")), "{name}");
        }
    }

    #[test]
    fn a_field_that_nobody_knows_is_passed_over() {
        let line = serde_json::to_string(&event()).unwrap();
        let more = line.replacen('{', r#"{"later":{"deep":[1,2]},"#, 1);
        assert_eq!(serde_json::from_str::<SessionEvent>(&more).unwrap(), event());
    }

    #[test]
    fn of_another_version_nothing_but_the_version_is_read() {
        assert!(error(r#"{"v":99,"id":{},"type":7,"data":null}"#).contains("schema version 99"));
    }
}
