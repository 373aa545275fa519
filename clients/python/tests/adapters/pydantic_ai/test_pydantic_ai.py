"""Tests behaviour that our conversation store has, but the framework's in-memory store does not."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationEntry, ConversationRecord
from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai_writer import ID, SAVES
from support.adapters import error_without, output_of_example, start
from support.proxy import Proxy
from support.server import API_KEY, Server
from support.threads import run_all

from threadkeep import AsyncThreadkeep, TooLarge, TransportError
from threadkeep.pydantic_ai import ThreadkeepConversationStore

WRITER = Path(__file__).parent / "pydantic_ai_writer.py"


@pytest.fixture
def prefix() -> str:
    return uuid.uuid4().hex[:20]


@pytest.fixture
async def store(server: Server, prefix: str) -> AsyncIterator[ThreadkeepConversationStore]:
    async with ThreadkeepConversationStore(base_url=server.url, api_key=API_KEY, prefix=prefix) as store:
        yield store


@pytest.fixture
async def faulty(proxy: Proxy, prefix: str) -> AsyncIterator[ThreadkeepConversationStore]:
    async with ThreadkeepConversationStore(base_url=proxy.url, api_key=API_KEY, prefix=prefix) as store:
        yield store


def user(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text)])


def conversation(*texts: str) -> Conversation:
    return Conversation(conversation_id=ID, messages=[user(text) for text in texts])


async def loaded(store: ThreadkeepConversationStore) -> Conversation:
    found = await store.load(ID)
    assert found is not None
    return found


async def test_a_history_is_read_in_requests_of_64_messages(
    store: ThreadkeepConversationStore, faulty: ThreadkeepConversationStore, proxy: Proxy
) -> None:
    saved = conversation(*map(str, range(200)))
    await store.save(saved)
    assert await loaded(faulty) == saved
    assert len(proxy.requests) == 1 + 1 + 4  # the record, its head, and 199 messages


async def test_large_messages_are_saved_in_several_requests(store: ThreadkeepConversationStore) -> None:
    saved = conversation(*(letter * 1_000_000 for letter in "abcde"), *("x" * 10_000 for _ in range(300)))
    await store.save(saved)
    assert await loaded(store) == saved


async def test_a_message_that_is_too_large_saves_nothing(store: ThreadkeepConversationStore) -> None:
    saved = conversation("a")
    await store.save(saved)
    large = await loaded(store)
    large.messages += [user("b"), user("x" * 1_100_000)]
    with pytest.raises(TooLarge):
        await store.save(large)
    assert await loaded(store) == saved


async def test_writes_with_lost_responses_are_performed_once(faulty: ThreadkeepConversationStore, proxy: Proxy) -> None:
    cut: set[bytes] = set()

    def cut_each_request_once(request: bytes) -> str | None:
        if request in cut:
            return None
        cut.add(request)
        return "cut"

    proxy.fault = cut_each_request_once
    saved = conversation("a", "b")
    await faulty.save(saved, scope="ada")
    saved.messages.append(user("c"))
    await faulty.save(saved)
    assert await loaded(faulty) == saved
    assert len(await faulty.list_conversations(scope="ada")) == 1
    await faulty.delete(ID)
    assert await faulty.load(ID) is None
    assert await faulty.list_conversations(scope="ada") == []


@pytest.mark.parametrize("writes", [0, 1, 2, 3])
async def test_an_interrupted_save_is_all_or_nothing(
    store: ThreadkeepConversationStore, proxy: Proxy, prefix: str, writes: int
) -> None:
    """The requests of a save are: messages, scope, record."""
    saved = conversation("a", "b")
    async with AsyncThreadkeep(proxy.url, api_key=API_KEY, max_retries=0) as client:
        done = 0

        def stop(request: bytes) -> bytes | None:
            nonlocal done
            if request.startswith(b"PUT") or b"/put " in request:
                done += 1
                if done > writes:
                    return b"not HTTP\r\n\r\n"
            return None

        proxy.fault = stop
        interrupted = ThreadkeepConversationStore(client=client, prefix=prefix)
        if writes < 3:
            with pytest.raises(TransportError):
                await interrupted.save(saved, scope="ada")
            assert await store.load(ID) is None
            assert await store.list_conversations(scope="ada") == []
            await store.save(saved, scope="ada")
        else:
            await interrupted.save(saved, scope="ada")
    assert await loaded(store) == saved
    assert len(await store.list_conversations(scope="ada")) == 1


async def test_two_processes_neither_lose_nor_duplicate_writes(
    store: ThreadkeepConversationStore, proxy: Proxy, prefix: str
) -> None:
    count, lock = 0, threading.Lock()

    def cut_some(request: bytes) -> str | None:
        nonlocal count
        with lock:
            count += 1
            return "cut" if count % 11 == 0 else None

    proxy.fault = cut_some
    processes = [start(WRITER, "add", prefix, name, url=proxy.url) for name in "xy"]
    for process in processes:
        process.communicate(timeout=1_200)
    assert [process.returncode for process in processes] == [0, 0]
    texts = [str(message.parts[0].content) for message in (await loaded(store)).messages]  # type: ignore[union-attr]
    for name in "xy":
        expected = [f"{name} {n} {part}" for n in range(SAVES) for part in "ab"]
        assert [text for text in texts if text.startswith(name)] == expected


async def test_a_killed_save_leaves_the_previous_conversation(
    store: ThreadkeepConversationStore, proxy: Proxy, prefix: str
) -> None:
    saved = conversation("a")
    await store.save(saved)
    hanging = threading.Event()

    def hang_before_the_record(request: bytes) -> bytes | None:
        if request.startswith(b"PUT"):
            hanging.set()
            threading.Event().wait()
        return None

    proxy.fault = hang_before_the_record
    process = start(WRITER, "add", prefix, "x", url=proxy.url)
    assert await asyncio.to_thread(hanging.wait, 60)
    process.kill()
    process.communicate()
    found = await loaded(store)
    assert found == saved
    found.messages.append(user("b"))
    await store.save(found)
    assert await loaded(store) == found


async def test_a_concurrently_deleted_and_created_conversation_is_listed(store: ThreadkeepConversationStore) -> None:
    for _ in range(20):
        await asyncio.gather(
            store.delete(ID),
            store.save(conversation("a"), scope="ada"),
            store.delete(ID),
            store.save(conversation("b"), scope="ada"),
            return_exceptions=True,
        )
        listed = await store.list_conversations(scope="ada")
        assert listed == ([record] if (record := await store.read_record(ID)) else [])


async def test_a_delete_keeps_the_listing_of_a_concurrent_creation(
    store: ThreadkeepConversationStore, faulty: ThreadkeepConversationStore, proxy: Proxy
) -> None:
    await store.save(conversation("a"), scope="ada")
    created: list[ConversationEntry] = []

    def create_before_the_listing_is_deleted(request: bytes) -> None:
        if request.startswith(b"DELETE") and b"%2F" in request.partition(b"\r\n")[0] and not created:
            created.extend(asyncio.run(store.save(conversation("b"), scope="ada")))

    proxy.fault = create_before_the_listing_is_deleted
    await faulty.delete(ID, scope="ada")
    assert created
    assert [record.head_id for record in await store.list_conversations(scope="ada")] == [created[0].id]


async def test_an_entry_with_a_missing_parent_is_a_conflict(store: ThreadkeepConversationStore) -> None:
    entry = ConversationEntry(parent_id="absent", message=user("a"))
    record = ConversationRecord(conversation_id=ID, head_id=entry.id)
    with pytest.raises(ConversationConflict):
        await store.write_record(record, new_entries=[entry], expected_revision=None)
    assert await store.read_record(ID) is None


async def test_entries_that_are_each_others_parents_are_a_conflict(store: ThreadkeepConversationStore) -> None:
    first = ConversationEntry(parent_id=None, message=user("a"))
    second = ConversationEntry(parent_id=first.id, message=user("b"))
    cycle = [replace(first, parent_id=second.id), second]
    record = ConversationRecord(conversation_id=ID, head_id=second.id)
    with pytest.raises(ConversationConflict):
        await store.write_record(record, new_entries=cycle, expected_revision=None)
    assert await store.read_record(ID) is None


async def test_deleting_a_conversation_keeps_its_messages(store: ThreadkeepConversationStore) -> None:
    [entry] = await store.save(conversation("a"))
    await store.delete(ID)
    assert await store.read_entry(entry.id) == entry


async def test_a_conversation_that_pydantic_cannot_serialize_is_not_saved(store: ThreadkeepConversationStore) -> None:
    for saved in (conversation("\ud83d"), Conversation(conversation_id="\ud83d", messages=[user("a")])):
        with pytest.raises(ValueError):
            await store.save(saved)
        assert await store.load(saved.conversation_id) is None
    assert not [key async for key in store._entries.keys()]


def test_a_store_serves_any_event_loop(server: Server, prefix: str) -> None:
    store = ThreadkeepConversationStore(base_url=server.url, api_key=API_KEY, prefix=prefix)

    async def use(id: str) -> None:
        saved = Conversation(conversation_id=id, messages=[user(id)])
        await store.save(saved)
        assert await store.load(id) == saved

    asyncio.run(use("a"))
    threads = [threading.Thread(target=lambda id=id: asyncio.run(use(id))) for id in "bcd"]
    run_all(threads)
    assert sorted(record.conversation_id for record in asyncio.run(store.list_conversations())) == list("abcd")


async def test_prefixes_keep_conversations_apart(server: Server) -> None:
    async with AsyncThreadkeep(server.url, api_key=API_KEY) as client:
        prefixes = [uuid.uuid4().hex[:20] for _ in "ab"]
        first, second = (ThreadkeepConversationStore(client=client, prefix=prefix) for prefix in prefixes)
        await first.save(conversation("a"), scope="ada")
        assert await second.load(ID) is None
        await second.save(conversation("b"), scope="ada")
        namespaces = [
            info.namespace async for info in client.namespaces() if info.namespace.startswith(f"{prefixes[0]}.")
        ]
        assert len(namespaces) == 3
        for namespace in namespaces:
            await client.kv(namespace).clear()
        assert await first.load(ID) is None
        assert (await loaded(second)).messages
        with pytest.raises(ValueError):
            ThreadkeepConversationStore(client=client, prefix="x" * 21)


async def test_closing_leaves_the_callers_client_open(server: Server) -> None:
    async with AsyncThreadkeep(server.url, api_key=API_KEY) as client:
        store = ThreadkeepConversationStore(client=client)
        await store.close()
        await store.close()
        assert (await client.api_key()).name == "ops"


def test_the_example_runs(server: Server) -> None:
    assert output_of_example("pydantic_ai_agent.py", server).splitlines() == [
        "I read 1 messages.",
        "I read 3 messages.",
        "4 messages are stored, and 2 requests were counted",
    ]


def test_an_import_without_the_framework_names_the_extra() -> None:
    assert 'pip install "threadkeep[pydantic-ai]"' in error_without(
        "pydantic_ai.conversation_store", "threadkeep.pydantic_ai"
    )
