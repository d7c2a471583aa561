"""Checks against LiteLLM's proxy, which gets recorded chat completions and encodes them as streams of other APIs.

Each recording is requested three times: through LiteLLM by the Messages API and by the Responses API, and from the player by
chat completions. The messages that Bailiwick's providers decode must agree with each other, and with the recording's
`expected.json` if there is one.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from bailiwick import KEY, Bailiwick
from differences import MESSAGES, RESPONSES
from messages import chat_request, differing, essence, request, responses_request, shown
from player import Player
from repair import check_repair
from report import Report, expect
from servers import Server, Unusable, free_port

HERE = Path(__file__).resolve().parent
RECORDINGS = HERE / "recordings"
# Recording of a whole run, which `check_repair` checks.
RUN = "repair"
BRIDGED = "bridged/"


def recorded(directory):
    """Returns the names of the recorded streams in a directory, which may have the layout of BAILIWICK_WIRE."""
    for place in sorted(directory.iterdir()):
        meta = place / "meta.json"
        if meta.exists():
            meta = json.loads(meta.read_text())
            if meta["status"] != 200 or not meta["stream"]:
                continue
        if place.name != RUN:
            yield place.name


def expected(name):
    file = RECORDINGS / name / "expected.json"
    return json.loads(file.read_text()) if file.exists() else None


def configuration(player):
    """Returns LiteLLM's settings: every model is at the player. Below `bridged/` it uses chat completions only."""
    upstream = {"model": "openai/*", "api_base": player.url + "/v1", "api_key": "sk-upstream"}
    bridged = dict(upstream, use_chat_completions_api=True)
    models = [{"model_name": BRIDGED + "*", "litellm_params": bridged}, {"model_name": "*", "litellm_params": upstream}]
    # Without these settings LiteLLM would use the Responses API for an OpenAI model, and wait for a busy server itself.
    settings = {"use_chat_completions_url_for_anthropic_messages": True, "num_retries": 0, "request_timeout": 60,
                "drop_params": True, "telemetry": False}
    return {"model_list": models, "litellm_settings": settings, "general_settings": {"master_key": KEY},
            "router_settings": {"num_retries": 0, "disable_cooldowns": True}}


def litellm(program, player, work):
    file, port = work / "litellm.json", free_port()
    file.write_text(json.dumps(configuration(player)))
    command = [program, "--config", str(file), "--host", "127.0.0.1", "--port", str(port)]
    # Prices come with the package, so that LiteLLM reads nothing from the network.
    environment = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_DOCS": "True"}
    return Server(command, port, "/health/liveliness", work / "litellm.log", environment)


class Comparison:
    """Compares the results of one recording by three ways."""

    def __init__(self, bailiwick, player, gateway):
        self.bailiwick, self.player, self.gateway = bailiwick, player, gateway

    def stream(self, provider, url, body):
        self.player.rewind()
        return essence(self.bailiwick.stream(provider, url, body))

    def directly(self, name):
        return self.stream("openai", self.player.url + "/v1", chat_request(name))

    def check_direct(self, name):
        """Checks that Bailiwick's chat completions provider decodes a recording to the expected message."""
        agree(self.directly(name), expected(name), ())

    def check_messages(self, name):
        seen = self.stream("anthropic", self.gateway.url, request(name))
        return self.check_listed(name, seen, MESSAGES)

    def check_responses(self, name):
        seen = self.stream("responses", self.gateway.url + "/v1", responses_request(BRIDGED + name))
        return self.check_listed(name, seen, RESPONSES)

    def check_listed(self, name, seen, differences):
        """Checks that LiteLLM's encoding of a recording has the expected meaning, except for the listed differences."""
        listed, reason = differences.get(name, ((), ""))
        agree(seen, expected(name) or self.directly(name), listed)
        return "as listed, %s" % reason if listed else ""


def agree(seen, what, listed):
    keys = differing(seen, what)
    detail = "%s differ: %s, but it should be %s" % (keys, shown(seen, keys), shown(what, keys))
    expect(keys == sorted(listed), detail if keys else "is listed as different, but agrees now")


def check_recordings(report, comparison, names):
    for name in names:
        if expected(name) is not None:
            report.check("chat completions: %s" % name, comparison.check_direct, name)
        report.check("messages by LiteLLM: %s" % name, comparison.check_messages, name)
        report.check("responses by LiteLLM: %s" % name, comparison.check_responses, name)


def check_key(bailiwick, gateway):
    """Checks that a wrong key is refused, and does not appear in the error."""
    wrong = "sk-wrong-" + "0123456789abcdef" * 2
    answer = bailiwick.stream("anthropic", gateway.url, request("text"), key=wrong)
    expect(not answer["ok"] and answer["error"]["status"] in (400, 401), answer)
    expect(not answer["error"]["retryable"], "it would be tried again: %s" % answer)
    expect(wrong not in json.dumps(answer), "the key is in the message: %s" % answer)


def run_checks(options, work, report):
    bailiwick = Bailiwick(options.bailiwick, work)
    wire = os.environ.get("BAILIWICK_WIRE")
    chat = [Path(wire) / "chat"] if wire else []
    with Player(RECORDINGS, *chat) as player, litellm(options.litellm, player, work) as gateway:
        comparison = Comparison(bailiwick, player, gateway)
        names = [name for place in (RECORDINGS, *chat) for name in recorded(place)]
        check_recordings(report, comparison, [name for name in names if name in options.names or not options.names])
        if not options.names:
            report.check("a wrong key", check_key, bailiwick, gateway)
            report.check("messages by LiteLLM: exec", check_repair, bailiwick, player, gateway.url, "anthropic")
            report.check("responses by LiteLLM: exec", check_repair, bailiwick, player, gateway.url, "responses",
                         BRIDGED + RUN)
            report.check("chat completions: exec", check_repair, bailiwick, player, player.url, "openai")
    if not wire:
        report.skip("the recorded streams of others", "no recordings: BAILIWICK_WIRE is not set")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bailiwick", required=True, help="the binary")
    parser.add_argument("--litellm", required=True, help="LiteLLM's program")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a recording; everything if none is named")
    options = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory(prefix="interop-") as work:
        try:
            run_checks(options, Path(work), report)
        except Unusable as reason:
            report.say("failed", "LiteLLM", reason)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
