from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from agent_framework import BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message


class Scripted(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """Answers each request with the next contents of its script, and records the requests."""

    def __init__(self, *answers: Content | str) -> None:
        super().__init__()
        self.answers = list(answers)
        self.requests: list[list[Message]] = []

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse]:
        async def answer() -> ChatResponse:
            self.requests.append(list(messages))
            number = len(self.requests)
            message = Message("assistant", [self.answers.pop(0)], message_id=f"{id(self)}-{number}")
            return ChatResponse(messages=[message], response_id=str(number))

        return answer()


def call(name: str) -> Content:
    return Content.from_function_call(call_id="c", name=name, arguments={})
