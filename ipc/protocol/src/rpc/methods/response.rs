//! Parsing of responses to requests for an approval. A response that does not fit its request counts as no answer.

use serde::de::DeserializeOwned;

use crate::approval::{ApprovalAnswer, ReviewDecision, ServerRequest};
use crate::rpc::transport::{RequestId, ResponseOutcome};

/// Maximum number of characters of a front end's text in the cause of a failure.
const LONGEST: usize = 200;

/// Parses a front end's response to a request as an answer.
pub fn answer(request: &ServerRequest, outcome: &ResponseOutcome) -> ApprovalAnswer {
    let result = match outcome {
        ResponseOutcome::Result(result) => result.get(),
        ResponseOutcome::Error(error) => {
            let cause = format!("the front end answered with an error: {}", abridged(error.get()));
            return ApprovalAnswer::Failed { cause };
        }
    };
    // serde would also accept an array in place of a struct.
    if !result.starts_with('{') {
        let cause = format!("the response to {} is not an object: {}", request.method(), abridged(result));
        return ApprovalAnswer::Failed { cause };
    }
    request.read_answer(result).unwrap_or_else(|error| {
        let cause = format!("the response to {} cannot be understood: {error}", request.method());
        ApprovalAnswer::Failed { cause }
    })
}

/// Returns a sentence about a late response, to a request that no longer waits for one. The sentence has the decision.
pub fn unawaited(id: &RequestId, outcome: &ResponseOutcome) -> String {
    let decided = match outcome {
        ResponseOutcome::Result(result) => ReviewDecision::word_in(result.get()),
        ResponseOutcome::Error(_) => None,
    };
    let decided = decided.map(|word| format!(": {word}")).unwrap_or_default();
    format!("ignored a response to {id}, which is not an open request{decided}")
}

pub(crate) fn decode<T: DeserializeOwned>(json: &str) -> Result<T, String> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(value)
}

fn abridged(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
