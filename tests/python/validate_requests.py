"""Validates bodies of requests against the types of the vendor's own Python SDK.

    python3 validate_requests.py anthropic|openai|responses BODY.json ...

The first argument is the dialect: the Messages API, chat completions, or the Responses API. The SDK's types are TypedDicts,
which are made for type checkers and permit unknown keys. Here each of them forbids unknown keys, no value is converted, and
every list is read to its end (pydantic reads an `Iterable` only as far as a caller does). Exit status 0: all bodies are
valid. 1: some are not; standard error has a line with the reason for each. 77: the vendor's package is not installed.
"""

import inspect
import json
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module

NOT_INSTALLED = 77

try:
    from pydantic import ConfigDict, TypeAdapter, ValidationError
except ImportError:
    sys.exit(NOT_INSTALLED)


def forbid_unknown_keys(package):
    """Makes every TypedDict of these types forbid unknown keys, unless it declares which ones it permits."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if module.ispkg or not module.name.endswith(("_param", "_params")):
            continue
        for _, kind in inspect.getmembers(import_module(module.name), inspect.isclass):
            if hasattr(kind, "__required_keys__") and "__pydantic_config__" not in vars(kind):
                kind.__pydantic_config__ = ConfigDict(extra="forbid")


def read(value):
    """Reads a validated value to its end, because an error may be in the last item of a list."""
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
    """Returns a line about the faults of a value, or no line."""
    try:
        read(adapter(kind).validate_python(value, strict=True))
    except ValidationError as error:
        said = (f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in meant(error.errors()))
        yield f"{place}: {'; '.join(said)}"


def meant(errors):
    """Returns the errors of the member of a union whose type is given. Pydantic reports the errors of all members."""
    others = {found["loc"][:1] for found in errors if found["loc"][-1:] in (("type",), ("role",))}
    return [found for found in errors if found["loc"][:1] not in others] or errors[:3]


def anthropic_faults():
    import anthropic.types
    from anthropic.types.content_block_param import ContentBlockParam
    from anthropic.types.message_create_params import MessageCreateParamsStreaming
    from anthropic.types.tool_param import InputSchemaTyped

    forbid_unknown_keys(anthropic.types)

    def of_body(body, path):
        # The SDK accepts any mapping as a schema, and in messages the types of replies, which permit any key.
        # So schemas are checked by the rules of the API, and blocks by the types of requests.
        for index, tool in enumerate(body.get("tools", [])):
            yield from faults(InputSchemaTyped, tool.get("input_schema"), f"{path}: tools.{index}.input_schema")
        for index, message in enumerate(body["messages"]):
            content = message["content"]
            for number, item in enumerate([] if isinstance(content, str) else content):
                yield from faults(ContentBlockParam, item, f"{path}: messages.{index}.content.{number}")
        yield from faults(MessageCreateParamsStreaming, body, path)

    return f"anthropic {anthropic.__version__}", of_body


def openai_faults():
    import openai.types
    from openai.types.chat.chat_completion_message_param import ChatCompletionMessageParam
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    forbid_unknown_keys(openai.types)

    def of_body(body, path):
        # The errors of a single message name a few members of the union, those of the whole list too many.
        for index, message in enumerate(body["messages"]):
            yield from faults(ChatCompletionMessageParam, message, f"{path}: messages.{index}")
        yield from faults(CompletionCreateParamsStreaming, body, path)

    return f"openai {openai.__version__}", of_body


def responses_faults():
    import openai.types
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
    from openai.types.responses.response_input_item_param import ResponseInputItemParam

    forbid_unknown_keys(openai.types)

    def of_body(body, path):
        for index, item in enumerate(body["input"]):
            yield from faults(ResponseInputItemParam, item, f"{path}: input.{index}")
        yield from faults(ResponseCreateParamsStreaming, body, path)

    return f"openai {openai.__version__}", of_body


DIALECTS = {"anthropic": anthropic_faults, "openai": openai_faults, "responses": responses_faults}


def main(dialect, *paths):
    try:
        package, faults_of_body = DIALECTS[dialect]()
    except ImportError:
        sys.exit(NOT_INSTALLED)

    def first_fault(path):
        with open(path, encoding="utf-8") as file:
            return next(faults_of_body(json.load(file), path), None)

    wrong = [first_fault(path) for path in paths]
    for fault in filter(None, wrong):
        print(fault, file=sys.stderr)
    if any(wrong):
        sys.exit(1)
    print(f"{len(paths)} requests are valid for {package}")


if __name__ == "__main__":
    main(*sys.argv[1:])
