"""Recordings that LiteLLM encodes wrongly by its own fault: for each, the parts that differ, and the reason."""

ESTIMATED = (("output_tokens",), "the server sends no usage, and LiteLLM estimates one")
NO_STATUS = (("error",), "LiteLLM gives an error in mid-stream without its code")

CUT = (("content", "error", "output_tokens", "stop_reason"),
       "LiteLLM ends a stream that was cut as if it were whole, with a usage of its own")
NOT_BEGUN = (("content",), "the input was cut off before it began, which this API cannot tell from `{}`; it does not run")
DETAILS_ALONE = (("content",), "LiteLLM knows `reasoning_content` and `reasoning`, but not `reasoning_details` alone")
NO_REFUSAL = (("stop_reason",), "LiteLLM drops the text of a refusal")
FIRST_PIECE = (("content",), "LiteLLM gives the first piece of the refusal as text, and drops the others")

BOTH = {
    "cut-stream": CUT,
    "error-in-stream": NO_STATUS,
    # These recordings are in BAILIWICK_WIRE.
    "dd-completion-streamed-t0": ESTIMATED,
    "openllmetry-chat-tools-async-streaming-t0": ESTIMATED,
    "openllmetry-open-ai-function-calls-tools-streaming-parallel-t0": ESTIMATED,
    "openllmetry-open-ai-function-calls-tools-streaming-parallel-t1": ESTIMATED,
    "openllmetry-trace-propagation-stream-chatopenai-t0": ESTIMATED,
    "vercel-openai-compatible-anthropic-fallback-tool-call": ESTIMATED,
    "pydantic-openrouter-stream-error-t0": NO_STATUS,
    "pydantic-tool-use-failed-error-streaming-t0": NO_STATUS,
    "pydantic-tool-use-failed-error-streaming-with-text-t0": NO_STATUS,
    "pydantic-snowflake-thinking-streaming-t0": DETAILS_ALONE,
    "rig-refusal-matrix-streaming-agent-surfaces-refusal-t0": NO_REFUSAL,
    "rig-tool-truncation-matrix-streaming-ministral-3b-low-agent-t0": NOT_BEGUN,
}

MESSAGES = {
    **BOTH,
    "rig-agent-tool-sessions-parallel-tool-calls-single-turn-streaming-t0": (
        ("content",), "two calls with ids of their own share an index, and LiteLLM makes them one with the input `{}{}`"),
    "rig-refusal-matrix-streaming-azure-routed-refusal-t0": FIRST_PIECE,
    "rig-refusal-matrix-streaming-raw-model-surfaces-refusal-t0": FIRST_PIECE,
}

RESPONSES = {
    **BOTH,
    "rig-refusal-matrix-streaming-azure-routed-refusal-t0": NO_REFUSAL,
    "rig-refusal-matrix-streaming-raw-model-surfaces-refusal-t0": NO_REFUSAL,
}
