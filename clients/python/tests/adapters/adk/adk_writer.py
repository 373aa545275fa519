"""Uses a session in another process: adk_writer.py COMMAND APP SESSION NAME."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.errors import StaleSessionError
from google.adk.events import Event, EventActions
from google.adk.runners import Runner
from google.adk.tools import ToolContext
from scripted import Scripted, call, user

from threadkeep import AsyncThreadkeep
from threadkeep.adk import ThreadkeepSessionService

USER = "ada"
EVENTS = 10


async def append(service: ThreadkeepSessionService, app: str, session: str, name: str) -> None:
    """Appends events. If another process was faster, reads the session again and retries."""
    for n in range(EVENTS):
        delta: dict[str, Any] = {f"{name}{n}": n, f"user:{name}{n}": n, f"app:{name}{n}": n}
        event = Event(author=name, invocation_id=str(n), actions=EventActions(state_delta=delta))
        while True:
            found = await service.get_session(app_name=app, user_id=USER, session_id=session)
            assert found
            try:
                await service.append_event(found, event)
                break
            except StaleSessionError:
                continue


async def hang(service: ThreadkeepSessionService, app: str, session: str, name: str) -> None:
    async def wait(tool_context: ToolContext) -> str:
        """Waits."""
        tool_context.state["waited"] = True
        print("waiting", flush=True)
        await asyncio.Event().wait()
        return "never"

    agent = LlmAgent(name="agent", model=Scripted(answers=[call("wait")]), tools=[wait])
    runner = Runner(app_name=app, agent=agent, session_service=service)
    async for _ in runner.run_async(user_id=USER, session_id=session, new_message=user("Wait."), state_delta={"n": 1}):
        pass


async def main(command: str, *args: str) -> None:
    async with AsyncThreadkeep(max_retries=5) as client:
        await globals()[command](ThreadkeepSessionService(client=client), *args)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
