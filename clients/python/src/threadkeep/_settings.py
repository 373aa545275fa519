"""Settings of a client, from its arguments or the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from ._flows.threads import by_id, by_signature
from ._http.message import Origin
from ._place import Place, ThreadPlace, add_headers
from .version import __version__

DEFAULT_URL = "http://127.0.0.1:8080"


class Settings(NamedTuple):
    """Where the server is, and the headers of every request."""

    origin: Origin
    root: Place

    @classmethod
    def of(cls, base_url: str | None, api_key: str | None) -> Settings:
        """Arguments take precedence over `THREADKEEP_URL` and `THREADKEEP_API_KEY`."""
        environment: Mapping[str, str] = os.environ
        origin = Origin.of(base_url or environment.get("THREADKEEP_URL") or DEFAULT_URL)
        headers = {"user-agent": f"threadkeep-python/{__version__}"}
        key = api_key or environment.get("THREADKEEP_API_KEY")
        add_headers(headers, {"authorization": f"Bearer {key}" if key else None})
        return cls(origin, Place("", headers, repr(str(origin))))

    def thread(self, id: str | None, signed: str | None, ttl_seconds: int | None) -> ThreadPlace:
        """The place of a thread, by its ID or its signed ID."""
        if (id is None) == (signed is None):
            raise TypeError("Name the thread by its id, or by signed=, and not by both.")
        if id is not None:
            return by_id(self.root, id, None, ttl_seconds)
        assert signed is not None
        return by_signature(self.root, signed, ttl_seconds)
