"""Where LiteLLM's encoding of a recording is not what the recording says, by its own doing: which parts differ, and why."""

ESTIMATED = (("output_tokens",), "the server sends no usage, and LiteLLM estimates one")
NO_STATUS = (("error",), "LiteLLM makes every error in mid-stream an `api_error`, whatever its code")

LITELLM = {
    "cut-stream": (("content", "error", "output_tokens", "stop_reason"),
                   "LiteLLM ends a stream that was cut with `end_turn` and a usage of its own"),
    "error-in-stream": NO_STATUS,
    # With BAILIWICK_WIRE:
    "dd-completion-streamed-t0": ESTIMATED,
    "openllmetry-chat-tools-async-streaming-t0": ESTIMATED,
    "openllmetry-open-ai-function-calls-tools-streaming-parallel-t0": ESTIMATED,
    "openllmetry-open-ai-function-calls-tools-streaming-parallel-t1": ESTIMATED,
    "openllmetry-trace-propagation-stream-chatopenai-t0": ESTIMATED,
    "vercel-openai-compatible-anthropic-fallback-tool-call": ESTIMATED,
    "pydantic-openrouter-stream-error-t0": NO_STATUS,
    "pydantic-tool-use-failed-error-streaming-t0": NO_STATUS,
    "pydantic-tool-use-failed-error-streaming-with-text-t0": NO_STATUS,
    "pydantic-snowflake-thinking-streaming-t0": (
        ("content",), "LiteLLM knows `reasoning_content` and `reasoning`, but not `reasoning_details` alone"),
    "rig-agent-tool-sessions-parallel-tool-calls-single-turn-streaming-t0": (
        ("content",), "two calls with ids of their own share an index, and LiteLLM makes them one with the input `{}{}`"),
    "rig-refusal-matrix-streaming-agent-surfaces-refusal-t0": (
        ("stop_reason",), "LiteLLM looks for a refusal in the first chunk only, where this one is empty"),
    "rig-refusal-matrix-streaming-azure-routed-refusal-t0": (
        ("content",), "LiteLLM gives the first piece of the refusal as text, and drops the others"),
    "rig-refusal-matrix-streaming-raw-model-surfaces-refusal-t0": (
        ("content",), "LiteLLM gives the first piece of the refusal as text, and drops the others"),
    "rig-tool-truncation-matrix-streaming-ministral-3b-low-agent-t0": (
        ("content",), "the input was cut off before it began, which the Messages API cannot tell from `{}`; it does not run"),
}
