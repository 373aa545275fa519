"""Runs responses of a scripted model with the published packages openai and openai-agents: responses.py ADDRESS

The model answers with the user's text. If the user asks the model to count, the model calls kv_increment first.
"""

import asyncio
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

import openai
from agents import (
    Agent,
    HostedMCPTool,
    ModelSettings,
    OpenAIResponsesCompactionSession,
    OpenAIResponsesModel,
    Runner,
    SQLiteSession,
    set_tracing_disabled,
)
from openai import AsyncOpenAI, OpenAI

ADDRESS = sys.argv[1]
MEMORY_TOOL = {
    "type": "mcp",
    "server_label": "memory",
    "server_url": "threadkeep:memory",
    "require_approval": "never",
}


def check_responses(base_url):
    client = OpenAI(base_url=base_url)
    conversation = f"thrd_{uuid.uuid4().hex}"
    first = client.responses.create(
        model="scripted", conversation=conversation, tools=[MEMORY_TOOL], input="count"
    )
    assert first.status == "completed", first
    assert [item.type for item in first.output] == ["mcp_call", "message"], first.output
    assert first.output[0].output == '{"ok":true,"value":1}', first.output[0]
    assert first.output_text == "counted", first.output_text
    assert first.usage.total_tokens > 0
    again = client.responses.retrieve(first.id)
    assert again == first
    input_items = client.responses.input_items.list(first.id)
    assert input_items.data[0].content[0].text == "count"
    second = client.responses.create(
        model="scripted", previous_response_id=first.id, tools=[MEMORY_TOOL], input="count"
    )
    assert second.output[0].output == '{"ok":true,"value":2}', second.output[0]
    assert client.responses.cancel(second.id) == second
    client.responses.delete(second.id)
    try:
        client.responses.retrieve(second.id)
        raise AssertionError("the response was not deleted")
    except openai.NotFoundError as error:
        assert error.code == "response_not_found", error
    assert "scripted" in [model.id for model in client.models.list()]
    try:
        client.responses.create(model="other", input="hi")
        raise AssertionError("no such model")
    except openai.NotFoundError as error:
        assert error.code == "model_not_found", error


def check_streams(base_url):
    client = OpenAI(base_url=base_url)
    with client.responses.stream(model="scripted", tools=[MEMORY_TOOL], input="count") as stream:
        texts = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert "".join(texts) == final.output_text == "counted", (texts, final)
    assert [item.type for item in final.output] == ["mcp_call", "message"], final.output
    events = list(client.responses.create(model="scripted", input="hello", stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed", events[-1]
    assert events[-1].response.output_text == "hello", events[-1]
    response = events[0].response.id
    for number in range(len(events)):
        rest = list(client.responses.retrieve(response, stream=True, starting_after=number))
        assert rest == events[number + 1 :], rest
    weather = {"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": False}
    with client.responses.stream(model="scripted", tools=[weather], input="weather") as stream:
        for _ in stream:
            pass
        [call] = stream.get_final_response().output
    assert (call.name, call.arguments) == ("weather", '{"city":"Oslo"}'), call
    queued = client.responses.create(model="scripted", input="hello", background=True)
    assert queued.status == "queued", queued
    with client.responses.stream(response_id=queued.id) as stream:
        later = stream.until_done().get_final_response()
    assert later.output_text == "hello", later
    assert client.responses.retrieve(queued.id).status == "completed"
    # the model pauses for longer than a stream may stay silent
    events = list(client.responses.create(model="scripted", input="hello", stream=True))
    assert events[-1].response.output_text == "hello", events[-1]


def check_conversation(base_url):
    client = OpenAI(base_url=base_url)
    conversation = client.conversations.create()
    client.responses.create(model="scripted", conversation=conversation.id, input="hello")
    items = client.conversations.items.list(conversation.id, order="asc").data
    assert [item.role for item in items] == ["user", "assistant"], items
    assert items[1].content[0].text == "hello"


def check_forks():
    client = OpenAI(base_url=f"http://{ADDRESS}/v1")
    window = {"threadkeep": {"messages": {"key": "messages", "max_records": 3}}}
    first = client.responses.create(model="scripted", input="hello", extra_body=window)
    second = client.responses.create(
        model="scripted", input="hello", previous_response_id=first.id, extra_body=window
    )
    other = client.responses.create(model="scripted", input="hello", previous_response_id=first.id)
    assert second.conversation == first.conversation
    assert other.conversation != first.conversation
    items = client.conversations.items.list(other.conversation.id, order="asc").data
    assert [item.role for item in items] == ["user", "assistant"] * 2, items
    thread = first.conversation.id.replace("conv_", "thrd_")
    messages = client.get(f"/threads/{thread}/state/messages", cast_to=list)
    assert [message["role"] for message in messages] == ["assistant", "user", "assistant"], messages


def check_compaction():
    client = OpenAI(base_url=f"http://{ADDRESS}/v1")
    history = [{"role": "user", "content": "I like tea."}, {"role": "assistant", "content": "Noted."}]
    compacted = client.responses.compact(model="scripted", input=history, instructions="Be brief.")
    assert compacted.object == "response.compaction" and compacted.usage.total_tokens > 0, compacted
    assert [item.type for item in compacted.output] == ["message", "compaction"], compacted
    assert compacted.output[0].content[0].text == "I like tea.", compacted
    items = [item.model_dump(exclude_none=True, warnings=False) for item in compacted.output]
    answer = client.responses.create(model="scripted", input=[*items, {"role": "user", "content": "hello"}])
    assert answer.output_text == "hello", answer
    again = client.responses.compact(model="scripted", previous_response_id=answer.id)
    assert [item.type for item in again.output] == ["message", "message", "compaction"], again
    for call, param in [
        (lambda: client.responses.compact(model=None, input="a"), "model"),
        (lambda: client.responses.input_tokens.count(model="scripted", input="a"), "model"),
    ]:
        try:
            call()
            raise AssertionError(param)
        except openai.BadRequestError as error:
            assert error.param == param, error


async def check_compaction_session():
    """Compacts the session of an agent, as openai-agents does for long sessions."""
    client = AsyncOpenAI(base_url=f"http://{ADDRESS}/v1")
    session = OpenAIResponsesCompactionSession("s", SQLiteSession("s"), client=client, compaction_mode="input")
    await session.add_items([{"role": "user", "content": "I like tea."}, {"role": "assistant", "content": "Noted."}])
    await session.run_compaction({"force": True})
    items = await session.get_items()
    assert [item.get("type", "message") for item in items] == ["message", "compaction"], items
    agent = Agent(name="a", model=OpenAIResponsesModel(model="scripted", openai_client=client))
    result = await Runner.run(agent, "hello", session=session)
    assert result.final_output == "hello", result.final_output


def check_documents():
    """Runs the programs in the documentation. Replaces only the address, the key and the model."""
    for page, expected in [
        ("docs/model-loop.md", ["hello"] * 6 + ["404 model_not_found"]),
        ("docs/modelrelay.md", ["hello"]),
        ("docs/coming-from.md", ["hello"]),
    ]:
        blocks = re.findall(r"^```python\n(.*?)^```$", Path(page).read_text(), re.MULTILINE | re.DOTALL)
        # tests/python-package.sh runs the programs that use threadkeep's own package
        program = "\n".join(block for block in blocks if "client.responses" in block or "httpx" in block)
        for documented, actual in [
            ("http://127.0.0.1:8080", f"http://{ADDRESS}"),
            ("a-secret-of-32-characters-or-more", os.environ["OPENAI_API_KEY"]),
            ("a-secret-of-at-least-32-characters", os.environ["OPENAI_API_KEY"]),
            ("gpt-5.2-mini", "scripted"),
        ]:
            program = program.replace(documented, actual)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
        assert done.stdout.splitlines() == expected, (page, done.stdout, done.stderr)


async def check_agent():
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"http://{ADDRESS}/v1")
    agent = Agent(
        name="counter",
        model=OpenAIResponsesModel(model="scripted", openai_client=client),
        tools=[HostedMCPTool(tool_config=MEMORY_TOOL)],
        model_settings=ModelSettings(store=True),
    )
    conversation = f"thrd_{uuid.uuid4().hex}"
    for _ in range(2):
        result = await Runner.run(agent, "count", conversation_id=conversation)
        assert result.final_output == "counted", result.final_output
    streamed = Runner.run_streamed(agent, "count", conversation_id=conversation)
    kinds = [event.item.type async for event in streamed.stream_events() if event.type == "run_item_stream_event"]
    assert streamed.final_output == "counted", streamed.final_output
    assert kinds[-1] == "message_output_item", kinds
    client = OpenAI(base_url=f"http://{ADDRESS}/v1")
    items = client.conversations.items.list(conversation.replace("thrd_", "conv_"), order="asc").data
    outputs = [item.output for item in items if item.type == "mcp_call"]
    assert outputs == [f'{{"ok":true,"value":{count}}}' for count in (1, 2, 3)], outputs


for path in ["/v1", "/openai/v1"]:
    check_responses(f"http://{ADDRESS}{path}")
    check_streams(f"http://{ADDRESS}{path}")
    check_conversation(f"http://{ADDRESS}{path}")
check_forks()
check_documents()
asyncio.run(check_agent())
check_compaction()
asyncio.run(check_compaction_session())
print(f"model responses: 11 checks by openai {openai.__version__}")
