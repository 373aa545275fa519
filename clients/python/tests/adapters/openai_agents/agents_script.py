from __future__ import annotations

import copy
from typing import Any

from agents import Model, ModelResponse, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText


class Script(Model):
    """Answers each request with the next item, or raises the item if it is an exception. Records the inputs."""

    def __init__(self, *items: Any) -> None:
        self._items = list(items)
        self.inputs: list[Any] = []

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        self.inputs.append(copy.deepcopy(input))
        item = self._items.pop(0)
        if isinstance(item, Exception):
            raise item
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def message(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(id="1", type="message", role="assistant", status="completed", content=[content])


def call(tool: str) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(type="function_call", call_id="call", name=tool, arguments="{}")
