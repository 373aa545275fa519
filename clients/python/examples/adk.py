"""A Google ADK agent that stores its sessions in threadkeep. The scripted model needs no API key."""

import asyncio
import uuid

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.genai import types

from threadkeep.adk import ThreadkeepSessionService


class Script(BaseLlm):
    """Answers with the number of messages in the request."""

    async def generate_content_async(self, llm_request, stream=False):
        text = f"I read {len(llm_request.contents)} messages."
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


async def main():
    agent = LlmAgent(name="assistant", model=Script(model="script"), output_key="answer")
    user = f"ada/{uuid.uuid4()}"
    async with ThreadkeepSessionService() as sessions:
        runner = Runner(app_name="example", agent=agent, session_service=sessions)
        session = await sessions.create_session(app_name="example", user_id=user)
        for question in ("Hello", "How many messages did you read?"):
            message = types.Content(role="user", parts=[types.Part(text=question)])
            async for event in runner.run_async(user_id=user, session_id=session.id, new_message=message):
                print(event.content.parts[0].text)
        found = await sessions.get_session(app_name="example", user_id=user, session_id=session.id)
        print(f"{len(found.events)} events, and the state {found.state}")


asyncio.run(main())
