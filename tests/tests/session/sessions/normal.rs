//! Makes a record of a session from which all data that differs between runs and machines is removed.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value};
use tests::{Finished, World, without_durations};

/// Names of members with times or counts that differ in each run.
const MEASURED: [&str; 12] = [
    "duration_ms",
    "explanation_bytes",
    "hidden",
    "landlock_abi",
    "protected",
    "rules",
    "startup_us",
    "time_ms",
    "tokens",
    "tokens_after",
    "tokens_before",
    "waited_ms",
];

/// Log of a session, with the replacements for data that differs.
pub(crate) struct Normal<'a> {
    world: &'a World,
    log: Vec<Value>,
    session: String,
    digests: Names,
    pids: Names,
    /// Id of the last event, by agent.
    heads: BTreeMap<String, u64>,
}

/// Replacements for one kind of data: a word, and the values found. Equal values get the same replacement.
struct Names(&'static str, Vec<String>);

impl Names {
    fn name(&mut self, of: &str) -> String {
        let known = self.1.iter().position(|known| known == of);
        let at = known.unwrap_or_else(|| {
            self.1.push(of.to_owned());
            self.1.len() - 1
        });
        format!("[{} {}]", self.0, at + 1)
    }
}

impl<'a> Normal<'a> {
    pub(crate) fn of(world: &'a World) -> Self {
        let log = world.log();
        let session = log.first().and_then(|event| event["session"].as_str()).unwrap_or_default().to_owned();
        let (digests, pids) = (Names("digest", vec![]), Names("pid", vec![]));
        Self { world, log, session, digests, pids, heads: BTreeMap::new() }
    }

    /// Checks that the streamed events are those of the log, except for the chain of digests.
    pub(crate) fn is_streamed(&self, done: &Finished) {
        let mut log = self.log.clone();
        for event in &mut log {
            let event = event.as_object_mut().unwrap();
            event.shift_remove("prev");
            event.shift_remove("sum");
        }
        assert_eq!(done.events(), log);
    }

    /// Returns the record: log, exit code, output and files. If `apart` is true, the events are grouped by agent, since
    /// agents that work at the same time have no common order.
    pub(crate) fn record(mut self, done: &Finished, files: &[(&str, Option<String>)], apart: bool) -> String {
        let mut record = String::new();
        let mut log = std::mem::take(&mut self.log);
        for event in &log {
            self.follows(event);
        }
        // The number of snapshots and their calls depend on timing, so `session::changes` tests them.
        log.retain(|event| event["type"] != "files_changed");
        if apart {
            log.sort_by_key(|event| event["agent"].as_str().unwrap_or_default().to_owned());
        }
        for (number, mut event) in (1_u64..).zip(log) {
            // The number of an event among those of other agents is random.
            event["id"] = number.into();
            self.event(&mut record, event);
        }
        let code = done.code;
        let said = self.text(&done.stderr);
        writeln!(record, "\nexit code {code}\nstandard error: {said:?}").unwrap();
        for (name, content) in files {
            writeln!(
                record,
                "{name}: {}",
                content.as_ref().map_or("none".to_owned(), |text| format!("{text:?}"))
            )
            .unwrap();
        }
        record
    }

    /// Writes a line for an event, and one for each member of its data.
    fn event(&mut self, record: &mut String, event: Value) {
        let Value::Object(mut event) = event else { panic!("{event}") };
        let mut take = |name: &str| event.shift_remove(name).unwrap_or_default();
        let (id, _, kind, data) = (take("id"), take("parent"), take("type"), take("data"));
        assert_eq!(take("session"), self.session, "one session");
        let prev = take("prev");
        assert!(prev.as_str().is_some_and(is_digest), "{prev}");
        assert_eq!(take("sum").as_str().map(str::len), Some(16));
        assert!(take("time_ms").is_u64());
        let Value::String(kind) = kind else { panic!("{kind}") };
        // The text is the program's own, and it is random which of two agents logs the whole text.
        let data = if kind == "prompt_fixed" { Value::Object(Map::new()) } else { data };
        let envelope = Value::Object(event);
        writeln!(record, "{id} {kind} {envelope}").unwrap();
        let Value::Object(data) = self.normal("", data) else { panic!("{kind} has no members") };
        write_members(record, &data);
    }

    /// Checks that each event names the last event of its agent as its parent. For a sub-agent's first event, that is
    /// the last one of the parent agent.
    fn follows(&mut self, event: &Value) {
        let named = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let (agent, id) = (named("agent"), event["id"].as_u64().unwrap());
        let head = self.heads.get(&agent).or_else(|| self.heads.get(&named("parent_agent")));
        let parent = event["parent"].as_u64();
        assert_eq!(parent, head.copied(), "event {id} follows the one before it of agent {agent}");
        self.heads.insert(agent, id);
    }

    fn normal(&mut self, name: &str, value: Value) -> Value {
        match value {
            Value::Number(number) if MEASURED.contains(&name) => {
                assert!(number.is_u64(), "{name}: {number}");
                Value::from("[n]")
            }
            // It is random if the broker or the supervisor notices first that a worker was killed.
            Value::Number(number) if name == "signal" && number.as_i64() == Some(9) => 15.into(),
            // The paths that this machine hides and protects.
            Value::Array(_) if ["hidden", "protected"].contains(&name) => Value::from("[n]"),
            Value::Number(number) if name == "pid" => self.pids.name(&number.to_string()).into(),
            Value::String(text) if is_digest(&text) => self.digests.name(&text).into(),
            Value::String(text) => self.text(&text).into(),
            Value::Array(elements) => {
                elements.into_iter().map(|element| self.normal(name, element)).collect()
            }
            Value::Object(members) => {
                // These differ between machines: unenforced limits, devices of other agents, and the model's port.
                let own = ["not_enforced", "no_full_tier", "base_url"];
                let members = members.into_iter().filter(|(name, _)| !own.contains(&name.as_str()));
                let normal = members.map(|(name, value)| (self.text(&name), self.normal(&name, value)));
                Value::Object(normal.collect())
            }
            other => other,
        }
    }

    fn text(&self, text: &str) -> String {
        let text = self.world.stable(text).replace(&self.session, "[session]");
        let text = text.replace("ended by signal 9", "ended by signal 15");
        let text = text.replace("/usr/bin/bash:", "bash:").replace("/bin/bash:", "bash:");
        let text = after(&text, "[world]/own/cache/temps/bw-", "[random]", |byte| byte.is_ascii_hexdigit());
        let text =
            after(&text, "[world]/own/cache/projects/project-", "[hash]", |byte| byte.is_ascii_hexdigit());
        let text =
            after(&text, "[world]/own/state/plans/", "[time]", |byte| byte.is_ascii_digit() || byte == b'-');
        let text = after(&text, "\nplatform: ", "[platform]", |byte| byte != b'\n');
        let text = after(&text, "\ndate: ", "[date]", |byte| byte != b'\n');
        without_durations(&text)
    }
}

fn write_members(record: &mut String, data: &Map<String, Value>) {
    for (name, value) in data {
        match value {
            Value::Array(elements) => {
                writeln!(record, "    {name}:").unwrap();
                for element in elements {
                    write_value(record, "      - ", element);
                }
            }
            value => write_value(record, &format!("    {name}: "), value),
        }
    }
}

/// Writes a value on one line. A text of several lines gets as many lines.
fn write_value(record: &mut String, head: &str, value: &Value) {
    match value.as_str().filter(|text| text.trim_end().contains('\n')) {
        None => writeln!(record, "{head}{value}").unwrap(),
        Some(text) => {
            writeln!(record, "{head}|").unwrap();
            for line in text.lines() {
                writeln!(record, "        {line}").unwrap();
            }
        }
    }
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Replaces the characters that vary after each `mark` in a text by `instead`.
fn after(text: &str, mark: &str, instead: &str, varies: fn(u8) -> bool) -> String {
    let mut parts = text.split(mark);
    let mut normal = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|character: char| u8::try_from(character).is_ok_and(varies));
        write!(normal, "{mark}{instead}{rest}").unwrap();
    }
    normal
}
