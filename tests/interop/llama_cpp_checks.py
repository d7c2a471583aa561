"""Checks against llama.cpp's server with a tiny real model, by each API that both sides speak."""

import argparse
import json
import sys
import tempfile
import urllib.request
from pathlib import Path

from apis import APIS
from bailiwick import KEY, Bailiwick, copy_of, wait_for
from repair import DEMO
from report import Failure, Report, expect
from servers import Server, Unusable, free_port

CONTEXT = 8192
# A single thread without busy waiting. On a busy machine, threads that wait for each other are ten times slower.
UNHURRIED = ["--threads", "1", "--poll", "0"]
# Makes the model's token 2, <|im_end|>, likely. Otherwise a run would take minutes of text.
BRIEF = ["--logit-bias", "2+6"]
# Text with characters of every length in UTF-8, with joined characters, and in both directions.
SAID = "Größe 5 µm — 日本語, עברית, Ελλάδα, 👩‍🔬 🦀 𝒳 e\u0301"
# Text whose first token is not a whole character.
BEGINS_WITHIN = "🦀 " + SAID
STORY = "Write a very long story about a lighthouse keeper. Never stop."


class Llama:
    """A running server, and the Bailiwick that asks it."""

    def __init__(self, bailiwick, server):
        self.bailiwick, self.server = bailiwick, server

    def stream(self, api, request):
        return self.bailiwick.stream(api.provider, self.server.url + api.path, request)

    def message(self, api, request):
        answer = self.stream(api, request)
        expect(answer["ok"], answer)
        return answer["message"]

    def page(self, path):
        request = urllib.request.Request(self.server.url + path, headers={"authorization": "Bearer " + KEY})
        with urllib.request.urlopen(request, timeout=30) as page:
            return json.load(page)

    def busy(self):
        return any(slot["is_processing"] for slot in self.page("/slots"))


def llama_server(options, work, *arguments):
    port = free_port()
    command = [options.server, "--model", options.model, "--host", "127.0.0.1", "--port", str(port), "--ctx-size",
               str(CONTEXT), "--parallel", "1", "--slots", *UNHURRIED, *arguments]
    # The key is passed in the environment, because everybody on the machine can read arguments.
    return Server(command, port, "/health", work / ("llama-%d.log" % port), {"LLAMA_API_KEY": KEY})


def only(text):
    """Returns a grammar that permits the model only this text."""
    return "--grammar", "root ::= %s" % json.dumps(text, ensure_ascii=False)


def text_of(message):
    return "".join(block["text"] for block in message["content"] if block["type"] == "text")


def check_text(llama, api):
    message = llama.message(api, api.ask("Say hello and tell me what two and two is.", 200))
    expect(text_of(message).strip(), message)
    expect(message["stop_reason"] == "end_turn", message)
    usage = message["usage"]
    expect(usage["input_tokens"] + usage.get("cache_read_input_tokens", 0) > 10 and usage["output_tokens"] > 1, usage)
    return "%d tokens: %r" % (usage["output_tokens"], text_of(message)[:60])


def check_limit(llama, api):
    message = llama.message(api, api.ask(STORY, 8))
    expect(message["stop_reason"] == api.cut, message)
    expect(message["usage"]["output_tokens"] == 8, message["usage"])


def check_row(llama, api):
    """Asks a question ten times: the answer is the same, and the whole prompt is counted although it was cached."""
    messages = [llama.message(api, api.ask("Count from one to five.", 24)) for _ in range(10)]
    texts = {text_of(message) for message in messages}
    prompts = {usage["input_tokens"] + usage.get("cache_read_input_tokens", 0)
               for usage in (message["usage"] for message in messages)}
    expect(len(texts) == 1, texts)
    expect(len(prompts) == 1, prompts)
    kept = messages[-1]["usage"].get("cache_read_input_tokens", 0)
    return "%d prompt tokens, %d of them read from the cache at the end" % (prompts.pop(), kept)


def check_cancel(llama, api):
    """Checks that the server stops when the client has gone, and serves the next client."""
    bailiwick, url = llama.bailiwick, llama.server.url + api.path
    bailiwick.killed_stream(api.provider, url, api.ask(STORY, 6000), until=llama.busy)
    wait_for(lambda: not llama.busy(), 10, "the slot to be free again")
    llama.message(api, api.ask("Hi.", 4))


def check_overlong(llama, api):
    answer = llama.stream(api, api.ask("word " * (2 * CONTEXT), 16))
    expect(not answer["ok"], answer)
    error = answer["error"]
    expect(error["status"] == 400 and not error["retryable"], error)
    expect("context" in error["message"], error)
    return "%s: %s" % (error["type"], error["message"])


def check_key(llama, api):
    answer = llama.bailiwick.stream(api.provider, llama.server.url + api.path, api.ask("Hi."), key="sk-wrong-" + "0" * 32)
    expect(not answer["ok"] and answer["error"]["status"] == 401 and not answer["error"]["retryable"], answer)


def check_unicode_prompt(llama, api):
    """Checks that the server counts the tokens of a prompt as it counts those of the text itself."""
    prompt = SAID * 20
    short, whole = (llama.message(api, api.ask(text, 8))["usage"] for text in (SAID, prompt))
    grown = sum(whole.get(key, 0) - short.get(key, 0) for key in ("input_tokens", "cache_read_input_tokens"))
    expect(abs(grown - 19 * count(llama, SAID)) <= 20, "%d tokens more, of %d each" % (grown, count(llama, SAID)))
    return "%d tokens" % grown


def count(llama, text):
    data = json.dumps({"content": text}).encode()
    request = urllib.request.Request(llama.server.url + "/tokenize", data,
                                     {"authorization": "Bearer " + KEY, "content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as page:
        return len(json.load(page)["tokens"])


def check_said(llama, api, said):
    """Checks that the only text that the model may say arrives unchanged, though tokens end within characters."""
    message = llama.message(api, api.ask("Say it.", 200))
    expect(text_of(message) == said, message)


def check_exec(llama, api, work):
    """Checks that a run with all of Bailiwick's tools ends normally, whatever the model says."""
    project = copy_of(DEMO, work / ("project-" + api.provider))
    named = [] if api.provider == "anthropic" else ["--provider", api.provider]
    status, events, said = llama.bailiwick.exec(project, "Say hello.", "--mode", "deny", "--model", "smollm2",
                                                "--base-url", llama.server.url + api.path, "--timeout", "500", *named)
    messages = [event["data"] for event in events if event["type"] == "assistant_message"]
    result = events[-1]["data"] if events else {}
    expect(status == 0 and len(messages) == 1 and result.get("text"), "exit status %d: %s %s" % (status, said, result))
    return "%d tokens in, %d out" % (result["usage"]["input"], result["usage"]["output"])


def check_agreement(llama, apis):
    """Checks that at temperature 0 the same question has the same answer by each API."""
    messages = [llama.message(api, api.ask("Name three colours.", 40)) for api in apis]
    texts = {text_of(message) for message in messages}
    expect(len(texts) == 1 and texts.pop().strip(), messages)
    return "%d APIs" % len(apis)


CHECKS = [("text and usage", check_text), ("max_tokens", check_limit), ("ten in a row", check_row),
          ("cancelled in mid-stream", check_cancel), ("a prompt that is too long", check_overlong),
          ("a wrong key", check_key)]


def run_checks(options, work, report):
    bailiwick = Bailiwick(options.bailiwick, work)
    apis = [api for api in APIS if bailiwick.speaks(api.provider)]
    for api in APIS:
        if api not in apis:
            report.skip(api.provider, "this build does not speak it")
    with llama_server(options, work) as server:
        llama = Llama(bailiwick, server)
        for api in apis:
            for name, check in CHECKS:
                report.check("%s: %s" % (api.provider, name), check, llama, api)
        report.check("the same answer by each API", check_agreement, llama, apis)
    with llama_server(options, work, *only(SAID)) as server:
        for api in apis:
            llama = Llama(bailiwick, server)
            report.check("%s: a prompt in many scripts" % api.provider, check_unicode_prompt, llama, api)
            report.check("%s: a reply in many scripts" % api.provider, check_said, llama, api, SAID)
    with llama_server(options, work, *only(BEGINS_WITHIN)) as server:
        for api in apis:
            name = "%s: a reply that begins within a character" % api.provider
            report.check(name, check_said, Llama(bailiwick, server), api, BEGINS_WITHIN)
    with llama_server(options, work, *BRIEF) as server:
        for api in apis:
            report.check("%s: exec" % api.provider, check_exec, Llama(bailiwick, server), api, work)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bailiwick", required=True, help="the binary")
    parser.add_argument("--server", required=True, help="llama.cpp's llama-server")
    parser.add_argument("--model", required=True, help="a GGUF file")
    options = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory(prefix="interop-") as work:
        try:
            run_checks(options, Path(work), report)
        except Unusable as reason:
            report.say("failed", "llama.cpp", reason)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
