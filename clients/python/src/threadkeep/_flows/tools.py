from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._flow import Flow
from .._json import encode
from .._omitted import not_none
from .._resource import Resource
from ..models import McpUrl, ToolMessages
from .receipts import received


def listed(resource: Resource, format: str | None = None) -> Flow[list[dict[str, Any]]]:
    """Returns the tool definitions. `format` is `openai`, `anthropic`, `mcp` or `modelrelay`."""
    tools: list[dict[str, Any]] = (yield from received(resource.read("/v1/tools", {"format": format})))["tools"]
    return tools


def run(
    resource: Resource,
    scope: str,
    *,
    tool_calls: Sequence[Mapping[str, Any]] | None = None,
    content: Sequence[Mapping[str, Any]] | None = None,
    ignore_unknown: bool = False,
    idempotency_key: str | None = None,
) -> Flow[ToolMessages]:
    """Runs all tool calls in a model's message. Pass its `tool_calls` (OpenAI) or its `content` (Anthropic)."""
    calls = not_none(tool_calls=tool_calls, content=content, ignore_unknown=ignore_unknown or None)
    body = encode({"scope": scope, **calls})
    request = resource.write("POST", "/v1/tool-calls", body, idempotency_key=idempotency_key)
    return ToolMessages.of((yield from received(request)))


def mcp_url(resource: Resource, scope: str, *, expires_in_seconds: int | None = None) -> Flow[McpUrl]:
    """Returns a URL that gives an MCP client access to a scope."""
    body: dict[str, Any] = {"scope": scope}
    if expires_in_seconds is not None:
        body["expires_in_seconds"] = expires_in_seconds
    return McpUrl.of((yield from received(resource.read("/v1/mcp-urls", method="POST", body=body))))
