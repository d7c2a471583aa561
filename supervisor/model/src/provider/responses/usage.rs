use protocol::event::TokenUsage;
use serde_json::Value;

/// Parses token counts. The count of the input includes tokens from the cache, that of the output includes reasoning.
pub(super) fn parse(usage: Option<&Value>) -> TokenUsage {
    let tokens = |path| usage.and_then(|usage| usage.pointer(path)).and_then(Value::as_u64).unwrap_or(0);
    let cache_read = tokens("/input_tokens_details/cached_tokens");
    let cache_creation = tokens("/input_tokens_details/cache_write_tokens");
    TokenUsage {
        input: tokens("/input_tokens").saturating_sub(cache_read).saturating_sub(cache_creation),
        cache_creation,
        // The API has only one lifetime of cached tokens.
        cache_creation_1h: 0,
        cache_read,
        output: tokens("/output_tokens"),
        estimated: 0,
    }
}
