"""Has clients of the Responses API use models that reason and call, on each kind of upstream, and checks that the table in
docs/clients.md says what they can do. Called by model-clients.sh: clients.py ADDRESS KEY DOCUMENT.

The scripted model repeats the text of the user, see tools/upstream/src/main.rs."""

import asyncio
import json
import re
import sys
from importlib.metadata import version

ADDRESS, KEY, DOCUMENT = sys.argv[1:]
BASE = f"{ADDRESS}/v1"
MODELS = ["chat", "responses", "messages"]
THOUGHT = "I think about it."
SAID = "1, 2, 3"
WEATHER = '{"city": "Oslo"}'
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


# one for all, as the connections of a client belong to it
LOOP = asyncio.new_event_loop()
asyncio.set_event_loop(LOOP)


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


class OpenAi:
    package = "openai"

    def __init__(self, model):
        from openai import OpenAI

        self.model = model
        self.client = OpenAI(base_url=BASE, api_key=KEY, max_retries=0)

    def answers(self):
        answer = self.client.responses.create(model=self.model, input=SAID)
        check(answer.output_text == SAID, answer)

    def streams_reasoning(self):
        thought, text = "", ""
        with self.client.responses.stream(model=self.model, input=f"think: {SAID}") as stream:
            for event in stream:
                if event.type in ("response.reasoning_text.delta", "response.reasoning_summary_text.delta"):
                    check(not text, "reasoning comes first")
                    thought += event.delta
                elif event.type == "response.output_text.delta":
                    text += event.delta
            final = stream.get_final_response()
        check((thought, text, final.output_text) == (THOUGHT, SAID, SAID), thought, text, final)
        check([item.type for item in final.output] == ["reasoning", "message"], final.output)

    def calls(self):
        tool = {"type": "function", "name": "weather", "parameters": PARAMETERS, "strict": False}
        ask = {"role": "user", "content": f"think: call: weather {WEATHER}"}
        first = self.client.responses.create(model=self.model, input=[ask], tools=[tool])
        call = next(item for item in first.output if item.type == "function_call")
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "It rains."}
        back = [item.model_dump(exclude_none=True) for item in first.output]
        second = self.client.responses.create(model=self.model, input=[ask, *back, result], tools=[tool])
        check(second.output_text == "It rains.", second)


class LangChain:
    package = "langchain-openai"

    def __init__(self, model):
        from langchain_openai import ChatOpenAI

        self.model = ChatOpenAI(
            model=model, base_url=BASE, api_key=KEY, use_responses_api=True, output_version="responses/v1", max_retries=0
        )

    def answers(self):
        answer = self.model.invoke(SAID)
        check(answer.text == SAID, answer)

    def streams_reasoning(self):
        whole = None
        for chunk in self.model.stream(f"think: {SAID}"):
            whole = chunk if whole is None else whole + chunk
        check([block["type"] for block in whole.content] == ["reasoning", "text"], whole.content)
        check(whole.text == SAID, whole)
        check(THOUGHT in json.dumps(whole.content), whole.content)

    def calls(self):
        from langchain_core.messages import HumanMessage, ToolMessage

        def weather(city: str) -> str:
            """Tells the weather of a city."""

        model = self.model.bind_tools([weather])
        ask = HumanMessage(f"think: call: weather {WEATHER}")
        first = None
        for chunk in model.stream([ask]):
            first = chunk if first is None else first + chunk
        [call] = first.tool_calls
        check(call["args"] == {"city": "Oslo"}, call)
        second = model.invoke([ask, first, ToolMessage("It rains.", tool_call_id=call["id"])])
        check(second.text == "It rains.", second)


class PydanticAi:
    package = "pydantic-ai-slim"

    def __init__(self, model):
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        provider = OpenAIProvider(base_url=BASE, api_key=KEY)
        self.agent = Agent(OpenAIResponsesModel(model, provider=provider))

    def answers(self):
        check(self.agent.run_sync(SAID).output == SAID)

    def streams_reasoning(self):
        async def run():
            async with self.agent.run_stream(f"think: {SAID}") as result:
                output = await result.get_output()
                return output, result.all_messages()

        output, messages = LOOP.run_until_complete(run())
        parts = [(part.part_kind, part.content) for part in messages[-1].parts]
        check(output == SAID, output)
        check([kind for kind, _ in parts] == ["thinking", "text"], parts)

    def calls(self):
        @self.agent.tool_plain
        def weather(city: str) -> str:
            return f"It rains in {city}."

        answer = self.agent.run_sync(f"think: call: weather {WEATHER}")
        check(answer.output == "It rains in Oslo.", answer)


class AgentFramework:
    package = "agent-framework-openai"

    def __init__(self, model):
        from agent_framework.openai import OpenAIChatClient

        self.client = OpenAIChatClient(model=model, base_url=BASE, api_key=KEY)

    def answers(self):
        agent = self.client.as_agent(instructions="")
        check(LOOP.run_until_complete(agent.run(SAID)).text == SAID)

    def streams_reasoning(self):
        async def run():
            stream = self.client.as_agent(instructions="").run(f"think: {SAID}", stream=True)
            async for _ in stream:
                pass
            return await stream.get_final_response()

        final = LOOP.run_until_complete(run())
        check(final.text == SAID, final.text)
        check(THOUGHT in json.dumps([message.to_dict() for message in final.messages]), final)

    def calls(self):
        def weather(city: str) -> str:
            """Tells the weather of a city."""
            return f"It rains in {city}."

        agent = self.client.as_agent(instructions="", tools=[weather])
        answer = LOOP.run_until_complete(agent.run(f"think: call: weather {WEATHER}"))
        check("It rains in Oslo." in answer.text, answer.text)


CLIENTS = [OpenAi, LangChain, PydanticAi, AgentFramework]
FEATURES = ["answers", "streams_reasoning", "calls"]


def outcome(client, model, feature):
    try:
        getattr(client(model), feature)()
        return "yes"
    except Exception as error:
        print(f"{client.package}, {model}, {feature}: {type(error).__name__}: {str(error)[:600]}", file=sys.stderr)
        return "no"


def main():
    with open(DOCUMENT) as document:
        rows = re.findall(r"^\| `([\w-]+)` ([\d.]+) \|(.*)\|$", document.read(), re.M)
    told = {name: (its_version, [cell.strip() for cell in cells.split("|")]) for name, its_version, cells in rows}
    wrong = []
    for client in CLIENTS:
        cells = []
        for feature in FEATURES:
            found = {model: outcome(client, model, feature) for model in MODELS}
            values = set(found.values())
            cells.append(values.pop() if len(values) == 1 else ", ".join(m for m in MODELS if found[m] == "yes"))
        row = (version(client.package), cells)
        print(f"| `{client.package}` {row[0]} | {' | '.join(cells)} |")
        if told.get(client.package) != row:
            wrong.append(client.package)
    if wrong:
        sys.exit(f"{DOCUMENT} says something else about {', '.join(wrong)}: {told}")


main()
