"""Uses reasoning and tool-calling models through Responses API clients on each kind of upstream. Prints the rows of the
table in docs/clients.md: clients.py ADDRESS KEY REQUIREMENT...

The scripted model repeats the user's text. See crates/scripted-upstream/src/main.rs.
"""

import asyncio
import json
import os
import re
import sys
from importlib.metadata import version

from pydantic import BaseModel

ADDRESS, KEY, *REQUIREMENTS = sys.argv[1:]
PACKAGES = [re.split(r"[\[=]", requirement)[0] for requirement in REQUIREMENTS]
BASE = f"{ADDRESS}/v1"
MODELS = ["chat", "responses", "messages"]
THOUGHT = "I think about it."
TEXT = "1, 2, 3"
WEATHER = '{"city": "Oslo"}'
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Place(BaseModel):
    city: str


OSLO = Place(city="Oslo")

# Without this variable, LiteLLM downloads model prices when it is imported.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

# all clients share one event loop, because a client can use its connections only in the loop that opened them
LOOP = asyncio.new_event_loop()
asyncio.set_event_loop(LOOP)


def check(condition, *details):
    if not condition:
        raise AssertionError(details)


def collect(events):
    """Returns the reasoning and the text of a stream. Checks that the reasoning comes first."""
    thought, text = "", ""
    for event in events:
        if event.type in ("response.reasoning_text.delta", "response.reasoning_summary_text.delta"):
            check(not text, "reasoning comes first")
            thought += event.delta
        elif event.type == "response.output_text.delta":
            text += event.delta
    return thought, text


class OpenAi:
    package = "openai"

    def __init__(self, model):
        from openai import OpenAI

        self.model = model
        self.client = OpenAI(base_url=BASE, api_key=KEY, max_retries=0)

    def answers(self):
        answer = self.client.responses.create(model=self.model, input=TEXT)
        check(answer.output_text == TEXT, answer)

    def streams_reasoning(self):
        with self.client.responses.stream(model=self.model, input=f"think: {TEXT}") as stream:
            streamed = collect(stream)
            final = stream.get_final_response()
        check((*streamed, final.output_text) == (THOUGHT, TEXT, TEXT), streamed, final)
        check([item.type for item in final.output] == ["reasoning", "message"], final.output)

    def create(self, request, tool):
        return self.client.responses.create(model=self.model, input=request, tools=[tool])

    def calls(self):
        tool = {"type": "function", "name": "weather", "parameters": PARAMETERS, "strict": False}
        ask = {"role": "user", "content": f"think: call: weather {WEATHER}"}
        first = self.create([ask], tool)
        call = next(item for item in first.output if item.type == "function_call")
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "It rains."}
        back = [item.model_dump(exclude_none=True) for item in first.output]
        second = self.create([ask, *back, result], tool)
        check(second.output_text == "It rains.", second)

    def structures(self):
        answer = self.client.responses.parse(model=self.model, input=f"json: {WEATHER}", text_format=Place)
        check(answer.output_parsed == OSLO, answer)


class OpenAiAgents:
    package = "openai-agents"

    def __init__(self, model):
        from agents import OpenAIResponsesModel, set_tracing_disabled
        from openai import AsyncOpenAI

        set_tracing_disabled(True)
        self.model = OpenAIResponsesModel(model, AsyncOpenAI(base_url=BASE, api_key=KEY, max_retries=0))

    def run(self, text, **options):
        from agents import Agent, Runner

        agent = Agent("helper", model=self.model, **options)
        return LOOP.run_until_complete(Runner.run(agent, text)).final_output

    def answers(self):
        answer = self.run(TEXT)
        check(answer == TEXT, answer)

    def streams_reasoning(self):
        from agents import Agent, Runner

        async def run():
            result = Runner.run_streamed(Agent("helper", model=self.model), f"think: {TEXT}")
            events = [event.data async for event in result.stream_events() if event.type == "raw_response_event"]
            return *collect(events), result.final_output

        outcome = LOOP.run_until_complete(run())
        check(outcome == (THOUGHT, TEXT, TEXT), outcome)

    def calls(self):
        from agents import function_tool

        @function_tool
        def weather(city: str) -> str:
            return f"It rains in {city}."

        answer = self.run(f"think: call: weather {WEATHER}", tools=[weather])
        check(answer == "It rains in Oslo.", answer)

    def structures(self):
        answer = self.run(f"json: {WEATHER}", output_type=Place)
        check(answer == OSLO, answer)


class LangChain:
    package = "langchain-openai"

    def __init__(self, model):
        from langchain_openai import ChatOpenAI

        self.model = ChatOpenAI(
            model=model, base_url=BASE, api_key=KEY, use_responses_api=True, output_version="responses/v1", max_retries=0
        )

    def answers(self):
        answer = self.model.invoke(TEXT)
        check(answer.text == TEXT, answer)

    def streams_reasoning(self):
        whole = None
        for chunk in self.model.stream(f"think: {TEXT}"):
            whole = chunk if whole is None else whole + chunk
        check([block["type"] for block in whole.content] == ["reasoning", "text"], whole.content)
        check(whole.text == TEXT, whole)
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

    def structures(self):
        answer = self.model.with_structured_output(Place, method="json_schema").invoke(f"json: {WEATHER}")
        check(answer == OSLO, answer)


class PydanticAi:
    package = "pydantic-ai-slim"

    def __init__(self, model):
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        provider = OpenAIProvider(base_url=BASE, api_key=KEY)
        self.agent = Agent(OpenAIResponsesModel(model, provider=provider))

    def answers(self):
        check(self.agent.run_sync(TEXT).output == TEXT)

    def streams_reasoning(self):
        async def run():
            async with self.agent.run_stream(f"think: {TEXT}") as result:
                output = await result.get_output()
                return output, result.all_messages()

        output, messages = LOOP.run_until_complete(run())
        parts = [(part.part_kind, part.content) for part in messages[-1].parts]
        check(output == TEXT, output)
        check([kind for kind, _ in parts] == ["thinking", "text"], parts)

    def calls(self):
        from pydantic_ai import FunctionToolset

        def weather(city: str) -> str:
            return f"It rains in {city}."

        answer = self.agent.run_sync(f"think: call: weather {WEATHER}", toolsets=[FunctionToolset([weather])])
        check(answer.output == "It rains in Oslo.", answer)

    def structures(self):
        from pydantic_ai import NativeOutput

        answer = self.agent.run_sync(f"json: {WEATHER}", output_type=NativeOutput(Place))
        check(answer.output == OSLO, answer)


class AgentFramework:
    package = "agent-framework-openai"

    def __init__(self, model):
        from agent_framework.openai import OpenAIChatClient

        self.client = OpenAIChatClient(model=model, base_url=BASE, api_key=KEY)

    def answers(self):
        agent = self.client.as_agent(instructions="")
        check(LOOP.run_until_complete(agent.run(TEXT)).text == TEXT)

    def streams_reasoning(self):
        async def run():
            stream = self.client.as_agent(instructions="").run(f"think: {TEXT}", stream=True)
            async for _ in stream:
                pass
            return await stream.get_final_response()

        final = LOOP.run_until_complete(run())
        check(final.text == TEXT, final.text)
        check(THOUGHT in json.dumps([message.to_dict() for message in final.messages]), final)

    def calls(self):
        def weather(city: str) -> str:
            """Tells the weather of a city."""
            return f"It rains in {city}."

        agent = self.client.as_agent(instructions="", tools=[weather])
        answer = LOOP.run_until_complete(agent.run(f"think: call: weather {WEATHER}"))
        check("It rains in Oslo." in answer.text, answer.text)

    def structures(self):
        agent = self.client.as_agent(instructions="")
        answer = LOOP.run_until_complete(agent.run(f"json: {WEATHER}", options={"response_format": Place}))
        check(answer.value == OSLO, answer)


class LiteLlm(OpenAi):
    package = "litellm"

    def __init__(self, model):
        self.model = f"openai/{model}"

    def ask(self, request, **options):
        import litellm

        litellm.suppress_debug_info = True
        return litellm.responses(request, self.model, api_base=BASE, api_key=KEY, max_retries=0, **options)

    def create(self, request, tool):
        return self.ask(request, tools=[tool])

    def answers(self):
        answer = self.ask(TEXT)
        check(answer.output_text == TEXT, answer)

    def streams_reasoning(self):
        streamed = collect(self.ask(f"think: {TEXT}", stream=True))
        check(streamed == (THOUGHT, TEXT), streamed)

    def structures(self):
        answer = self.ask(f"json: {WEATHER}", text_format=Place)
        check(Place.model_validate_json(answer.output_text) == OSLO, answer)


class Strands:
    package = "strands-agents"

    def __init__(self, model):
        from strands.models.openai_responses import OpenAIResponsesModel

        self.model = OpenAIResponsesModel({"base_url": BASE, "api_key": KEY, "max_retries": 0}, model_id=model)

    def agent(self, **options):
        from strands import Agent

        return Agent(model=self.model, **{"callback_handler": None, **options})

    def answers(self):
        answer = self.agent()(TEXT)
        check(str(answer).strip() == TEXT, answer)

    def streams_reasoning(self):
        thought, text = "", ""

        def on_event(reasoningText="", data="", **_):
            nonlocal thought, text
            check(not (reasoningText and text), "reasoning comes first")
            thought += reasoningText
            text += data

        self.agent(callback_handler=on_event)(f"think: {TEXT}")
        check((thought, text) == (THOUGHT, TEXT), thought, text)

    def calls(self):
        from strands import tool

        @tool
        def weather(city: str) -> str:
            """Tells the weather of a city."""
            return f"It rains in {city}."

        answer = self.agent(tools=[weather])(f"think: call: weather {WEATHER}")
        check(str(answer).strip() == "It rains in Oslo.", answer)

    def structures(self):
        answer = self.agent()(f"call: Place {WEATHER}", structured_output_model=Place)
        check(answer.structured_output == OSLO, answer)


class LlamaIndex:
    package = "llama-index-llms-openai"

    def __init__(self, model):
        from llama_index.llms.openai import OpenAIResponses

        self.model = OpenAIResponses(model, api_base=BASE, api_key=KEY, max_retries=0, context_window=128_000)

    def answers(self):
        answer = self.model.complete(TEXT)
        check(answer.text == TEXT, answer)

    def streams_reasoning(self):
        from llama_index.core.base.llms.types import ChatMessage, ThinkingBlock

        kinds = []
        for chunk in self.model.stream_chat([ChatMessage(f"think: {TEXT}")]):
            kinds += [type(block) for block in chunk.message.blocks]
        check(kinds.index(ThinkingBlock) == 0, kinds)
        thoughts = [block.content for block in chunk.message.blocks if isinstance(block, ThinkingBlock)]
        check((thoughts, chunk.message.content) == ([THOUGHT], TEXT), chunk)

    def calls(self):
        from llama_index.core.llms import ChatMessage
        from llama_index.core.tools import FunctionTool

        def weather(city: str) -> str:
            """Tells the weather of a city."""

        tools = [FunctionTool.from_defaults(weather)]
        ask = ChatMessage(f"think: call: weather {WEATHER}")
        first = self.model.chat_with_tools(tools, chat_history=[ask])
        [call] = self.model.get_tool_calls_from_response(first)
        check(call.tool_kwargs == {"city": "Oslo"}, call)
        result = ChatMessage("It rains.", role="tool", additional_kwargs={"tool_call_id": call.tool_id})
        second = self.model.chat_with_tools(tools, chat_history=[ask, first.message, result])
        check(second.message.content == "It rains.", second)

    def structures(self):
        from llama_index.core import PromptTemplate

        answer = self.model.structured_predict(Place, PromptTemplate("json: {place}"), place=WEATHER)
        check(answer == OSLO, answer)


CLIENTS = [OpenAi, OpenAiAgents, LangChain, PydanticAi, AgentFramework, LiteLlm, Strands, LlamaIndex]
FEATURES = ["answers", "streams_reasoning", "calls", "structures"]


def outcome(client, model, feature):
    try:
        getattr(client, feature)()
        return "yes"
    except Exception as error:
        print(f"{client.package}, {model}, {feature}: {type(error).__name__}: {str(error)[:600]}", file=sys.stderr)
        return "no"


def main():
    for client in CLIENTS:
        if client.package not in PACKAGES:
            continue
        cells = []
        clients = {model: client(model) for model in MODELS}
        for feature in FEATURES:
            outcomes = {model: outcome(clients[model], model, feature) for model in MODELS}
            values = set(outcomes.values())
            cells.append(values.pop() if len(values) == 1 else ", ".join(m for m in MODELS if outcomes[m] == "yes"))
        print(f"| `{client.package}` {version(client.package)} | Python | {' | '.join(cells)} |")


main()
