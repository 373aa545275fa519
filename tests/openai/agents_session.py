"""Stores conversations of agents with the published package openai-agents: agents_session.py ADDRESS"""

import asyncio
import importlib.metadata
import logging
import sys

from agents import Agent, ModelSettings, OpenAIConversationsSession, RunConfig, Runner, function_tool
from agents.retry import ModelRetrySettings
from agents.run_internal.session_persistence import rewind_session_items
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from openai import AsyncOpenAI, NotFoundError

client = AsyncOpenAI(base_url=f"http://{sys.argv[1]}/v1")
# hides the warning that another caller has added items at the end of the conversation
logging.getLogger("openai.agents").setLevel(logging.ERROR)
CONFIG = RunConfig(tracing_disabled=True)


def session_of(conversation=None):
    return OpenAIConversationsSession(openai_client=client, conversation_id=conversation)


def texts_of(items):
    """Returns the text of each item."""
    return [item.get("output") or item.get("arguments") or item["content"][0]["text"] for item in items]


async def check_items():
    session = session_of()
    sent = [{"role": "user", "content": str(number)} for number in range(45)]
    await session.add_items(sent)
    stored = await session.get_items()
    assert texts_of(stored) == [str(number) for number in range(45)]
    for limit in (0, 1, 19, 20, 21, 30, 45, 100):
        assert await session.get_items(limit=limit) == (stored[-limit:] if limit else [])
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "1"}
    await session.add_items([call, output])
    popped = await session.pop_item()
    assert popped["output"] == "1" and popped["call_id"] == "c"
    assert (await session.pop_item())["name"] == "f"
    assert await session.get_items() == stored
    conversation = session.session_id
    assert await session_of(conversation).get_items() == stored
    await session.clear_session()
    assert await session.get_items() == []
    assert session.session_id != conversation


async def check_concurrent_pops():
    """Checks that concurrent callers never pop the same item twice. A caller gets 404 if another caller was faster."""
    session = session_of()
    await session.add_items([{"role": "user", "content": str(number)} for number in range(20)])

    async def pop_all():
        other, popped = session_of(session.session_id), []
        while True:
            try:
                item = await other.pop_item()
            except NotFoundError:
                continue
            if item is None:
                return popped
            popped.append(item["id"])

    popped = sum(await asyncio.gather(*(pop_all() for _ in range(4))), [])
    assert len(popped) == len(set(popped)) == 20


@function_tool
def lookup(name: str) -> str:
    return f"{name} is here"


async def run(agent, text, session, streamed):
    if not streamed:
        return (await Runner.run(agent, text, session=session, run_config=CONFIG)).final_output
    result = Runner.run_streamed(agent, text, session=session, run_config=CONFIG)
    async for _ in result.stream_events():
        pass
    return result.final_output


async def check_runner(streamed):
    """Checks that the model of a second run gets the items of the first run unchanged."""
    model = ScriptedModel([
        [function_call("lookup", {"name": "Ada"}, call_id="call_1")],
        [assistant_message("Ada is here.")],
        [assistant_message("As I said.")],
    ])
    agent, session = Agent(name="a", model=model, tools=[lookup]), session_of()
    assert await run(agent, "Where is Ada?", session, streamed) == "Ada is here."
    # a new session object continues the conversation, as another process would
    session = session_of(session.session_id)
    assert await run(agent, "Where?", session, streamed) == "As I said."
    expected = ["Where is Ada?", '{"name":"Ada"}', "Ada is here", "Ada is here.", "Where?"]
    seen = [item if isinstance(item.get("content"), list) or "type" in item and item["type"] != "message"
            else {"content": [{"text": item["content"]}]} for item in model.calls[-1].input]
    assert texts_of(seen) == expected, model.calls[-1].input
    assert texts_of(await session.get_items()) == [*expected, "As I said."]


async def check_failed_call():
    """Checks that the input is stored only once when a run is retried after a failed model call."""
    model = ScriptedModel([
        ModelStep.raise_error(RuntimeError("the model is away")),
        [assistant_message("Hello.")],
    ])
    settings = ModelSettings(retry=ModelRetrySettings(max_retries=1, policy=lambda _: True))
    agent, session = Agent(name="a", model=model, model_settings=settings), session_of()
    assert await run(agent, "Hi", session, False) == "Hello."
    assert texts_of(await session.get_items()) == ["Hi", "Hello."]


async def check_rewind():
    """Checks that a run can remove its own items from the end of the conversation, and removes nothing if another caller
    has added an item.
    """
    session = session_of()
    await session.add_items([{"role": "user", "content": "before"}])
    before = await session.get_items()
    content = [{"type": "input_text", "text": "\u00e9"}]
    own = [
        {"type": "message", "role": "user", "status": "completed", "content": content},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{ }", "status": "completed"},
        {"type": "custom_tool_call", "call_id": "d", "name": "g", "input": "x"},
    ]
    await session.add_items(own)
    await rewind_session_items(session, own)
    assert await session.get_items() == before
    await session.add_items(own)
    await session.add_items([{"role": "user", "content": "of another caller"}])
    await rewind_session_items(session, own)
    assert len(await session.get_items()) == len(before) + len(own) + 1, "an item of another caller was removed"


CHECKS = [
    check_items,
    check_concurrent_pops,
    lambda: check_runner(False),
    lambda: check_runner(True),
    check_failed_call,
    check_rewind,
]


async def check_all():
    for check in CHECKS:
        await check()


asyncio.run(check_all())
version = importlib.metadata.version
print(f"openai-agents {version('openai-agents')} on openai {version('openai')}: {len(CHECKS)} passed")
