from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.awaited import Awaited
from support.portal import Portal
from support.server import API_KEY, Server


@pytest.fixture
def settings(server: Server) -> dict[str, str]:
    return {"base_url": server.url, "api_key": API_KEY}


@pytest.fixture(params=["blocking", "async"])
def adapt(request: pytest.FixtureRequest) -> Iterator[Callable[[Any], Any]]:
    """Returns a function that wraps an object, so that blocking calls run the object's blocking or async methods."""
    portal = Portal()
    yield lambda wrapped: wrapped if request.param == "blocking" else Awaited(wrapped, portal)
    portal.stop()
