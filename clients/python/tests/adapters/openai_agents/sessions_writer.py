"""Writes to a session in another process: sessions_writer.py COMMAND SESSION NAME."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents_script import Script, call, message

from threadkeep import AsyncThreadkeep
from threadkeep.openai_agents import ThreadkeepSession

ADDS = 30
ITEMS = 3


async def add_and_pop(session: ThreadkeepSession, name: str) -> None:
    """Adds items in groups. After a line of input, pops all items and prints them."""
    for n in range(ADDS):
        await session.add_items([item(name, n, part) for part in range(ITEMS)])
    print("added", flush=True)
    input()
    while (popped := await session.pop_item()) is not None:
        print(popped["content"])  # type: ignore[typeddict-item]


async def hang(session: ThreadkeepSession, name: str) -> None:
    @function_tool
    async def wait() -> str:
        print("waiting", flush=True)
        await asyncio.Event().wait()
        return "never"

    set_tracing_disabled(True)
    agent = Agent(name="agent", model=Script(message("first answer"), call("wait")), tools=[wait])
    await Runner.run(agent, "first", session=session)
    await Runner.run(agent, "second", session=session)


def item(name: str, n: int, part: int) -> Any:
    return {"role": "user", "content": f"{name} {n} {part}"}


async def main(command: str, session_id: str, name: str) -> None:
    async with AsyncThreadkeep(max_retries=5) as client:
        await globals()[command](ThreadkeepSession(session_id, client=client), name)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
