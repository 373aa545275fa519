"""Uses a session in another process: agent_framework_writer.py COMMAND SESSION NAME."""

from __future__ import annotations

import asyncio
import sys

from agent_framework import Agent, AgentSession, Message, tool
from scripted import Scripted, call

from threadkeep import AsyncThreadkeep
from threadkeep.agent_framework import ThreadkeepHistoryProvider

SAVES = 20


async def save(provider: ThreadkeepHistoryProvider, session: str, name: str) -> None:
    for n in range(SAVES):
        named = Message("assistant", [f"{name} {n} b"], message_id=f"{name}{n}")
        await provider.save_messages(session, [Message("user", [f"{name} {n} a"]), named])


async def hang(provider: ThreadkeepHistoryProvider, session: str, name: str) -> None:
    @tool(approval_mode="never_require")
    async def wait() -> str:
        """Waits."""
        print("waiting", flush=True)
        await asyncio.Event().wait()
        return "never"

    agent = Agent(Scripted("first answer", call("wait")), tools=[wait], context_providers=[provider])
    for question in ("first", "second"):
        await agent.run(question, session=AgentSession(session_id=session))


async def main(command: str, session: str, name: str) -> None:
    async with AsyncThreadkeep(max_retries=5) as client:
        await globals()[command](ThreadkeepHistoryProvider(client=client), session, name)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
