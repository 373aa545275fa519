"""Reads responses of the scripted upstream with the published package openai: check_responses.py PROGRAM"""

import openai
from openai import OpenAI
from scripted import ANSWER, CALLS, check_all, fails, upstream

TOOLS = [
    {
        "type": "function", "name": "kv_increment", "strict": False,
        "parameters": {"type": "object", "properties": {"key": {"type": "string"}}},
    }
]
REASONING = {"reasoning": {"effort": "low"}, "include": ["reasoning.encrypted_content"]}


def create(settings, messages="hello", **more):
    return OpenAI(**settings).responses.create(model="test", input=messages, store=False, **more)


def check_texts():
    with upstream(ANSWER) as settings:
        response = create(settings, **REASONING)
        assert response.status == "completed" and response.output_text == ANSWER["text"]
        reasoning, message = response.output
        assert reasoning.summary[0].text == ANSWER["reasoning"] and reasoning.encrypted_content
        assert (response.usage.output_tokens, response.usage.output_tokens_details.reasoning_tokens) == (8, 2)

        events = list(create(settings, stream=True))
        assert [event.sequence_number for event in events] == list(range(len(events)))
        deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
        assert "".join(deltas) == ANSWER["text"] and len(deltas) > 3
        assert events[-1].type == "response.completed"
        assert events[-1].response.output_text == ANSWER["text"]


def check_stream_helper():
    refusal = {"text": "no", "refusal": "I will not."}
    with upstream({**ANSWER, "piece_bytes": 1}, CALLS, refusal) as settings:
        responses = OpenAI(**settings).responses
        with responses.stream(model="test", input="hello", store=False) as stream:
            deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
            assert "".join(deltas) == ANSWER["text"]
            assert stream.get_final_response().output_text == ANSWER["text"]
        with responses.stream(model="test", input="hello", tools=TOOLS, store=False) as stream:
            calls = stream.get_final_response().output
        assert [call.arguments for call in calls] == [call["arguments"] for call in CALLS["calls"]]
        assert len({call.call_id for call in calls}) == 2
        with responses.stream(model="test", input="hello", store=False) as stream:
            [message] = stream.get_final_response().output
        assert [part.type for part in message.content] == ["output_text", "refusal"]


def check_tool_loop():
    """Checks that the upstream accepts its own answers as input, and rejects a tool call without a result."""
    fault = "the call call_1_1 has no result"
    calls = {**CALLS, "reasoning": "Twice."}
    with upstream(calls, ANSWER, faults=[f"request 3: {fault}"]) as settings:
        first = create(settings, tools=TOOLS, **REASONING)
        items = [{"role": "user", "content": "hello"}, *(item.to_dict() for item in first.output)]
        results = [
            {"type": "function_call_output", "call_id": item.call_id, "output": "1"}
            for item in first.output if item.type == "function_call"
        ]
        answer = create(settings, [*items, *results], tools=TOOLS, tool_choice="auto")
        assert answer.output_text == ANSWER["text"] and answer.usage.input_tokens == 6
        refused = fails(openai.BadRequestError, lambda: create(settings, [*items, results[0]]))
        assert fault in str(refused)


def check_ends():
    reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
    with upstream(*({"text": "cut", "finish": reason} for reason in reasons for _ in range(2))) as settings:
        for reason in reasons.values():
            direct, last = create(settings), list(create(settings, stream=True))[-1]
            assert last.type == "response.incomplete"
            for response in (direct, last.response):
                assert (response.status, response.incomplete_details.reason) == ("incomplete", reason)


def check_errors():
    errors = {400: openai.BadRequestError, 429: openai.RateLimitError, 500: openai.InternalServerError}
    with upstream(*({"status": status} for status in errors for _ in range(2))) as settings:
        for error in errors.values():
            for stream in (False, True):
                fails(error, lambda: create(settings, stream=stream))
    with upstream({**ANSWER, "failure": "error"}) as settings:
        # the package does not raise this event as an error
        assert list(create(settings, stream=True))[-1].type == "error"
    with upstream({**ANSWER, "failure": "cut_off"}) as settings:
        fails(openai.APIConnectionError, lambda: list(create(settings, stream=True)))
    with upstream({**ANSWER, "failure": "ends_early"}) as settings:
        types = [event.type for event in create(settings, stream=True)]
        assert "response.output_text.delta" in types and "response.completed" not in types
    stored = "request 1: store is not false"
    with upstream(faults=[stored]) as settings:
        responses = OpenAI(**settings).responses
        fails(openai.BadRequestError, lambda: responses.create(model="test", input="hello"))


check_all(openai, globals())
