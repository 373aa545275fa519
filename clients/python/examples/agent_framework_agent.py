"""A Microsoft Agent Framework agent that stores its messages in threadkeep. The scripted model needs no API key."""

import asyncio
import uuid

from agent_framework import Agent, BaseChatClient, ChatResponse, Message

from threadkeep.agent_framework import ThreadkeepHistoryProvider


class Script(BaseChatClient):
    """Answers with the number of messages in the request."""

    async def _inner_get_response(self, *, messages, **kwargs):
        text = f"I read {len(messages)} messages."
        return ChatResponse(messages=[Message("assistant", [text], message_id=str(uuid.uuid4()))])


async def main():
    history = ThreadkeepHistoryProvider()
    agent = Agent(Script(), context_providers=[history])
    session = agent.create_session(session_id=f"ada/{uuid.uuid4()}")
    for question in ("Hello", "How many messages did you read?"):
        print(await agent.run(question, session=session))
    print(len(await history.get_messages(session.session_id)), "messages are stored")
    await history.close()


asyncio.run(main())
