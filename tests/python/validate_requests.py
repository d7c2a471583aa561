"""Validates bodies of requests to the Messages API against the types of the vendor's own Python SDK.

    python3 validate_requests.py BODY.json ...

The SDK's types are TypedDicts: made for type checkers, and lenient towards what they do not name. Here every one of them
forbids keys that it does not name, nothing is converted, and every list is read to its end (pydantic reads an `Iterable` only
as far as somebody asks). Exit 0: every body is valid; 1: not every one, which and why on stderr, a line each; 77: the package
`anthropic` is not installed.
"""

import inspect
import json
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module

try:
    import anthropic.types
    from anthropic.types.content_block_param import ContentBlockParam
    from anthropic.types.message_create_params import MessageCreateParamsStreaming
    from anthropic.types.tool_param import InputSchemaTyped
    from pydantic import ConfigDict, TypeAdapter, ValidationError
except ImportError:
    sys.exit(77)


def forbid_unknown_keys():
    """Makes every TypedDict of the SDK's strict, but for those that say themselves what they allow."""
    for module in pkgutil.iter_modules(anthropic.types.__path__):
        if module.ispkg or not module.name.endswith(("_param", "_params")):
            continue
        for _, kind in inspect.getmembers(import_module(f"anthropic.types.{module.name}"), inspect.isclass):
            if hasattr(kind, "__required_keys__") and "__pydantic_config__" not in vars(kind):
                kind.__pydantic_config__ = ConfigDict(extra="forbid")


def read(value):
    """Reads what was validated to its end: an error may lie in the last item of a list."""
    if isinstance(value, Mapping):
        for item in value.values():
            read(item)
    elif isinstance(value, (list, tuple, Iterator)):
        for item in value:
            read(item)


@cache
def adapter(kind):
    return TypeAdapter(kind)


def faults(kind, value, place):
    """What is wrong with a value: one line, or none."""
    try:
        read(adapter(kind).validate_python(value, strict=True))
    except ValidationError as error:
        said = (f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in meant(error.errors()))
        yield f"{place}: {'; '.join(said)}"


def meant(errors):
    """Of the errors of a union, which names each of its members, those of the member whose type was given."""
    others = {found["loc"][:1] for found in errors if found["loc"][-1:] == ("type",)}
    return [found for found in errors if found["loc"][:1] not in others] or errors[:3]


def faults_of_body(path):
    with open(path, encoding="utf-8") as file:
        body = json.load(file)
    # The SDK takes any mapping for a schema, and the types of replies, which allow any key, in messages: schemas are held to
    # what the API asks of them, and blocks to the types of requests.
    for index, tool in enumerate(body.get("tools", [])):
        yield from faults(InputSchemaTyped, tool.get("input_schema"), f"{path}: tools.{index}.input_schema")
    for index, message in enumerate(body["messages"]):
        content = message["content"]
        for number, item in enumerate([] if isinstance(content, str) else content):
            yield from faults(ContentBlockParam, item, f"{path}: messages.{index}.content.{number}")
    yield from faults(MessageCreateParamsStreaming, body, path)


def main(paths):
    forbid_unknown_keys()
    wrong = [next(faults_of_body(path), None) for path in paths]
    for fault in filter(None, wrong):
        print(fault, file=sys.stderr)
    if any(wrong):
        sys.exit(1)
    print(f"{len(paths)} requests are valid for anthropic {anthropic.__version__}")


if __name__ == "__main__":
    main(sys.argv[1:])
