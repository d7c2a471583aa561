//! Parses the arguments of a tool call. They are text that the model wrote.

use serde_json::Value;

/// Maximum bytes of invalid arguments that are sent back to the model.
const SHOWN_INVALID: usize = 1024;

/// Returns the text as one line of JSON. An `Err` says why the text is not a JSON object. The text is parsed in full,
/// because raw JSON may contain lone surrogates, which APIs reject in requests.
pub(crate) fn object(text: &str) -> Result<String, String> {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(_)) => Ok(one_line(text)),
        Ok(_) => Err("the arguments are not a JSON object".to_owned()),
        Err(error) => Err(format!("the arguments are not valid JSON: {error}")),
    }
}

/// Returns an object that contains the invalid text as a string, so that the model sees its own text.
pub(crate) fn invalid(text: &str) -> Result<String, serde_json::Error> {
    let end = text.floor_char_boundary(SHOWN_INVALID);
    let shown = serde_json::to_string(&text[..end])?;
    Ok(match text.len() - end {
        0 => format!(r#"{{"invalid_json":{shown}}}"#),
        more => format!(r#"{{"invalid_json":{shown},"omitted_bytes":{more}}}"#),
    })
}

/// Replaces line breaks between JSON tokens by spaces.
pub(crate) fn one_line(json: &str) -> String {
    json.trim().replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_only_a_whole_object_counts_and_it_stays_as_it_was_written() {
        assert_eq!(object("{\"b\": 1.0,\n \"a\":1e2}").as_deref(), Ok("{\"b\": 1.0,  \"a\":1e2}"));
        for text in ["", "[]", "\"a\"", "{\"a\":", "{\"a\":\"\\ud83e\"}", "{} {}"] {
            assert!(object(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_object_is_shown_in_one_and_cut_between_characters() {
        assert_eq!(invalid("{\"a").expect("JSON"), r#"{"invalid_json":"{\"a"}"#);
        let long = "ä".repeat(SHOWN_INVALID);
        let shown = "ä".repeat(SHOWN_INVALID / 2);
        assert_eq!(
            invalid(&long).expect("JSON"),
            format!(r#"{{"invalid_json":"{shown}","omitted_bytes":1024}}"#)
        );
    }
}
