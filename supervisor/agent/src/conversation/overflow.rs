//! Recognises servers' errors about a conversation that is too long, and finds the size of the window in their texts.

use super::ProviderError;

/// Types and codes with which servers report that a conversation is too long.
const KINDS: [&str; 4] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "too_many_prompt_tokens",
    "context_window_exceeded",
];

/// Words in the message of a rate-limit error if this one request alone exceeds the limit.
const ALONE: [&str; 2] = ["request too large", "requested"];

/// Minimum size of a context window in tokens. A smaller number in an error message means something else.
const LEAST: u64 = 1_000;

/// Position of the window's size in an error message.
#[derive(Clone, Copy)]
enum WindowAt {
    /// The size is directly after these words.
    Behind(&'static str),
    Before(&'static str),
    Nowhere,
}

use WindowAt::{Before, Behind, Nowhere};

/// Lower-case parts that an error message must contain, and the position of the window's size. The first match counts.
const WORDS: [(&[&str], WindowAt); 61] = [
    (&["request too large", "limit ", "requested"], Behind("limit ")),
    (&["request body too large", "max size:"], Behind("max size:")),
    (&["exceed the configured limit of"], Behind("configured limit of")),
    (&["greater than max_seq_len"], Behind("greater than max_seq_len")),
    (&["exceeds context length"], Behind("exceeds context length")),
    (&["exceeds the maximum allowed length ("], Behind("allowed length (")),
    (&["maximum allowed input length of"], Behind("allowed input length of")),
    (&["context length is only"], Behind("context length is only")),
    (&["configured context size is"], Behind("context size is")),
    (&["context window limit ("], Behind("window limit (")),
    (&["too many input tokens", "max input tokens:"], Behind("max input tokens:")),
    (&["more than max tokens allowed"], Behind("max tokens allowed (")),
    (&["exceeds model's maximum context length"], Behind("maximum context length (")),
    (&["model maximum context length:"], Behind("model maximum context length:")),
    (&["prompt is too long", "maximum"], Before("maximum")),
    (&["input length and `max_tokens` exceed context limit"], Behind("> ")),
    (&["too large for model with", "maximum context length"], Before("maximum context length")),
    (&["maximum context length of"], Behind("maximum context length of")),
    (&["maximum context length is"], Behind("maximum context length is")),
    (&["maximum model length of"], Behind("maximum model length of")),
    (&["maximum prompt length is"], Behind("maximum prompt length is")),
    (&["exceeds the available context size"], Behind("context size (")),
    (&["longer than the model's context length"], Behind("context length (")),
    (&["context length of only"], Behind("context length of only")),
    (&["exceeds the maximum number of tokens allowed ("], Behind("tokens allowed (")),
    (&["exceeds the maximum number of tokens allowed"], Behind("tokens allowed")),
    (&["input token count is", "model only supports up to"], Behind("only supports up to")),
    (&["requested tokens", "exceed context window of"], Behind("context window of")),
    (&["larger than the model input length limit"], Behind("input length limit")),
    (&["input tokens", "cannot exceed the total tokens limit"], Behind("total tokens limit")),
    (&["but the maximum supported sequence length is"], Behind("sequence length is just")),
    (&["too many tokens: size limit exceeded"], Nowhere),
    (&["number of input tokens exceeds maximum length"], Nowhere),
    (&["exceed max message tokens"], Nowhere),
    (&["exceeds the maximum number of tokens"], Nowhere),
    (&["number of tokens in the prompt cannot exceed"], Behind("cannot exceed")),
    (&["tokens + `max_new_tokens` must be <="], Behind("must be <=")),
    (&["`inputs` must have less than"], Behind("must have less than")),
    (&["prompt length", "should not exceed max_num_tokens"], Behind("max_num_tokens (")),
    (&["prompt token count", "exceeds the limit of"], Behind("exceeds the limit of")),
    (&["reduce the length of the messages", "while limit is"], Behind("while limit is")),
    (&["range of input length should be"], Behind("[1,")),
    (&["exceeded model token limit"], Behind("token limit:")),
    (&["greater than the context length"], Nowhere),
    (&["exceeds the context window"], Nowhere),
    (&["exceeds the model's maximum context"], Nowhere),
    (&["input exceeds maximum context length"], Nowhere),
    (&["maximum context length"], Nowhere),
    (&["context window exceeds limit"], Nowhere),
    (&["prompt exceeds max length"], Nowhere),
    (&["prompt is too long"], Nowhere),
    (&["input is too long"], Nowhere),
    (&["reduce the length of the messages"], Nowhere),
    (&["total length of all messages is too long"], Nowhere),
    (&["total message size", "exceeds limit"], Nowhere),
    (&["prompt too long"], Nowhere),
    (&["context size has been exceeded"], Nowhere),
    (&["context length exceeded"], Nowhere),
    (&["exceeds the context limit"], Nowhere),
    (&["exceeds the context length"], Nowhere),
    (&["exceeds", "model context window"], Nowhere),
];

impl ProviderError {
    pub fn is_context_overflow(&self) -> bool {
        let message = self.message.to_lowercase();
        // A rate limit uses the same words, but then waiting helps, unless this single request exceeds the limit.
        if self.status == Some(429) {
            return ALONE.iter().all(|part| message.contains(part));
        }
        KINDS.iter().any(|kind| self.kind == *kind || message.contains(kind)) || row(&message).is_some()
    }

    /// Returns the window's size in tokens that the error's message names; `None` if it names none.
    pub fn named_window(&self) -> Option<u64> {
        let message = self.message.to_lowercase();
        let number = match row(&message)? {
            Behind(words) => message.split_once(words).and_then(|(_, rest)| number_at_start(rest)),
            Before(words) => message.rsplit_once(words).and_then(|(rest, _)| number_at_end(rest)),
            Nowhere => None,
        };
        number.filter(|number| *number >= LEAST)
    }
}

fn row(message: &str) -> Option<WindowAt> {
    let fits = |(parts, _): &&(&[&str], WindowAt)| parts.iter().all(|part| message.contains(part));
    WORDS.iter().find(fits).map(|(_, place)| *place)
}

const fn is_of_number(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, ',' | '_')
}

fn number_at_start(text: &str) -> Option<u64> {
    let text = text.trim_start();
    number(text.split(|c| !is_of_number(c)).next()?)
}

fn number_at_end(text: &str) -> Option<u64> {
    let text = text.trim_end();
    number(text.rsplit(|c| !is_of_number(c)).next()?)
}

fn number(text: &str) -> Option<u64> {
    text.chars().filter(char::is_ascii_digit).collect::<String>().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(message: &str) -> ProviderError {
        ProviderError::new("invalid_request_error", format!("the API answered 400 (x): {message}"))
    }

    /// Error messages of servers: the server's name, the message, and the size of the window that the message names.
    const SAID: &[(&str, &str, Option<u64>)] = &[
        ("Anthropic", "prompt is too long: 205000 tokens > 200000 maximum", Some(200_000)),
        (
            "Anthropic",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
            Some(200_000),
        ),
        (
            "OpenAI",
            "This model's maximum context length is 16385 tokens. However, your messages resulted in 20000 tokens. Please reduce the length of the messages.",
            Some(16_385),
        ),
        (
            "OpenAI responses",
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            None,
        ),
        (
            "OpenRouter",
            "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens",
            Some(131_072),
        ),
        (
            "DeepSeek",
            "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens",
            Some(65_536),
        ),
        (
            "vLLM",
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4900 in the messages, 100 in the completion).",
            Some(4_096),
        ),
        (
            "vLLM",
            "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller",
            Some(4_096),
        ),
        (
            "llama.cpp",
            "the request exceeds the available context size. try increasing the context size or enable context shift",
            None,
        ),
        (
            "llama.cpp",
            "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
            Some(8_192),
        ),
        ("ollama", "input exceeds maximum context length", None),
        (
            "Gemini",
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).",
            Some(1_048_576),
        ),
        (
            "xAI",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            Some(131_072),
        ),
        (
            "Mistral",
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            Some(32_768),
        ),
        ("Bedrock", "Input is too long for requested model.", None),
        ("Groq", "Please reduce the length of the messages or completion.", None),
        (
            "Cerebras",
            "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
            Some(8_192),
        ),
        (
            "Cohere",
            "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.",
            Some(4_081),
        ),
        (
            "TGI",
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens and 100 `max_new_tokens`",
            Some(4_097),
        ),
        ("TGI", "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000", Some(4_096)),
        (
            "SGLang",
            "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
            Some(4_096),
        ),
        (
            "SGLang",
            "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5000 tokens",
            Some(4_096),
        ),
        (
            "LM Studio",
            "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
            Some(4_096),
        ),
        (
            "LM Studio",
            "The number of tokens to keep from the initial prompt is greater than the context length.",
            None,
        ),
        (
            "TensorRT-LLM",
            "The sum of prompt length (5000.0), query length (0) should not exceed max_num_tokens (4096)",
            Some(4_096),
        ),
        ("Fireworks", "The prompt is too long: 5000, model maximum context length: 4096", Some(4_096)),
        ("GitHub Copilot", "prompt token count of 150000 exceeds the limit of 128000", Some(128_000)),
        ("DashScope", "Range of input length should be [1, 129024]", Some(129_024)),
        (
            "Moonshot",
            "Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)",
            Some(131_072),
        ),
        ("MiniMax", "invalid params, context window exceeds limit (2013)", None),
        ("Z.ai", "Prompt exceeds max length", None),
        ("Perplexity", "The total length of all messages is too long", None),
        (
            "OpenAI, Groq",
            "Request too large for m in organization o on tokens per min (TPM): Limit 6000, Requested 6294, please reduce your message size",
            Some(6_000),
        ),
        ("GitHub Models", "Request body too large for gpt-5-mini model. Max size: 4000 tokens.", Some(4_000)),
        (
            "Azure",
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 509178 tokens.",
            Some(272_000),
        ),
        ("TabbyAPI", "Request length 71599 + 2048 is greater than max_seq_len 65536", Some(65_536)),
        ("LM Studio", "Input length 5810 exceeds context length 4096", Some(4_096)),
        ("LM Studio with MLX", "Context size has been exceeded.", None),
        ("an MLX server", "Prompt exceeds maximum context length", None),
        (
            "SGLang",
            "Input length (5000 tokens) exceeds the maximum allowed length (4090 tokens). Use a shorter input",
            Some(4_090),
        ),
        ("Together", "Input exceeds the maximum allowed input length of 65,536 tokens", Some(65_536)),
        (
            "vLLM, NIM, Meta",
            "You passed 99073 input tokens and requested 32000 output tokens. However, the model's context length is only 131072 tokens, resulting in a maximum input length of 99072 tokens.",
            Some(131_072),
        ),
        (
            "vLLM",
            "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 12000 input tokens",
            Some(32_768),
        ),
        ("DwarfStar", "Prompt has 9000 tokens, but the configured context size is 8192 tokens", Some(8_192)),
        (
            "Cloudflare",
            "5021: The estimated number of input and maximum output tokens (40000) exceeded this model context window limit (32768).",
            Some(32_768),
        ),
        (
            "Bedrock",
            "Too many input tokens. Max input tokens: 8192, request input token count: 9000",
            Some(8_192),
        ),
        ("Z.ai", "The number of tokens in request more than max tokens allowed (131072).", Some(131_072)),
        ("Z.ai", "tokens in request more than max tokens allowed", None),
        (
            "LiteLLM",
            "litellm.ContextWindowExceededError: Input length (265330) exceeds model's maximum context length (262144).",
            Some(262_144),
        ),
        ("Vertex AI", "litellm.BadRequestError: Vertex_aiException - Prompt is too long", None),
        ("Moonshot", "total message size 2306631 exceeds limit 2097152", None),
        ("ollama's own models", "prompt too long; exceeded max context length by 4021 tokens", None),
        ("a gateway", "Error: context length exceeded", None),
        ("a gateway", "Input exceeds the context limit", None),
        ("a gateway", "The request size exceeds the model context window limit", None),
        ("a gateway", "maximum context length is 1,048,576 tokens", Some(1_048_576)),
        ("a gateway", "prompt is too long: 9 tokens > 8 maximum", None),
        (
            "Vertex AI",
            "Unable to submit request because the input token count is 1251952 but model only supports up to 1048576. Reduce the input token count and try again.",
            Some(1_048_576),
        ),
        (
            "Gemini",
            "The input token count exceeds the maximum number of tokens allowed 1048576.",
            Some(1_048_576),
        ),
        ("llama-cpp-python", "Requested tokens (5136) exceed context window of 4096", Some(4_096)),
        (
            "MLC LLM",
            "Request prompt has 2331 tokens in total, larger than the model input length limit 1366.",
            Some(1_366),
        ),
        (
            "watsonx",
            "the number of input tokens 4171 cannot exceed the total tokens limit 4096 for this model",
            Some(4_096),
        ),
        (
            "SambaNova",
            "The provided prompt is 5000 tokens long, so generating 1 tokens requires a sequence length of 5001, but the maximum supported sequence length is just 4096!",
            Some(4_096),
        ),
        (
            "Cohere",
            "too many tokens: size limit exceeded by 300 tokens. Try using shorter or fewer inputs",
            None,
        ),
        (
            "Bedrock Nova",
            "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
            None,
        ),
        ("Volcengine", "Total tokens of image and text exceed max message tokens", None),
        ("ollama", "the input length exceeds the context length", None),
    ];

    #[test]
    fn z4_every_servers_words_are_known_and_the_window_in_them_is_found() {
        for (server, words, window) in SAID {
            let error = error(words);
            assert!(error.is_context_overflow(), "{server}: {words}");
            assert_eq!(error.named_window(), *window, "{server}: {words}");
        }
    }

    #[test]
    fn z4_the_same_words_count_whatever_the_status_but_that_of_a_rate_limit() {
        let words = "This model's maximum context length is 4096 tokens";
        for (status, expected) in
            [(400, true), (413, true), (422, true), (500, true), (503, true), (429, false)]
        {
            let error = ProviderError { status: Some(status), ..error(words) };
            assert_eq!(error.is_context_overflow(), expected, "{status}");
        }
        assert!(ProviderError::new("context_length_exceeded", "no").is_context_overflow());
        let alone = "Request too large for m on tokens per min (TPM): Limit 30000, Requested 31000.";
        let alone = ProviderError { status: Some(429), ..error(alone) };
        assert!(alone.is_context_overflow(), "no wait makes one request fit");
        assert_eq!(alone.named_window(), Some(30_000));
    }

    #[test]
    fn z4_other_refusals_are_about_something_else() {
        for words in [
            "max_tokens: 99999 > 8192, which is the maximum allowed number of output tokens",
            "messages.0: text content blocks must be non-empty",
            "Rate limit reached for tokens per minute: Limit 6000",
            "image exceeds the maximum of 5 MB",
            "The maximum number of tools is 128",
            "Too many tokens, please wait before trying again.",
            "Rate limit reached for m on tokens per min (TPM): Limit 15000, Used 11972, Requested 4351. Please try again in 5.289s.",
        ] {
            assert!(!error(words).is_context_overflow(), "{words}");
        }
    }
}
