from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from strands import Agent
from strands.session import RepositorySessionManager
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType
from strands_script import Script, texts_of
from strands_writer import WRITES
from support.adapters import NAMES, VALUES, start, unique
from support.proxy import Proxy
from support.server import API_KEY, Server
from support.threads import run_all

from threadkeep import Threadkeep, TooLarge
from threadkeep._adapter import namespace_name
from threadkeep.strands import ThreadkeepSessionRepository

WRITER = Path(__file__).parent / "strands_writer.py"


@pytest.fixture
def client(server: Server) -> Iterator[Threadkeep]:
    with Threadkeep(server.url, api_key=API_KEY) as client:
        yield client


@pytest.fixture
def repository(client: Threadkeep) -> ThreadkeepSessionRepository:
    return ThreadkeepSessionRepository(client=client)


class State:
    """A fake multi-agent with only the parts that a repository uses."""

    def __init__(self, id: str, state: Any) -> None:
        self.id = id
        self.state = state

    def serialize_state(self) -> Any:
        return self.state


def session(id: str) -> Session:
    return Session(session_id=id, session_type=SessionType.AGENT)


def agent(id: str, state: Any = None) -> SessionAgent:
    return SessionAgent(agent_id=id, state=state or {}, conversation_manager_state={})


def message(number: int, text: Any = "text") -> SessionMessage:
    content: Any = {"role": "user", "content": [{"text": text}]}
    return SessionMessage.from_message(content, number)


def new_session(repository: ThreadkeepSessionRepository, *agent_ids: str) -> str:
    id = unique()
    repository.create_session(session(id))
    for agent_id in agent_ids:
        repository.create_agent(id, agent(agent_id))
    return id


def manager(repository: ThreadkeepSessionRepository, session_id: str) -> Any:
    return RepositorySessionManager(session_id, repository)


def test_records_come_back_equal(repository: ThreadkeepSessionRepository) -> None:
    id = unique()
    state = {"values": VALUES, "bytes": [{"image": b"\0\xff"}]}
    records: Any = [session(id), agent("a", state), message(0, {"values": VALUES, "bytes": b"\0\xff"})]
    repository.create_session(records[0])
    repository.create_agent(id, records[1])
    repository.create_message(id, "a", records[2])
    repository.create_multi_agent(id, State("m", {"values": VALUES}))  # type: ignore[arg-type]
    assert repository.read_session(id) == records[0]
    assert repository.read_agent(id, "a") == records[1]
    assert repository.read_message(id, "a", 0) == records[2]
    assert repository.list_messages(id, "a") == [records[2]]
    assert repository.read_multi_agent(id, "m") == {"values": VALUES}


def test_existing_records_are_not_created_and_missing_ones_not_updated(repository: ThreadkeepSessionRepository) -> None:
    id = unique()
    multi_agent: Any = State("a", {"n": 1})
    for read in (
        repository.read_session(id),
        repository.read_agent(id, "a"),
        repository.read_message(id, "a", 0),
        repository.read_multi_agent(id, "a"),
    ):
        assert read is None
    assert repository.list_messages(id, "a") == []
    for update in (
        lambda: repository.update_agent(id, agent("a")),
        lambda: repository.update_message(id, "a", message(0)),
        lambda: repository.update_multi_agent(id, multi_agent),
        lambda: repository.delete_session(id),
    ):
        with pytest.raises(SessionException, match="does not exist"):
            update()
    creations: list[Callable[[], object]] = [
        lambda: repository.create_session(session(id)),
        lambda: repository.create_multi_agent(id, multi_agent),
        lambda: repository.create_agent(id, agent("a")),
        lambda: repository.create_message(id, "a", message(0)),
    ]
    for create in creations[1:]:
        with pytest.raises(SessionException, match="does not exist"):
            create()
    for create in creations:
        create()
        with pytest.raises(SessionException, match="exists already"):
            create()


def test_updates_keep_the_creation_time(repository: ThreadkeepSessionRepository) -> None:
    id = new_session(repository)
    first, second = agent("a"), agent("a", {"n": 2})
    repository.create_agent(id, first)
    repository.update_agent(id, second)
    assert repository.read_agent(id, "a") == second
    assert second.created_at == first.created_at
    old, new = message(0), message(0)
    new.redact_message = {"role": "user", "content": [{"text": "redacted"}]}
    repository.create_message(id, "a", old)
    repository.update_message(id, "a", new)
    found = repository.read_message(id, "a", 0)
    assert found == new
    assert found and found.created_at == old.created_at
    multi_agent: Any = State("a", {"n": 1})
    repository.create_multi_agent(id, multi_agent)
    multi_agent.state = {"n": 2}
    repository.update_multi_agent(id, multi_agent)
    assert repository.read_multi_agent(id, "a") == {"n": 2}


def test_messages_are_listed_in_the_order_of_their_numbers(repository: ThreadkeepSessionRepository) -> None:
    id = new_session(repository, "a", "b")
    messages = [message(n, str(n)) for n in range(120)]
    for one in reversed(messages):
        repository.create_message(id, "a", one)
    repository.create_message(id, "b", message(0))
    for limit, offset in ((None, 0), (None, 7), (5, 0), (5, 110), (50, 118), (0, 0), (1, 500)):
        stop = None if limit is None else offset + limit
        assert repository.list_messages(id, "a", limit, offset) == messages[offset:stop]


def test_large_messages_are_listed(repository: ThreadkeepSessionRepository) -> None:
    id = new_session(repository, "a")
    messages = [message(n, str(n) * 900_000) for n in range(5)]
    for one in messages:
        repository.create_message(id, "a", one)
    assert repository.list_messages(id, "a") == messages
    with pytest.raises(TooLarge):
        repository.create_message(id, "a", message(5, "x" * 1_048_576))


def test_message_numbers_are_validated(repository: ThreadkeepSessionRepository) -> None:
    for number in (-1, 10**12, "1", 1.0):
        with pytest.raises(ValueError):
            repository.read_message("a", "b", number)  # type: ignore[arg-type]


def test_session_and_agent_ids_can_be_any_text(client: Threadkeep) -> None:
    repository = ThreadkeepSessionRepository(client=client, prefix=unique()[:20])
    for name in NAMES:
        repository.create_session(session(name))
        for other in NAMES:
            repository.create_agent(name, agent(other, {"of": name}))
        repository.create_message(name, name, message(0, name))
        repository.create_multi_agent(name, State(name, {"of": name}))  # type: ignore[arg-type]
    for name in NAMES:
        found = repository.read_session(name)
        assert found and found.session_id == name
        for other in NAMES:
            of = repository.read_agent(name, other)
            assert of and (of.agent_id, of.state) == (other, {"of": name})
        assert [one.message["content"] for one in repository.list_messages(name, name)] == [[{"text": name}]]
        assert repository.read_multi_agent(name, name) == {"of": name}


def test_a_deleted_session_can_be_created_again(repository: ThreadkeepSessionRepository) -> None:
    id = unique()
    for _ in range(2):
        repository.create_session(session(id))
        repository.create_agent(id, agent("a"))
        repository.create_message(id, "a", message(0))
        repository.delete_session(id)
        assert repository.read_session(id) is None
        assert repository.list_messages(id, "a") == []
        with pytest.raises(SessionException, match="does not exist"):
            repository.create_message(id, "a", message(1))


def test_sessions_have_the_configured_idle_ttl(client: Threadkeep) -> None:
    id = unique()
    ThreadkeepSessionRepository(client=client).create_session(session(id))
    ThreadkeepSessionRepository(client=client, prefix="with-ttl", ttl_seconds=3_600).create_session(session(id))
    ttls = {namespace.namespace: namespace.idle_ttl_seconds for namespace in client.namespaces()}
    assert ttls[namespace_name("strands", "session", id)] is None
    assert ttls[namespace_name("with-ttl", "session", id)] == 3_600


def test_a_write_with_a_lost_response_is_performed_once(proxy: Proxy) -> None:
    id = unique()
    multi_agent: Any = State("a", {})
    with Threadkeep(proxy.url, api_key=API_KEY) as client:
        repository = ThreadkeepSessionRepository(client=client)
        writes: list[Callable[[], object]] = [
            lambda: repository.create_session(session(id)),
            lambda: repository.create_agent(id, agent("a")),
            lambda: repository.update_agent(id, agent("a")),
            lambda: repository.create_message(id, "a", message(0)),
            lambda: repository.update_message(id, "a", message(0)),
            lambda: repository.create_multi_agent(id, multi_agent),
            lambda: repository.update_multi_agent(id, multi_agent),
        ]
        for write in writes:
            proxy.fail_once("cut", "PUT")
            write()
        proxy.fail_once("cut")
        assert len(repository.list_messages(id, "a")) == 1
        proxy.fail_once("cut", "DELETE")
        repository.delete_session(id)


def test_concurrent_managers_do_not_overwrite_messages(repository: ThreadkeepSessionRepository) -> None:
    id = unique()
    first_model, second_model = Script("first answer", "third answer"), Script("second answer")
    first = Agent(agent_id="a", model=first_model, session_manager=manager(repository, id), callback_handler=None)
    second = Agent(agent_id="a", model=second_model, session_manager=manager(repository, id), callback_handler=None)
    first("first")
    with pytest.raises(SessionException, match="exists already"):
        second("second")
    first("third")
    stored = [one.to_message() for one in repository.list_messages(id, "a")]
    assert texts_of(stored) == ["first", "first answer", "third", "third answer"]


def test_an_update_does_not_recreate_a_deleted_agent(repository: ThreadkeepSessionRepository, proxy: Proxy) -> None:
    id = new_session(repository, "a")

    def delete_before_the_put(request: bytes) -> None:
        if request.startswith(b"PUT"):
            repository.delete_session(id)

    proxy.fault = delete_before_the_put
    with Threadkeep(proxy.url, api_key=API_KEY) as client:
        with pytest.raises(SessionException, match="does not exist"):
            ThreadkeepSessionRepository(client=client).update_agent(id, agent("a"))
    assert repository.read_agent(id, "a") is None


def test_two_processes_get_different_numbers(repository: ThreadkeepSessionRepository, proxy: Proxy) -> None:
    id = new_session(repository)
    count, lock = 0, threading.Lock()

    def cut_some(request: bytes) -> str | None:
        nonlocal count
        with lock:
            count += 1
            return "cut" if count % 7 == 0 else None

    proxy.fault = cut_some
    created = agent("agent")
    repository.create_agent(id, created)
    processes = {name: start(WRITER, "create", id, name, url=proxy.url) for name in "ab"}
    numbers = {name: process.communicate(timeout=1_200)[0].split() for name, process in processes.items()}
    assert [process.returncode for process in processes.values()] == [0, 0]
    assert sorted(map(int, numbers["a"] + numbers["b"])) == list(range(WRITES))
    stored = repository.list_messages(id, "agent")
    assert [texts_of([one.message])[0] for one in stored] == [
        "a" if str(n) in numbers["a"] else "b" for n in range(WRITES)
    ]
    updated = repository.read_agent(id, "agent")
    assert updated and updated.created_at == created.created_at


def test_an_agent_continues_its_session(repository: ThreadkeepSessionRepository) -> None:
    id = unique()
    for answer, expected in (("one", ["first"]), ("two", ["first", "one", "second"])):
        model = Script(answer)
        Agent(agent_id="a", model=model, session_manager=manager(repository, id), callback_handler=None)(expected[-1])
        assert texts_of(model.inputs[0]) == expected


def test_a_session_continues_after_its_process_is_killed(
    repository: ThreadkeepSessionRepository, server: Server
) -> None:
    id = unique()
    process = start(WRITER, "hang_with_repository", id, "", url=server.url)
    assert process.stdout and process.stdout.readline() == "waiting\n"
    process.kill()
    process.communicate()

    model = Script("third answer")
    restored = Agent(agent_id="agent", model=model, session_manager=manager(repository, id), callback_handler=None)
    assert texts_of(restored.messages) == ["first", "first answer", "second"]
    restored("third")
    assert texts_of(model.inputs[0]) == ["first", "first answer", "second", "third"]
    stored = [one.to_message() for one in repository.list_messages(id, "agent")]
    assert texts_of(stored) == ["first", "first answer", "second", "third", "third answer"]


def test_threads_share_a_repository(repository: ThreadkeepSessionRepository) -> None:
    id = new_session(repository, *"abcd")

    def create(name: str) -> None:
        for n in range(20):
            repository.create_message(id, name, message(n, name))

    threads = [threading.Thread(target=create, args=(name,)) for name in "abcd"]
    run_all(threads)
    for name in "abcd":
        assert len(repository.list_messages(id, name)) == 20


def test_closing_leaves_the_callers_client_open(proxy: Proxy) -> None:
    with Threadkeep(proxy.url, api_key=API_KEY) as client:
        shared = ThreadkeepSessionRepository(client=client)
        shared.read_session("a")
        shared.close()
        shared.read_session("a")
    assert proxy.connections == 1
    with ThreadkeepSessionRepository(base_url=proxy.url, api_key=API_KEY) as own:
        own.read_session("a")
    own.close()
    own.read_session("a")
    assert proxy.connections == 3
    own.close()
