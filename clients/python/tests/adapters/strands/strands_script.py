from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator
from typing import Any

from strands.models import Model


class Script(Model):
    """Answers each request with the next string, or calls the next tool without arguments. Records the messages."""

    def __init__(self, *answers: str | dict[str, str]) -> None:
        self._answers = list(answers)
        self.inputs: list[Any] = []

    def get_config(self) -> Any:
        return {}

    def update_config(self, **config: Any) -> None:
        pass

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        self.inputs.append(copy.deepcopy(messages))
        answer = self._answers.pop(0)
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(answer, str):
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": answer}}}
        else:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": answer["tool"], "toolUseId": "1"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps({})}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(answer, str) else "tool_use"}}


def texts_of(messages: Any) -> list[str]:
    return [content["text"] for message in messages for content in message["content"] if "text" in content]
