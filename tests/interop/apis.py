"""The three APIs by which one server is asked, each through the provider of ours that speaks it."""

from messages import chat_request, request, responses_request


class Api:
    """A provider of ours, the path below the server at which its API begins, how its requests are written, and the stop
    reason of a reply that llama.cpp's server cut at its limit."""

    def __init__(self, provider, path, request, limit, cut):
        self.provider, self.path, self.request, self.limit, self.cut = provider, path, request, limit, cut

    def ask(self, prompt, most=64):
        """A request for at most so many tokens, without chance in it."""
        return self.request("any", prompt, temperature=0, **{self.limit: most})


APIS = [
    Api("anthropic", "", request, "max_tokens", "max_tokens"),
    Api("openai", "/v1", chat_request, "max_tokens", "max_tokens"),
    # It says `completed`, whatever ended the reply.
    Api("responses", "/v1", responses_request, "max_output_tokens", "end_turn"),
]
