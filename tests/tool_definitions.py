"""Checks the server's tool definitions and results against the types in the libraries of OpenAI and Anthropic.

Usage: tool_definitions.py URL API_KEY
"""

import json
import re
import sys
import urllib.request
from typing import get_args

from anthropic.types import MessageParam, ToolParam, ToolResultBlockParam
from jsonschema import Draft202012Validator
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionToolMessageParam
from openai.types.shared_params import FunctionDefinition
from pydantic import TypeAdapter

SERVER, API_KEY = sys.argv[1:3]
SCOPE = "session:definitions"
CALLS = [
    ("kv_write", {"key": "user/name", "value": "Ada", "ttl_seconds": 60, "if_absent": True}),
    ("kv_read", {"key": "user/name", "with_version": True}),
    ("kv_list", {}),
    ("kv_delete", {"key": "user/name"}),
    ("kv_increment", {"key": "visits", "by": -2}),
    ("tasks_write", {"tasks": [{"content": "a", "status": "pending", "active_form": "doing a"}]}),
    ("tasks_read", {}),
    ("tasks_update", {"index": 0, "status": "completed"}),
]
WRONG = [
    ("kv_write", {"key": "user name", "value": "Ada"}),
    ("kv_write", {"key": "a", "value": "Ada", "ttl_seconds": 0}),
    ("kv_read", {}),
    ("kv_list", {"prefix": "a"}),
    ("kv_increment", {"key": "visits", "by": 0.5}),
    ("tasks_write", {"tasks": [{"content": "a", "status": "done"}]}),
    ("tasks_update", {"index": -1, "status": "completed"}),
]


def get(path):
    with urllib.request.urlopen(SERVER + path) as answer:
        return json.load(answer)


def post(path, body):
    headers = {"authorization": f"Bearer {API_KEY}", "content-type": "application/json"}
    request = urllib.request.Request(SERVER + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def check_type(value, kind):
    """Asserts that `value` has the type `kind`, without members that `kind` does not define."""
    TypeAdapter(kind).validate_python(value)
    kinds = get_args(kind) or [kind]
    assert any(set(value) <= set(member.__annotations__) for member in kinds), value


def check_definitions():
    schemas = {}
    for tool in get("/v1/tools?format=openai")["tools"]:
        check_type(tool, ChatCompletionFunctionToolParam)
        check_type(tool["function"], FunctionDefinition)
        schemas[tool["function"]["name"]] = tool["function"]["parameters"]
    for tool in get("/v1/tools?format=anthropic")["tools"]:
        check_type(tool, ToolParam)
        assert tool["input_schema"] == schemas[tool["name"]]
        # Anthropic's service rejects these keywords at the top level of a schema
        assert not {"oneOf", "anyOf", "allOf"} & set(tool["input_schema"])
    assert get("/v1/tools") == get("/v1/tools?format=openai")
    for name, schema in schemas.items():
        assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", name), name
        Draft202012Validator.check_schema(schema)
        assert "$ref" not in json.dumps(schema)
    return schemas


def check_results():
    """Checks that each tool's results match the output schema that MCP clients get."""
    tools = {tool["name"]: tool for tool in get("/v1/tools?format=mcp")["tools"]}
    assert list(tools) == [name for name, _ in CALLS]
    for name, arguments in CALLS:
        schema = tools[name]["outputSchema"]
        Draft202012Validator.check_schema(schema)
        answer = post(f"/v1/tools/{name}", {"scope": f"{SCOPE}-results", "arguments": arguments})
        Draft202012Validator(schema).validate(answer["result"])


def check_schemas(schemas):
    """Checks that each schema accepts and rejects the same arguments as its tool."""
    for calls, is_right in [(CALLS, True), (WRONG, False)]:
        for name, arguments in calls:
            assert Draft202012Validator(schemas[name]).is_valid(arguments) == is_right, name
            answer = post(f"/v1/tools/{name}", {"scope": SCOPE, "arguments": arguments})
            assert ("result" in answer) == is_right, (name, answer)
    assert set(schemas) == {name for name, _ in CALLS}


def check_messages():
    calls = list(enumerate(CALLS + WRONG + [("erase_all", {})]))
    openai = [
        {
            "id": f"call_{index}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for index, (name, arguments) in calls
    ]
    messages = post("/v1/tool-calls", {"scope": SCOPE, "tool_calls": openai})["messages"]
    assert [message["tool_call_id"] for message in messages] == [call["id"] for call in openai]
    for message in messages:
        check_type(message, ChatCompletionToolMessageParam)
        assert isinstance(json.loads(message["content"]), dict)
    anthropic = [
        {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": arguments}
        for index, (name, arguments) in calls
    ]
    content = [{"type": "text", "text": "Let me see."}, *anthropic]
    for body in [{"tool_use": anthropic}, {"content": content}]:
        [message] = post("/v1/tool-calls", {"scope": SCOPE, **body})["messages"]
        check_type(message, MessageParam)
        assert [block["tool_use_id"] for block in message["content"]] == [
            call["id"] for call in anthropic
        ]
        for block in message["content"]:
            check_type(block, ToolResultBlockParam)
        wrong = [block.get("is_error", False) for block in message["content"]]
        assert wrong == [False] * len(CALLS) + [True] * (len(WRONG) + 1)


check_schemas(check_definitions())
check_results()
check_messages()
print("definitions and messages match the types of openai and anthropic")
