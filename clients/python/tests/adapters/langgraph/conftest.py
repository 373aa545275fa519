from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from support.awaited import Awaited
from support.portal import Portal
from support.server import API_KEY, Server

from threadkeep.langgraph import ThreadkeepSaver


@pytest.fixture
def settings(server: Server) -> dict[str, str]:
    return {"base_url": server.url, "api_key": API_KEY}


@pytest.fixture(params=["blocking", "async"])
def adapt(request: pytest.FixtureRequest) -> Iterator[Callable[[Any], Any]]:
    """Returns a function that wraps an object, so that blocking calls run the object's blocking or async methods."""
    portal = Portal()
    yield lambda wrapped: wrapped if request.param == "blocking" else Awaited(wrapped, portal)
    portal.stop()


@pytest.fixture
def saver(settings: dict[str, str]) -> Iterator[ThreadkeepSaver]:
    with ThreadkeepSaver(**settings) as saver:
        yield saver


@pytest.fixture
def checkpointer(saver: ThreadkeepSaver, adapt: Callable[[Any], Any]) -> BaseCheckpointSaver[Any]:
    return adapt(saver)  # type: ignore[no-any-return]
