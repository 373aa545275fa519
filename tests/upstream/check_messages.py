"""Reads messages of the scripted upstream with the published package anthropic: check_messages.py PROGRAM"""

import anthropic
from anthropic import Anthropic
from scripted import ANSWER, CALLS, check_all, fails
from scripted import upstream as scripted_upstream

HELLO = [{"role": "user", "content": "hello"}]
TOOLS = [{"name": "kv_increment", "input_schema": {"type": "object", "properties": {"key": {"type": "string"}}}}]


def upstream(*replies, **more):
    return scripted_upstream(*replies, path="", **more)


def create(settings, messages=HELLO, **more):
    return Anthropic(**settings).messages.create(model="test", max_tokens=100, messages=messages, **more)


def check_texts():
    with upstream(ANSWER) as settings:
        message = create(settings)
        thinking, text = message.content
        assert (thinking.thinking, text.text) == (ANSWER["reasoning"], ANSWER["text"])
        assert thinking.signature and message.stop_reason == "end_turn"
        usage = message.usage
        assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (1, 1, 8)
        assert usage.output_tokens_details.thinking_tokens == 2

        events = list(create(settings, stream=True))
        assert (events[0].type, events[-1].type) == ("message_start", "message_stop")
        deltas = [event.delta for event in events if event.type == "content_block_delta"]
        texts = [delta.text for delta in deltas if delta.type == "text_delta"]
        assert "".join(texts) == ANSWER["text"] and len(texts) > 3
        assert sum(delta.type == "signature_delta" for delta in deltas) == 1


def check_stream_helper():
    calls = {**CALLS, "text": "I count.", "reasoning": "Twice."}
    with upstream(ANSWER, {**ANSWER, "piece_bytes": 1}, calls) as settings:
        messages = Anthropic(**settings).messages
        for _ in range(2):
            with messages.stream(model="test", max_tokens=100, messages=HELLO) as stream:
                assert "".join(stream.text_stream) == ANSWER["text"]
                final = stream.get_final_message()
            assert final.content[0].thinking == ANSWER["reasoning"] and final.content[0].signature
            assert final.usage.output_tokens == 8
        with messages.stream(model="test", max_tokens=100, messages=HELLO, tools=TOOLS) as stream:
            final = stream.get_final_message()
        assert final.stop_reason == "tool_use"
        uses = [block for block in final.content if block.type == "tool_use"]
        assert [use.input for use in uses] == [{"key": "a/n"}, {"key": "a/m"}]
        assert len({use.id for use in uses}) == 2


def check_tool_loop():
    """Checks that the upstream accepts its own answers as input, and rejects a tool call without a result."""
    fault = "the call call_1_1 has no result in the next message"
    calls = {**CALLS, "reasoning": "Twice."}
    with upstream(calls, ANSWER, faults=[f"request 3: {fault}", "request 4: calls without tools"]) as settings:
        first = create(settings, tools=TOOLS, tool_choice={"type": "any"})
        uses = [block.id for block in first.content if block.type == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": use, "content": "1"} for use in uses]
        conversation = [*HELLO, first.to_param()]
        answer = create(settings, [*conversation, {"role": "user", "content": results}], tools=TOOLS)
        assert answer.content[-1].text == ANSWER["text"] and answer.usage.input_tokens == 3

        incomplete = [*conversation, {"role": "user", "content": results[:1]}]
        refused = fails(anthropic.BadRequestError, lambda: create(settings, incomplete, tools=TOOLS))
        assert fault in str(refused)
        complete = [*conversation, {"role": "user", "content": results}]
        fails(anthropic.BadRequestError, lambda: create(settings, complete))


def check_ends():
    reasons = {"length": "max_tokens", "content_filter": "refusal"}
    with upstream(*({"text": "cut", "finish": reason} for reason in reasons)) as settings:
        for reason in reasons.values():
            assert create(settings).stop_reason == reason


def check_errors():
    errors = {
        400: anthropic.BadRequestError, 401: anthropic.AuthenticationError, 403: anthropic.PermissionDeniedError,
        404: anthropic.NotFoundError, 429: anthropic.RateLimitError, 500: anthropic.InternalServerError,
    }
    replies = [{"status": status, "message": f"It is {status}."} for status in errors for _ in range(2)]
    with upstream(*replies) as settings:
        for status, error in errors.items():
            for stream in (False, True):
                found = fails(error, lambda: create(settings, stream=stream))
                assert found.status_code == status and f"It is {status}." in str(found)
    with upstream(ANSWER, faults=["request 1: wrong or missing key"]) as settings:
        fails(anthropic.AuthenticationError, lambda: create({**settings, "api_key": "sk-other"}))


def check_failures():
    for failure in ("cut_off", "ends_early", "garbage", "error"):
        with upstream({**ANSWER, "failure": failure}) as settings:
            texts, error, types = "", None, []
            try:
                for event in create(settings, stream=True):
                    types.append(event.type)
                    delta = getattr(event, "delta", None)
                    texts += getattr(delta, "text", None) or getattr(delta, "thinking", None) or ""
            except Exception as found:
                error = type(found).__name__
            assert texts and "message_stop" not in types, (failure, types)
            assert (error is None) == (failure == "ends_early"), (failure, error)


check_all(anthropic, globals())
