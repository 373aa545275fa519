from __future__ import annotations

from ._flow import AsyncHandle, Handle, awaitable, blocking
from ._flows import tools
from ._resource import Resource


class Tools(Handle[Resource]):
    """Tools that the server offers to models."""

    list = blocking(tools.listed)
    run = blocking(tools.run)
    mcp_url = blocking(tools.mcp_url)


class AsyncTools(AsyncHandle[Resource]):
    """Tools that the server offers to models."""

    list = awaitable(tools.listed)
    run = awaitable(tools.run)
    mcp_url = awaitable(tools.mcp_url)
