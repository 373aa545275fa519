"""An OpenAI Agents SDK agent that stores its conversation in threadkeep. The scripted model needs no API key."""

import asyncio
import uuid

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from threadkeep.openai_agents import ThreadkeepSession


class Script(Model):
    """Answers with the number of messages in the request."""

    async def get_response(self, system_instructions, input, *args, **kwargs):
        text = ResponseOutputText(type="output_text", text=f"I read {len(input)} messages.", annotations=[])
        message = ResponseOutputMessage(
            id=f"msg_{uuid.uuid4().hex}", type="message", role="assistant", status="completed", content=[text]
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


async def main():
    set_tracing_disabled(True)
    agent = Agent(name="assistant", model=Script())
    async with ThreadkeepSession(f"ada/{uuid.uuid4()}") as session:
        for question in ("Hello", "How many messages did you read?"):
            answer = await Runner.run(agent, question, session=session)
            print(answer.final_output)
        print(len(await session.get_items()), "items are stored")


asyncio.run(main())
