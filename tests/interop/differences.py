"""Where LiteLLM's encoding of a recording differs from the recording, by its own doing: the parts, and why."""

LITELLM = {
    "cut-stream": (("content", "error", "output_tokens", "stop_reason"),
                   "LiteLLM ends a stream that was cut with `end_turn` and a usage of its own"),
}
