from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from support.portal import Portal
from support.server import API_KEY, Server

from threadkeep.langgraph import ThreadkeepSaver

Open = Callable[..., ThreadkeepSaver]


class Awaited:
    """Something with async methods, `aget` for `get`, under the names of the blocking ones."""

    def __init__(self, wrapped: Any, portal: Portal) -> None:
        self._wrapped = wrapped
        self._portal = portal

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            answer = getattr(self._wrapped, f"a{name}")(*args, **kwargs)
            return self._portal.run(_collect(answer) if name == "list" else answer)

        return call


async def _collect(items: Any) -> list[Any]:
    return [item async for item in items]


@pytest.fixture
def settings(server: Server) -> dict[str, str]:
    return {"base_url": server.url, "api_key": API_KEY}


@pytest.fixture(params=["blocking", "async"])
def alike(request: pytest.FixtureRequest) -> Iterator[Callable[[Any], Any]]:
    """Gives something with methods of both kinds blocking methods only, which may await the async ones."""
    portal = Portal()
    yield lambda wrapped: wrapped if request.param == "blocking" else Awaited(wrapped, portal)
    portal.stop()


@pytest.fixture
def saver(settings: dict[str, str]) -> Iterator[ThreadkeepSaver]:
    with ThreadkeepSaver(**settings) as saver:
        yield saver


@pytest.fixture
def checkpointer(saver: ThreadkeepSaver, alike: Callable[[Any], Any]) -> BaseCheckpointSaver[Any]:
    """The saver, once by its blocking methods and once by the async ones."""
    return alike(saver)  # type: ignore[no-any-return]
