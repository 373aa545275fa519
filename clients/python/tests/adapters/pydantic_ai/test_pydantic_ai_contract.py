"""Tests behaviour that the framework's in-memory conversation store and ours share."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolApproved
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage, RunUsage
from support.adapters import NAMES, VALUES
from support.server import API_KEY, Server

from threadkeep.pydantic_ai import ThreadkeepConversationStore

# pydantic does not serialize lone surrogates
UNICODE_NAMES = [name.replace("\ud83d", "") for name in NAMES]
JSON_VALUES = [value for value in VALUES if value != "\ud83d"]


@pytest.fixture(params=["in memory", "threadkeep"])
async def store(request: pytest.FixtureRequest, server: Server) -> AsyncIterator[ConversationStore]:
    if request.param == "in memory":
        yield InMemoryConversationStore()
        return
    prefix = uuid.uuid4().hex[:20]
    async with ThreadkeepConversationStore(base_url=server.url, api_key=API_KEY, prefix=prefix) as store:
        yield store


def user(text: str = "Hello") -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text)])


def assistant(text: str = "Hi") -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)])


async def saved(store: ConversationStore, *messages: ModelMessage, **fields: Any) -> Conversation:
    scope = fields.pop("scope", None)
    conversation = Conversation(messages=list(messages), **fields)
    await store.save(conversation, scope=scope)
    return conversation


async def loaded(store: ConversationStore, id: str, **options: Any) -> Conversation:
    conversation = await store.load(id, **options)
    assert conversation is not None
    return conversation


async def texts(store: ConversationStore, id: str) -> list[str]:
    return [str(part.content) for message in (await loaded(store, id)).messages for part in message.parts]  # type: ignore[union-attr]


async def test_missing_objects_are_not_found(store: ConversationStore) -> None:
    assert await store.load("c") is None
    assert await store.load_entries("c") is None
    assert await store.read_record("c") is None
    assert await store.read_records() == []
    assert await store.read_records(scope="s") == []
    assert await store.read_history(None) == []
    await store.delete("c")
    with pytest.raises(LookupError):
        await store.read_entry("e")
    with pytest.raises(LookupError):
        await store.read_history("e")
    with pytest.raises(ConversationConflict):
        await store.delete_record("c", expected_revision="r")


async def test_a_conversation_is_loaded_as_it_was_saved(store: ConversationStore) -> None:
    conversation = await saved(
        store,
        user(),
        assistant(),
        usage=RunUsage(requests=3, tool_calls=2, input_tokens=10, output_tokens=20, details={"x": 1}),
    )
    assert await loaded(store, conversation.conversation_id) == conversation
    empty = await saved(store)
    assert await loaded(store, empty.conversation_id) == empty


async def test_a_save_stores_only_new_messages(store: ConversationStore) -> None:
    conversation = Conversation(messages=[user("1"), assistant("2")])
    first = await store.save(conversation)
    assert await store.save(conversation) == []
    conversation.messages += [user("1"), assistant("2")]
    second = await store.save(conversation)
    found = await store.load_entries(conversation.conversation_id)
    assert found == [*first, *second]
    assert [entry.parent_id for entry in found] == [None, *(entry.id for entry in found[:-1])]
    assert [await store.read_entry(entry.id) for entry in found] == found
    assert await loaded(store, conversation.conversation_id) == conversation


async def test_messages_come_back_equal(store: ConversationStore) -> None:
    now = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)
    messages: list[ModelMessage] = [
        ModelRequest(
            parts=[
                SystemPromptPart("Be brief."),
                UserPromptPart("é 👋 \u2028 \0", timestamp=now),
                UserPromptPart(
                    ["See", ImageUrl(url="http://a/b.png"), BinaryContent(b"\xff\0", media_type="audio/wav")]
                ),
                ToolReturnPart("f", {"values": [1, 2.5, None, {"a": True}]}, "c", metadata={"m": [1]}),
            ],
            instructions="Do this.",
            metadata={"nested": {"list": [[]]}},
        ),
        ModelResponse(
            parts=[
                ThinkingPart("Hmm.", signature="s"),
                TextPart(""),
                ToolCallPart("f", {"x": 1}, "c"),
                ToolCallPart("g", '{"x": 1.0}', "d"),
            ],
            usage=RequestUsage(input_tokens=1, output_tokens=2),
            model_name="m",
            provider_details={"p": 1},
            timestamp=now,
        ),
        *(ModelRequest(parts=[ToolReturnPart("f", value, "c")]) for value in JSON_VALUES),
    ]
    conversation = await saved(store, *messages)
    assert (await loaded(store, conversation.conversation_id)).messages == messages


async def test_a_second_save_of_one_revision_is_a_conflict(store: ConversationStore) -> None:
    id = (await saved(store, user("1"))).conversation_id
    first, second = await loaded(store, id), await loaded(store, id)
    first.messages.append(assistant("2"))
    second.messages.append(assistant("3"))
    await store.save(first)
    with pytest.raises(ConversationConflict):
        await store.save(second)
    with pytest.raises(ConversationConflict):
        await saved(store, user("4"), conversation_id=id)
    assert await loaded(store, id) == first
    assert await texts(store, id) == ["1", "2"]


async def test_one_of_several_concurrent_saves_succeeds(store: ConversationStore) -> None:
    conversation = await saved(store, user())
    id, outcomes = conversation.conversation_id, []

    async def save(copy: Conversation, n: int) -> None:
        copy.messages.append(assistant(str(n)))
        try:
            await store.save(copy)
            outcomes.append(n)
        except ConversationConflict:
            pass

    copies = [await loaded(store, id) for _ in range(6)]
    await asyncio.gather(*(save(copy, n) for n, copy in enumerate(copies)))
    [winner] = outcomes
    assert await texts(store, id) == ["Hello", str(winner)]

    new = [Conversation(conversation_id="new", messages=[]) for _ in range(6)]
    await asyncio.gather(*(save(copy, n) for n, copy in enumerate(new)))
    assert len(outcomes) == 2
    assert await texts(store, "new") == [str(outcomes[1])]


async def test_a_scope_gives_access_only_to_its_own_conversations(store: ConversationStore) -> None:
    conversation = await saved(store, user(), scope="ada")
    id = conversation.conversation_id
    assert await store.load(id, scope="bob") is None
    with pytest.raises(ConversationConflict):
        await store.save(conversation, scope="bob")
    await store.delete(id, scope="bob")
    assert await store.load(id, scope="ada") == conversation
    await store.save(conversation)
    record = await store.read_record(id)
    assert record is not None
    assert record.scope == "ada"


async def test_conversations_are_listed_newest_first(store: ConversationStore) -> None:
    for id, scope in (("1", "a"), ("2", "b"), ("3", "a"), ("4", None), ("5", "a")):
        await saved(store, user(), conversation_id=id, scope=scope)
    await store.save(await loaded(store, "3"))
    await store.delete("5")

    async def listed(**options: Any) -> list[str]:
        return [record.conversation_id for record in await store.list_conversations(**options)]

    assert await listed() == ["3", "4", "2", "1"]
    assert await listed(limit=2) == ["3", "4"]
    assert await listed(limit=0) == []
    assert await listed(scope="a") == ["3", "1"]
    assert await listed(scope="a", limit=1) == ["3"]
    assert await listed(scope="c") == []


async def test_a_moved_conversation_is_listed_in_its_new_scope(store: ConversationStore) -> None:
    record = ConversationRecord(conversation_id="c", head_id=None, scope="a", revision="1")
    await store.write_record(record, expected_revision=None)
    record.scope, record.revision = "b", "2"
    await store.write_record(record, expected_revision="1")
    assert await store.read_records(scope="a") == []
    assert await store.read_records(scope="b") == [record]
    await store.delete_record("c", expected_revision="2")
    assert await store.read_records(scope="b") == []


async def test_a_deleted_conversation_can_be_created_again_immediately(store: ConversationStore) -> None:
    for n in range(3):
        conversation = await saved(store, user(str(n)), conversation_id="c", scope="ada")
        assert await texts(store, "c") == [str(n)]
        assert len(await store.list_conversations(scope="ada")) == 1
        await store.delete("c")
        assert await store.load("c") is None
        assert await store.list_conversations(scope="ada") == []
        with pytest.raises(ConversationConflict):
            await store.save(conversation)
        assert await store.load("c") is None


async def test_a_rewritten_history_keeps_the_old_branch(store: ConversationStore) -> None:
    conversation = Conversation(messages=[user("1"), assistant("2"), user("3"), assistant("4")], conversation_id="c")
    entries = await store.save(conversation)
    branched = await store.branch("c", at=2, expected_revision=conversation.revision)
    branched.messages.append(user("5"))
    await store.save(branched)
    assert await texts(store, "c") == ["1", "2", "5"]
    record = await store.read_record("c")
    assert record is not None
    assert record.branches == [entries[-1].id]
    assert await store.read_history(entries[-1].id) == entries
    back = await store.branch("c", from_entry=entries[-1].id, expected_revision=branched.revision)
    assert back.messages == conversation.messages
    with pytest.raises(ConversationConflict):
        await store.branch("c", at=1, expected_revision=conversation.revision)


async def test_a_fork_shares_the_past_and_outlives_the_original(store: ConversationStore) -> None:
    entries = await store.save(Conversation(messages=[user("1"), assistant("2"), user("3")], conversation_id="c"))
    fork = await store.fork("c", at=2, new_conversation_id="f")
    fork.messages.append(user("4"))
    added = await store.save(fork)
    await store.delete("c")
    assert await store.load_entries("f") == [*entries[:2], *added]
    with pytest.raises(UserError):
        await store.fork("c")


async def test_a_history_can_be_read_partially_or_completely(store: ConversationStore) -> None:
    conversation = Conversation(messages=[user(str(n)) for n in range(150)])
    entries = await store.save(conversation)
    conversation.messages += [user(str(n)) for n in range(150, 200)]
    entries += await store.save(conversation)
    head = entries[-1].id
    assert await store.read_history(head) == entries
    for limit in (0, 1, 2, 63, 64, 65, 66, 129, 199, 200, 500):
        assert await store.read_history(head, limit=limit) == entries[len(entries) - min(limit, 200) :]
    assert await store.read_history(entries[69].id, limit=66) == entries[4:70]
    window = await loaded(store, conversation.conversation_id, limit=70)
    assert window.messages == conversation.messages[130:]
    window.messages.append(assistant("last"))
    await store.save(window)
    assert len((await loaded(store, conversation.conversation_id)).messages) == 201


async def test_new_entries_may_branch(store: ConversationStore) -> None:
    root = ConversationEntry(parent_id=None, message=user("root"))
    left = ConversationEntry(parent_id=root.id, message=user("left"))
    right = ConversationEntry(parent_id=root.id, message=user("right"))
    record = ConversationRecord(conversation_id="c", head_id=right.id)
    await store.write_record(record, new_entries=[root, left, right], expected_revision=None)
    assert await store.read_history(right.id) == [root, right]
    assert await store.read_history(left.id) == [root, left]


async def test_new_entries_may_come_in_any_order(store: ConversationStore) -> None:
    root = ConversationEntry(parent_id=None, message=user("root"))
    middle = ConversationEntry(parent_id=root.id, message=assistant("middle"))
    leaf = ConversationEntry(parent_id=middle.id, message=user("leaf"))
    record = ConversationRecord(conversation_id="c", head_id=leaf.id)
    await store.write_record(record, new_entries=[leaf, root, middle], expected_revision=None)
    assert await store.read_history(leaf.id) == [root, middle, leaf]


async def test_a_record_replaces_only_the_expected_revision(store: ConversationStore) -> None:
    entry = ConversationEntry(parent_id=None, message=user())
    record = ConversationRecord(conversation_id="c", head_id=entry.id, revision="1")
    with pytest.raises(ConversationConflict):
        await store.write_record(record, expected_revision=None)  # the entry at the head is missing
    with pytest.raises(ConversationConflict):
        await store.write_record(record, new_entries=[entry], expected_revision="0")
    assert await store.read_record("c") is None
    await store.write_record(record, new_entries=[entry], expected_revision=None)
    assert await store.read_record("c") == record
    for revision in (None, "0"):
        with pytest.raises(ConversationConflict):
            await store.write_record(record, expected_revision=revision)
    with pytest.raises(ConversationConflict):
        await store.delete_record("c", expected_revision="0")
    newer = ConversationRecord(
        conversation_id="c",
        head_id=entry.id,
        revision="2",
        scope="s",
        forked_from="a",
        forked_at="b",
        branches=["x", "y"],
        updated_at=datetime.now(timezone.utc) + timedelta(days=1),
    )
    await store.write_record(newer, expected_revision="1")
    assert await store.read_record("c") == newer
    assert await store.read_history(entry.id) == [entry]


async def test_a_read_returns_a_copy(store: ConversationStore) -> None:
    conversation = await saved(store, user(), conversation_id="c")
    found = await loaded(store, "c")
    found.messages[0].parts = []
    found.messages.clear()
    record = await store.read_record("c")
    assert record is not None
    record.branches.append("x")
    assert await loaded(store, "c") == conversation


async def test_any_text_is_a_valid_conversation_id_and_scope(store: ConversationStore) -> None:
    for name in UNICODE_NAMES:
        await saved(store, user(name), conversation_id=name, scope=name)
    for name in UNICODE_NAMES:
        assert await texts(store, name) == [name]
        assert [record.conversation_id for record in await store.list_conversations(scope=name)] == [name]


async def test_an_agent_pauses_for_approval_and_continues(store: ConversationStore) -> None:
    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        last = messages[-1].parts[-1]
        if isinstance(last, ToolReturnPart):
            return assistant(f"It is {last.content}, after {len(messages)} messages.")
        return ModelResponse(parts=[ToolCallPart("delete", {"file": "é.txt"})])

    agent = Agent(FunctionModel(model), output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def delete(file: str) -> str:
        return f"{file} deleted"

    paused = await agent.run("Delete it.", conversation=Conversation(conversation_id="c"))
    await store.save(paused)
    conversation = await loaded(store, "c")
    assert conversation == paused.conversation
    assert conversation.deferred_tool_requests is not None
    approved = {call.tool_call_id: ToolApproved() for call in conversation.deferred_tool_requests.approvals}
    result = await agent.run(conversation=conversation, deferred_tool_results=DeferredToolResults(approvals=approved))
    await store.save(result)
    assert result.output == "It is é.txt deleted, after 3 messages."
    again = await loaded(store, "c")
    assert again == result.conversation
    assert again.usage.requests == 2
