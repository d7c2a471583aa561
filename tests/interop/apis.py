"""The three APIs by which one server is asked, each through Bailiwick's provider for it."""

from messages import chat_request, request, responses_request


class Api:
    """One of Bailiwick's providers: its name, the path of its API on the server, the function that makes requests, the
    name of the token limit, and the stop reason of a reply that llama.cpp's server cuts at the limit."""

    def __init__(self, provider, path, request, limit, cut):
        self.provider, self.path, self.request, self.limit, self.cut = provider, path, request, limit, cut

    def ask(self, prompt, most=64):
        """Returns a request for at most `most` tokens, with temperature 0."""
        return self.request("any", prompt, temperature=0, **{self.limit: most})


APIS = [
    Api("anthropic", "", request, "max_tokens", "max_tokens"),
    Api("openai", "/v1", chat_request, "max_tokens", "max_tokens"),
    # The server's stop reason is `completed`, even if the limit ended the reply.
    Api("responses", "/v1", responses_request, "max_output_tokens", "end_turn"),
]
