from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from ._flows.threads import by_id, by_signature
from ._http.message import Origin
from ._omitted import OMITTED, passed
from ._resource import Resource, ThreadResource, add_headers
from ._transport import AsyncClient, SyncClient
from .version import __version__

DEFAULT_URL = "http://127.0.0.1:8080"


class Settings(NamedTuple):
    origin: Origin
    root: Resource

    @classmethod
    def of(
        cls,
        base_url: str | None,
        api_key: str | None,
        token: str = OMITTED,
        http_client: SyncClient | AsyncClient | None = None,
    ) -> Settings:
        """Resolves settings. Arguments take precedence over `THREADKEEP_URL` and `THREADKEEP_API_KEY`."""
        environment: Mapping[str, str] = os.environ
        url = environment.get("THREADKEEP_URL") or DEFAULT_URL if base_url is None else base_url
        origin = Origin.of(url)
        credentials = passed(token=token, api_key=OMITTED if api_key is None else api_key)
        has_own = _has_credential(http_client)
        if len(credentials) + has_own > 1:
            raise TypeError("Pass one credential: a token, an api_key, or an http_client that has one.")
        if not credentials and not has_own and environment.get("THREADKEEP_API_KEY"):
            credentials = {"THREADKEEP_API_KEY": environment["THREADKEEP_API_KEY"]}

        headers = {"user-agent": f"threadkeep-python/{__version__}"}
        for name, value in credentials.items():
            if not value:
                raise ValueError(f"{name} is empty.")
            add_headers(headers, {"authorization": f"Bearer {value}"})
        return cls(origin, Resource("", headers, repr(str(origin)), has_login="token" in credentials))

    def thread(self, id: str, ttl_seconds: int | None) -> ThreadResource:
        return by_id(self.root, passed(id=id)["id"], None, ttl_seconds)

    def current(self, signed_id: str, ttl_seconds: int | None) -> ThreadResource:
        return by_signature(self.root, passed(signed_id=signed_id)["signed_id"], ttl_seconds)


def _has_credential(client: SyncClient | AsyncClient | None) -> bool:
    return client is not None and ("authorization" in client.headers or client.auth is not None)
