"""Runs an application that uses a scripted model through OpenAI's and Anthropic's libraries. Sends the model's tool
calls to the replicas in turn: scripted_model.py API_KEY SERVER...
"""

import itertools
import json
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from anthropic import Anthropic
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam
from pydantic import TypeAdapter

API_KEY, *SERVERS = sys.argv[1:]
MESSAGE = TypeAdapter(ChatCompletionMessageParam)
# each tool call goes to the next replica
next_server = itertools.cycle(SERVERS)
used = {"weather": 0, "servers": set()}


def call_tool(name, **arguments):
    return [(name, arguments)]


def value(results):
    return results[-1]["value"] if results[-1].get("found") else None


# The model's actions after each user message, in order. An action gets only the results of the tool calls since that
# message, not earlier messages.
SCRIPT = {
    "Remember that I like metric units.": [
        lambda results: call_tool("kv_write", key="user/units", value="metric"),
        lambda results: "I will." if results == [{"ok": True}] else f"No: {results}",
    ],
    "How far is it from Oslo to Bergen?": [
        lambda results: call_tool("kv_read", key="user/units") + call_tool("kv_increment", key="questions"),
        lambda results: f"463 km, as you like {results[0]['value']} units"
        f" (question {results[1]['value']})",
    ],
    "Which units do I like?": [
        # an invalid key, which the model corrects after the error
        lambda results: call_tool("kv_read", key="user units"),
        lambda results: call_tool("kv_list") if "namespaced" in results[-1]["error"] else "Lost.",
        lambda results: call_tool("kv_read", key=results[-1]["keys"][-1]),
        lambda results: f"{value(results)} ones.",
    ],
    "What is the weather in Oslo?": [
        lambda results: call_tool("kv_read", key="cache/weather.oslo"),
        lambda results: value(results) or call_tool("get_weather", city="Oslo"),
        lambda results: call_tool(
            "kv_write", key="cache/weather.oslo", value=results[-1]["weather"], ttl_seconds=600
        ),
        lambda results: results[-2]["weather"] if results[-1] == {"ok": True} else "Not kept.",
    ],
    "Plan the party.": [
        lambda results: call_tool(
            "tasks_write",
            tasks=[
                {"content": "Invite guests", "status": "in_progress", "active_form": "Inviting"},
                {"content": "Bake a cake", "status": "pending"},
            ],
        ),
        lambda results: "Planned." if results == [{"ok": True}] else f"No: {results}",
    ],
    "The guests are invited.": [
        lambda results: call_tool("tasks_read"),
        lambda results: call_tool(
            "tasks_update",
            id=next(task["id"] for task in results[-1]["tasks"] if "guests" in task["content"]),
            status="completed",
        ),
        lambda results: "Good." if results[-1] == {"ok": True} else f"No: {results}",
    ],
    "Start over with the plan.": [
        lambda results: call_tool(
            "tasks_write",
            tasks=[{"content": "Buy balloons", "status": "pending"}],
            keep_unfinished=True,
        ),
        lambda results: call_tool("tasks_read") if "unfinished" in results[-1]["error"] else "Lost.",
        lambda results: "Still to do: "
        + ", ".join(
            task["content"] for task in results[-1]["tasks"] if task["status"] != "completed"
        ),
    ],
}


class Model(BaseHTTPRequestHandler):
    """Serves the parts of OpenAI's and Anthropic's chat APIs that the libraries of these providers use."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            answer = chat(body) if self.path.endswith("/chat/completions") else messages(body)
            status = 200
        except Exception as error:  # return the error to the application
            answer, status = {"error": {"message": repr(error), "type": "script"}}, 400
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def step(question, results, number):
    return SCRIPT[question][number](results)


def chat(body):
    assert body["tools"] == TOOLS["openai"] + [WEATHER["openai"]], "other tools"
    for message in body["messages"]:
        MESSAGE.validate_python(message)
    question = [message for message in body["messages"] if message["role"] == "user"][-1]
    turn = body["messages"][body["messages"].index(question) + 1 :]
    results = [json.loads(message["content"]) for message in turn if message["role"] == "tool"]
    steps = [message for message in turn if message["role"] == "assistant"]
    reply = step(question["content"], results, len(steps))
    message = {"role": "assistant", "content": None, "refusal": None}
    if isinstance(reply, str):
        message["content"] = reply
    else:
        message["tool_calls"] = [
            {
                "id": f"call_{len(turn)}_{index}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for index, (name, arguments) in enumerate(reply)
        ]
    finish = "stop" if isinstance(reply, str) else "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [choice],
    }


def messages(body):
    assert body["tools"] == TOOLS["anthropic"] + [WEATHER["anthropic"]], "other tools"
    question = next(
        message["content"]
        for message in reversed(body["messages"])
        if isinstance(message["content"], str)
    )
    turn = body["messages"][[m["content"] for m in body["messages"]].index(question) + 1 :]
    blocks = [block for message in turn[1::2] for block in message["content"]]
    # errors are returned as plain text
    results = [
        {"error": block["content"]} if block.get("is_error") else json.loads(block["content"])
        for block in blocks
    ]
    reply = step(question, results, len(turn) // 2)
    if isinstance(reply, str):
        content = [{"type": "text", "text": reply}]
    else:
        content = [{"type": "text", "text": "One moment."}] + [
            {
                "type": "tool_use",
                "id": f"toolu_{len(turn)}_{index}",
                "name": name,
                "input": arguments,
            }
            for index, (name, arguments) in enumerate(reply)
        ]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": "end_turn" if isinstance(reply, str) else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def post(server, path, body):
    headers = {"authorization": f"Bearer {API_KEY}", "content-type": "application/json"}
    request = urllib.request.Request(server + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def call_tools(scope, calls):
    server = next(next_server)
    used["servers"].add(server)
    return post(server, "/v1/tool-calls", {"scope": scope, "ignore_unknown": True, **calls})


def weather():
    used["weather"] += 1
    return json.dumps({"weather": "4 degrees and rain"})


def talk_openai(scope, question):
    """Runs one conversation. The model learns about earlier conversations only through its tools."""
    conversation = [{"role": "user", "content": question}]
    while True:
        answer = openai.chat.completions.create(
            model="scripted",
            messages=conversation,
            tools=TOOLS["openai"] + [WEATHER["openai"]],
        )
        message = answer.choices[0].message
        conversation.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content
        calls = [call.model_dump() for call in message.tool_calls]
        done = call_tools(scope, {"tool_calls": calls})
        conversation += done["messages"]
        conversation += [
            {"role": "tool", "tool_call_id": call["id"], "content": weather()}
            for call in done["unknown"]
        ]


def talk_anthropic(scope, question):
    conversation = [{"role": "user", "content": question}]
    while True:
        answer = anthropic.messages.create(
            model="scripted",
            max_tokens=100,
            messages=conversation,
            tools=TOOLS["anthropic"] + [WEATHER["anthropic"]],
        )
        content = [block.model_dump(exclude_none=True) for block in answer.content]
        conversation.append({"role": "assistant", "content": content})
        if answer.stop_reason != "tool_use":
            return content[-1]["text"]
        done = call_tools(scope, {"content": content})
        [message] = done["messages"] or [{"role": "user", "content": []}]
        message["content"] += [
            {"type": "tool_result", "tool_use_id": call["id"], "content": weather()}
            for call in done["unknown"]
        ]
        conversation.append(message)


def expect(talk, scope, question, answer):
    reply = talk(scope, question)
    assert reply == answer, (question, reply)


def converse(talk, name):
    units, forecast, party = (f"session:{name}-{part}" for part in ("units", "weather", "party"))
    expect(talk, units, "Remember that I like metric units.", "I will.")
    question = "How far is it from Oslo to Bergen?"
    expect(talk, units, question, "463 km, as you like metric units (question 1)")
    expect(talk, units, question, "463 km, as you like metric units (question 2)")
    expect(talk, units, "Which units do I like?", "metric ones.")

    calls_before = used["weather"]
    for _ in range(3):
        expect(talk, forecast, "What is the weather in Oslo?", "4 degrees and rain")
    assert used["weather"] == calls_before + 1, "the first answer was not cached"

    expect(talk, party, "Plan the party.", "Planned.")
    expect(talk, party, "The guests are invited.", "Good.")
    expect(talk, party, "Start over with the plan.", "Still to do: Bake a cake")


def definitions(format):
    with urllib.request.urlopen(f"{SERVERS[0]}/v1/tools?format={format}") as answer:
        return json.load(answer)["tools"]


CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {
    "openai": {"type": "function", "function": {"name": "get_weather", "parameters": CITY}},
    "anthropic": {"name": "get_weather", "input_schema": CITY},
}
TOOLS = {format: definitions(format) for format in ("openai", "anthropic")}

model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=model.serve_forever, daemon=True).start()
base = f"http://127.0.0.1:{model.server_port}"
openai = OpenAI(api_key="none", base_url=f"{base}/v1", max_retries=0)
anthropic = Anthropic(api_key="none", base_url=base, max_retries=0)

converse(talk_openai, "openai")
converse(talk_anthropic, "anthropic")
assert used["servers"] == set(SERVERS)
print(f"a scripted model kept its state with tools, on {len(SERVERS)} replicas in turn")
