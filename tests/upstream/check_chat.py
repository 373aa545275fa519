"""Reads chat completions of the scripted upstream with the published package openai: check_chat.py PROGRAM"""

import asyncio

import openai
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel
from scripted import ANSWER, CALLS, check_all, fails, upstream

HELLO = [{"role": "user", "content": "hello"}]


class kv_increment(BaseModel):
    """Adds 1."""

    key: str


TOOLS = [openai.pydantic_function_tool(kv_increment)]


def create(settings, messages=HELLO, **more):
    return OpenAI(**settings).chat.completions.create(model="test", messages=messages, **more)


def check_texts():
    with upstream(ANSWER) as settings:
        completion = create(settings)
        [choice] = completion.choices
        assert choice.message.content == ANSWER["text"] and choice.finish_reason == "stop"
        assert choice.message.reasoning_content == ANSWER["reasoning"]
        assert (completion.object, completion.model) == ("chat.completion", "test")
        usage = completion.usage
        assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (1, 8, 9)
        assert usage.completion_tokens_details.reasoning_tokens == 2

        *chunks, last = create(settings, stream=True, stream_options={"include_usage": True})
        assert last.usage == usage and last.choices == []
        assert all(chunk.usage is None for chunk in chunks)
        deltas = [chunk.choices[0].delta for chunk in chunks]
        assert "".join(delta.content or "" for delta in deltas) == ANSWER["text"]
        assert sum(bool(delta.content) for delta in deltas) > 3
        assert chunks[-1].choices[0].finish_reason == "stop"
        assert all(chunk.usage is None for chunk in create(settings, stream=True))


def check_stream_helper():
    pieces = {**ANSWER, "piece_bytes": 1}
    with upstream(ANSWER, pieces, CALLS, {"text": "no", "refusal": "I will not."}) as settings:
        completions = OpenAI(**settings).chat.completions
        for _ in range(2):
            with completions.stream(model="test", messages=HELLO) as stream:
                deltas = [event.delta for event in stream if event.type == "content.delta"]
                assert "".join(deltas) == ANSWER["text"]
                assert stream.get_final_completion().choices[0].message.content == ANSWER["text"]
        with completions.stream(model="test", messages=HELLO, tools=TOOLS) as stream:
            done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
            assert [event.parsed_arguments.key for event in done] == ["a/n", "a/m"]
            [choice] = stream.get_final_completion().choices
        assert choice.finish_reason == "tool_calls"
        assert len({call.id for call in choice.message.tool_calls}) == 2
        with completions.stream(model="test", messages=HELLO) as stream:
            assert stream.get_final_completion().choices[0].message.refusal == "I will not."


def check_async_client():
    async def check():
        async with AsyncOpenAI(**settings) as client:
            answer = await client.chat.completions.create(model="test", messages=HELLO)
            assert answer.choices[0].message.content == ANSWER["text"]
            async with client.chat.completions.stream(model="test", messages=HELLO) as stream:
                completion = await stream.get_final_completion()
            assert completion.choices[0].message.content == ANSWER["text"]

    with upstream(ANSWER) as settings:
        asyncio.run(check())


def check_tool_loop():
    """Checks that the upstream accepts its own answers as input, and rejects a tool call without a result."""
    fault = "the call call_1_1 has no result"
    with upstream(CALLS, ANSWER, faults=[f"request 3: {fault}"]) as settings:
        client = OpenAI(**settings)
        parsed = client.chat.completions.parse(model="test", messages=HELLO, tools=TOOLS)
        message = parsed.choices[0].message
        assert [call.function.parsed_arguments.key for call in message.tool_calls] == ["a/n", "a/m"]
        call = message.model_dump(include={"role", "content"})
        call["tool_calls"] = [
            {
                "id": call.id, "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in message.tool_calls
        ]
        results = [{"role": "tool", "tool_call_id": of.id, "content": "1"} for of in message.tool_calls]
        answer = create(settings, [*HELLO, call, *results], tools=TOOLS, tool_choice="auto")
        assert answer.choices[0].message.content == ANSWER["text"]
        assert answer.usage.prompt_tokens == 4

        refused = fails(openai.BadRequestError, lambda: create(settings, [*HELLO, call, results[0]]))
        assert fault in str(refused)


def check_finish_reasons():
    length, filtered = ({"text": "cut", "finish": reason} for reason in ("length", "content_filter"))
    with upstream(length, filtered) as settings:
        parse = OpenAI(**settings).chat.completions.parse
        for error in (openai.LengthFinishReasonError, openai.ContentFilterFinishReasonError):
            fails(error, lambda: parse(model="test", messages=HELLO, response_format=kv_increment))


def check_errors():
    errors = {
        400: openai.BadRequestError, 401: openai.AuthenticationError, 403: openai.PermissionDeniedError,
        404: openai.NotFoundError, 409: openai.ConflictError, 422: openai.UnprocessableEntityError,
        429: openai.RateLimitError, 500: openai.InternalServerError, 503: openai.InternalServerError,
    }
    replies = [{"status": status, "message": f"It is {status}."} for status in errors for _ in range(2)]
    with upstream(*replies) as settings:
        for status, error in errors.items():
            for stream in (False, True):
                found = fails(error, lambda: create(settings, stream=stream))
                assert found.status_code == status and f"It is {status}." in found.message
    with upstream({"status": 429, "retry_after": 1}, ANSWER) as settings:
        limited = fails(openai.RateLimitError, lambda: create(settings))
        assert limited.response.headers["retry-after"] == "1"
        assert limited.code == "rate_limit_exceeded"
        assert create(settings).choices[0].message.content == ANSWER["text"]
        # with one retry allowed, the client succeeds
        assert create({**settings, "max_retries": 1}).choices[0].message.content == ANSWER["text"]
    with upstream(ANSWER, faults=["request 1: wrong or missing key"]) as settings:
        fails(openai.AuthenticationError, lambda: create({**settings, "api_key": "sk-other"}))


def check_failures():
    def read(settings, stream, timeout):
        """Returns the text received before the error that ends the answer, and the error."""
        text = ""
        try:
            answer = create({**settings, "timeout": timeout}, stream=stream)
            for chunk in answer if stream else []:
                text += chunk.choices[0].delta.content or ""
                reasons.append(chunk.choices[0].finish_reason)
        except Exception as error:
            return text, type(error).__name__
        return text, None

    expected = {
        "cut_off": ("APIConnectionError", "APIConnectionError"),
        "ends_early": ("JSONDecodeError", None),
        "garbage": ("JSONDecodeError", "JSONDecodeError"),
        "error": (None, "APIError"),
        "hang": ("APITimeoutError", "APITimeoutError"),
    }
    for failure, errors in expected.items():
        # retry with a long time limit, because two seconds may pass without output if the machine pauses
        for timeout in (2, 60) if failure == "hang" else (60,):
            reasons = []
            with upstream({**ANSWER, "failure": failure}) as settings:
                (_, plain_error), (text, stream_error) = (read(settings, stream, timeout) for stream in (False, True))
            if text:
                break
        assert (plain_error, stream_error) == errors, (failure, plain_error, stream_error)
        assert text and ANSWER["text"].startswith(text), (failure, text)
        assert set(reasons) == {None}, (failure, reasons)
        assert (text == ANSWER["text"]) == (failure == "ends_early")


check_all(openai, globals())
