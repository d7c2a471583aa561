"""The meaning of a reply, in which two ways to the same reply must agree, whatever API they use."""

import json


def essence(answer):
    """Returns the parts of an answer of `debug stream` that have a meaning, by name."""
    if not answer["ok"]:
        # The name of an error differs by API. Its status, and whether a retry may help, do not.
        return {"error": {key: answer["error"][key] for key in ("status", "retryable")}}
    message = answer["message"]
    blocks = [block for block in map(meaning, message["content"]) if block is not None]
    return {"content": joined(blocks), "stop_reason": message["stop_reason"],
            "output_tokens": message["usage"].get("output_tokens")}


def meaning(block):
    """Returns a block without data that a gateway invents (ids, signatures), or None for a block without a meaning.

    Bailiwick's chat completions provider keeps `reasoning_details` to send them back. The Messages API has no such block.
    """
    kind = block["type"]
    if kind == "reasoning_details":
        return None
    if kind == "tool_use":
        return {"type": kind, "name": block["name"], "input": block["input"]}
    if kind == "reasoning":
        # An item of the Responses API is kept whole. Only its summary is text.
        block = {"type": "thinking", "thinking": "".join(part["text"] for part in block["item"]["summary"])}
        kind = block["type"]
    if kind in ("text", "thinking"):
        return {"type": kind, kind: block[kind]} if block[kind] else None
    return dict(block)


def joined(blocks):
    """Neighbouring texts are one: how many blocks a text is cut into is the server's choice."""
    result = []
    for block in blocks:
        if result and block["type"] in ("text", "thinking") and block["type"] == result[-1]["type"]:
            key = block["type"]
            result[-1] = {"type": key, key: result[-1][key] + block[key]}
        else:
            result.append(block)
    return result


def differing(one, other):
    """The names of the parts that differ."""
    return sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))


def shown(parts, keys):
    return json.dumps({key: parts.get(key) for key in keys}, ensure_ascii=False)


def request(model, prompt="Go.", **members):
    """A Messages API request."""
    return dict({"model": model, "max_tokens": 512, "messages": [{"role": "user", "content": prompt}]}, **members)


def chat_request(model, prompt="Go.", **members):
    """A chat completions request."""
    return dict({"model": model, "messages": [{"role": "user", "content": prompt}],
                 "stream_options": {"include_usage": True}}, **members)


def responses_request(model, prompt="Go.", **members):
    """A Responses API request."""
    return dict({"model": model, "input": prompt, "store": False}, **members)
