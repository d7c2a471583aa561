use protocol::event::TokenUsage;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Parses token counts; `None` if `raw` is not an object. Prompt tokens include those from the cache. Servers use
/// different names for the fields.
pub(super) fn parse(raw: &RawValue) -> Option<TokenUsage> {
    let Ok(Value::Object(usage)) = serde_json::from_str(raw.get()) else { return None };
    let count = |names: &[&[&str]]| names.iter().find_map(|path| at(&usage, path));
    let prompt = count(&[&["prompt_tokens"]]).unwrap_or(0);
    let cache_read = count(&[
        &["prompt_tokens_details", "cached_tokens"],
        &["cache_read_input_tokens"],
        &["prompt_cache_hit_tokens"],
        &["cached_tokens"],
    ])
    .unwrap_or(0);
    let cache_creation =
        count(&[&["prompt_tokens_details", "cache_write_tokens"], &["cache_creation_input_tokens"]])
            .unwrap_or(0);
    let said = count(&[&["completion_tokens"]]).unwrap_or(0);
    let reasoning = count(&[&["completion_tokens_details", "reasoning_tokens"]]).unwrap_or(0);
    let total = count(&[&["total_tokens"]]);
    // xAI counts reasoning separately, and not as a part of the reply.
    let beside =
        reasoning > 0 && total == prompt.checked_add(said).and_then(|sum| sum.checked_add(reasoning));
    Some(TokenUsage {
        input: prompt.saturating_sub(cache_read).saturating_sub(cache_creation),
        cache_creation,
        // The API has only one lifetime of cached tokens.
        cache_creation_1h: 0,
        cache_read,
        output: if beside { said.saturating_add(reasoning) } else { said },
        estimated: 0,
    })
}

fn at(usage: &Map<String, Value>, path: &[&str]) -> Option<u64> {
    let (first, rest) = path.split_first()?;
    let mut value = usage.get(*first)?;
    for name in rest {
        value = value.get(*name)?;
    }
    value.as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Option<[u64; 4]> {
        let raw = RawValue::from_string(json.to_owned()).expect("JSON");
        let usage = parse(&raw)?;
        Some([usage.input, usage.cache_creation, usage.cache_read, usage.output])
    }

    #[test]
    fn s6_each_servers_counters_are_found() {
        for (json, expected) in [
            (r#"{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}"#, [9, 0, 0, 2]),
            (
                r#"{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}"#,
                [5, 0, 4, 2],
            ),
            (
                r#"{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":3}}"#,
                [2, 3, 4, 0],
            ),
            (r#"{"prompt_tokens":9,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":1}"#, [1, 0, 8, 0]),
            (r#"{"prompt_tokens":9,"prompt_tokens_details":null,"cached_tokens":3}"#, [6, 0, 3, 0]),
            (r#"{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":4}}"#, [0, 0, 4, 0]),
            (r#"{"prompt_tokens":-1,"completion_tokens":1e300}"#, [0, 0, 0, 0]),
        ] {
            assert_eq!(of(json), Some(expected), "{json}");
        }
        assert_eq!(of("[1]"), None);
    }

    #[test]
    fn reasoning_that_is_counted_beside_the_reply_is_part_of_it() {
        let usage = |total| {
            format!(
                r#"{{"prompt_tokens":5,"completion_tokens":2,"total_tokens":{total},"completion_tokens_details":{{"reasoning_tokens":7}}}}"#
            )
        };
        assert_eq!(of(&usage(14)), Some([5, 0, 0, 9]));
        assert_eq!(of(&usage(7)), Some([5, 0, 0, 2]));
    }
}
