"""Saves a conversation in another process: pydantic_ai_writer.py COMMAND PREFIX NAME."""

from __future__ import annotations

import asyncio
import sys

from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict
from pydantic_ai.messages import ModelRequest, UserPromptPart

from threadkeep import AsyncThreadkeep
from threadkeep.pydantic_ai import ThreadkeepConversationStore

ID = "c"
SAVES = 15


async def add(store: ThreadkeepConversationStore, name: str) -> None:
    """Adds two messages at a time. If another process was faster, loads the conversation again and retries."""
    for n in range(SAVES):
        while True:
            conversation = await store.load(ID) or Conversation(conversation_id=ID)
            for part in "ab":
                conversation.messages.append(ModelRequest(parts=[UserPromptPart(f"{name} {n} {part}")]))
            try:
                await store.save(conversation)
                break
            except ConversationConflict:
                continue


async def main(command: str, prefix: str, name: str) -> None:
    async with AsyncThreadkeep(max_retries=5) as client:
        await globals()[command](ThreadkeepConversationStore(client=client, prefix=prefix), name)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
