"""Uses the adapters in another process: strands_writer.py COMMAND SESSION NAME."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

from strands import Agent, tool
from strands.session import RepositorySessionManager, SnapshotSessionManager
from strands.types.exceptions import SessionException
from strands.types.session import SessionMessage
from strands_script import Script

from threadkeep import AsyncThreadkeep, Threadkeep
from threadkeep.strands import ThreadkeepSessionRepository, ThreadkeepStorage

WRITES = 60


def write(session_id: str, name: str) -> None:
    async def write() -> None:
        async with AsyncThreadkeep(max_retries=5) as client:
            storage = ThreadkeepStorage(client=client).namespace(session_id)
            for n in range(WRITES):
                await storage.write(f"{name}/{n}", f"{name} {n}".encode())
                await storage.write("shared", f"{name} {n}".encode())

    asyncio.run(write())


def create(session_id: str, name: str) -> None:
    """Competes with another process to create the same messages. Prints the numbers of those that it created."""
    with Threadkeep(max_retries=5) as client:
        repository = ThreadkeepSessionRepository(client=client)
        for n in range(WRITES):
            message: Any = {"role": "user", "content": [{"text": name}]}
            try:
                repository.create_message(session_id, "agent", SessionMessage.from_message(message, n))
                print(n)
            except SessionException:
                pass
            agent = repository.read_agent(session_id, "agent")
            assert agent
            agent.state = {"from": name}
            repository.update_agent(session_id, agent)


def hang_with_snapshots(session_id: str, name: str) -> None:
    storage = ThreadkeepStorage().namespace("snapshots")
    _hang(SnapshotSessionManager(session_id, storage=storage, save_latest_on="message"))


def hang_with_repository(session_id: str, name: str) -> None:
    _hang(RepositorySessionManager(session_id, ThreadkeepSessionRepository()))


def _hang(manager: Any) -> None:
    @tool
    def wait() -> str:
        """Waits."""
        print("waiting", flush=True)
        threading.Event().wait()
        return "never"

    model = Script("first answer", {"tool": "wait"})
    agent = Agent(agent_id="agent", model=model, tools=[wait], session_manager=manager, callback_handler=None)
    agent("first")
    agent("second")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
