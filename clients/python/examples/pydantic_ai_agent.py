"""A Pydantic AI agent that stores its conversation in threadkeep. The model is a function and needs no API key."""

import asyncio
import uuid

from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from threadkeep.pydantic_ai import ThreadkeepConversationStore


def script(messages, info):
    """Answers with the number of messages in the request."""
    return ModelResponse(parts=[TextPart(f"I read {len(messages)} messages.")])


async def main():
    agent = Agent(FunctionModel(script))
    id = str(uuid.uuid4())
    async with ThreadkeepConversationStore() as store:
        for question in ("Hello", "How many messages did you read?"):
            conversation = await store.load(id, scope="ada") or Conversation(conversation_id=id)
            result = await agent.run(question, conversation=conversation)
            await store.save(result, scope="ada")
            print(result.output)
        conversation = await store.load(id, scope="ada")
        requests = conversation.usage.requests
        print(f"{len(conversation.messages)} messages are stored, and {requests} requests were counted")


asyncio.run(main())
