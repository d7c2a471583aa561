//! The JSON Schema of `exec --schema`.
//!
//! A `$ref` to another file is refused, so that no other file is read. Patterns are matched in linear time, because the
//! model wrote the matched text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use agent::core::AnswerCheck;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ReferencingError, Retrieve, Uri, ValidationError, Validator};
use serde_json::Value;
use serde_json::value::RawValue;

/// Maximum size in bytes of a schema. The limit is small, because every request to the model contains the schema.
const MAX_BYTES: usize = 64 << 10;

/// Maximum size in bytes of an answer.
const MAX_ANSWER: usize = 1 << 20;

/// Maximum number of faults that the model is told at once. `MAX_FAULT` limits the characters of each.
const MAX_FAULTS: usize = 20;
const MAX_FAULT: usize = 300;

/// Maximum size in bytes of one compiled regular expression in memory.
const MAX_PATTERN: usize = 1 << 20;

pub(super) struct AnswerSchema {
    validator: Validator,
    demand: String,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SchemaError {
    #[error("--schema: cannot read `{}`: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("--schema: `{}` is not a regular file", .0.display())]
    NotAFile(PathBuf),
    #[error("--schema: `{}` has more than {} KiB", .0.display(), MAX_BYTES >> 10)]
    TooLong(PathBuf),
    #[error("--schema: `{}` is not JSON: {source}", path.display())]
    NoJson { path: PathBuf, source: serde_json::Error },
    #[error("--schema: `{}`, line {line}: {fault}", path.display())]
    Broken { path: PathBuf, line: usize, fault: String },
}

impl From<SchemaError> for String {
    fn from(error: SchemaError) -> Self {
        error.to_string()
    }
}

impl AnswerSchema {
    pub(super) fn read(path: &Path) -> Result<Self, SchemaError> {
        let unreadable = |source| SchemaError::Unreadable { path: path.to_owned(), source };
        // The opening of a fifo would wait for a writer.
        let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
        let file = opened.map_err(unreadable)?;
        if !file.metadata().map_err(unreadable)?.is_file() {
            return Err(SchemaError::NotAFile(path.to_owned()));
        }
        let mut bytes = Vec::new();
        file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() > MAX_BYTES {
            return Err(SchemaError::TooLong(path.to_owned()));
        }
        let text = String::from_utf8(bytes)
            .map_err(|error| unreadable(io::Error::new(io::ErrorKind::InvalidData, error)))?;
        Self::compile(path, &text)
    }

    pub(super) fn compile(path: &Path, text: &str) -> Result<Self, SchemaError> {
        let parsed = serde_json::from_str::<Value>(text);
        let schema = parsed.map_err(|source| SchemaError::NoJson { path: path.to_owned(), source })?;
        let broken = |line, fault| SchemaError::Broken { path: path.to_owned(), line, fault };
        if !schema.is_object() {
            return Err(broken(1, "a schema has to be a JSON object".to_owned()));
        }
        let options = jsonschema::options().with_retriever(Nowhere);
        let options = options.with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN));
        let validator = options.build(&schema).map_err(|error| {
            let (line, fault) = fault_of_schema(text, &error);
            broken(line, fault)
        })?;
        let demand = format!(
            "<answer_schema>\nThe answer to the task, your last reply, has to be one JSON value that is valid \
             against the JSON Schema below, and nothing else: no words before or behind it. Replies with tool calls \
             before it are free.\n{schema}\n</answer_schema>"
        );
        Ok(Self { validator, demand })
    }
}

impl Debug for AnswerSchema {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerSchema").finish_non_exhaustive()
    }
}

impl AnswerCheck for AnswerSchema {
    fn demand(&self) -> &str {
        &self.demand
    }

    fn check(&self, reply: &str) -> Result<Value, String> {
        let text = unfenced(reply);
        if text.len() > MAX_ANSWER {
            return Err(format!("the answer has more than {} MiB", MAX_ANSWER >> 20));
        }
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("the answer is not JSON: {error}"))?;
        let errors = self.validator.iter_errors(&value).take(MAX_FAULTS);
        let faults: Vec<_> = errors.map(|error| fault_of_answer(&error)).collect();
        if faults.is_empty() { Ok(value) } else { Err(faults.join("\n")) }
    }
}

/// A resolver that refuses each `$ref` to another file.
struct Nowhere;

impl Retrieve for Nowhere {
    fn retrieve(&self, _: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err("a schema cannot refer to other files".into())
    }
}

/// Returns the content of a reply that is one fenced code block. Returns any other reply unchanged.
fn unfenced(reply: &str) -> &str {
    let reply = reply.trim();
    let block = reply.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let content = block.and_then(|block| block.split_once('\n')).map(|(_, content)| content);
    content.filter(|content| !content.contains("```")).unwrap_or(reply)
}

fn fault_of_answer(error: &ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
    // The library's message would name only two values of the enumeration.
    if let ValidationErrorKind::Enum { options } = error.kind() {
        return bounded(&format!("{place}the value is not one of {options}: {}", error.instance()));
    }
    bounded(&format!("{place}{error}"))
}

/// Returns the line number and the description of a fault in a schema.
fn fault_of_schema(text: &str, error: &ValidationError<'_>) -> (usize, String) {
    if let ValidationErrorKind::Referencing(ReferencingError::Unretrievable { uri, .. }) = error.kind() {
        let fault = format!("`{uri}` refers to another file; a schema has to be complete in itself");
        return (line_with(text, uri), bounded(&fault));
    }
    if let ValidationErrorKind::Format { format } = error.kind()
        && format == "regex"
    {
        let fault =
            format!("{error}: a pattern cannot have look-around, back-references or large repetitions");
        return (line_of(text, &error.instance_path().to_string()), bounded(&fault));
    }
    (line_of(text, &error.instance_path().to_string()), bounded(&error.to_string()))
}

fn bounded(text: &str) -> String {
    let mut bounded: String = text.chars().take(MAX_FAULT).collect();
    if bounded.len() < text.len() {
        bounded.push('…');
    }
    bounded
}

/// Returns the number of the first line that contains a text; 1 if none does.
fn line_with(text: &str, part: &str) -> usize {
    text.lines().position(|line| line.contains(part)).map_or(1, |at| at + 1)
}

/// Returns the number of the line with the value at a JSON pointer, or with the nearest value above it.
fn line_of(text: &str, pointer: &str) -> usize {
    let mut value = text;
    for segment in pointer.split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        let below = match serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(value) {
            Ok(members) => members.get(segment.as_str()).map(|member| member.get()),
            Err(_) => serde_json::from_str::<Vec<&RawValue>>(value).ok().and_then(|items| {
                segment.parse().ok().and_then(|at: usize| items.get(at).map(|item| item.get()))
            }),
        };
        match below {
            Some(below) => value = below,
            None => break,
        }
    }
    let offset = (value.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    text.get(..offset).map_or(1, |before| before.matches('\n').count() + 1)
}

#[cfg(test)]
mod tests;
