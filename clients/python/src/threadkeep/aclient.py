from __future__ import annotations

from types import TracebackType

from ._flow import AsyncHandle, AsyncRunner, async_iterating, awaitable
from ._flows import events as event_flows
from ._flows import keys
from ._flows import namespaces as namespace_flows
from ._flows import stats as stats_flows
from ._flows.scopes import ScopeResource
from ._omitted import OMITTED, passed
from ._owner import AsyncOwnerRunner, OwnerCheck
from ._resource import Resource, segment
from ._settings import Settings
from ._transport import AsyncClient, AsyncTransport
from .archives import AsyncArchives
from .endpoints import AsyncWebhooks
from .namespace import AsyncNamespace
from .owners import AsyncOwners
from .scope import AsyncScope
from .thread import AsyncThread
from .threads import AsyncThreads
from .tools import AsyncTools


class AsyncThreadkeep(AsyncHandle[Resource]):
    """A client for one server. Several event loops may use it concurrently.

    `base_url` and `api_key` default to `THREADKEEP_URL` and `THREADKEEP_API_KEY`. `token` is a user's login token: the
    client then acts on behalf of that user. Do not pass `api_key` as well. `timeout` limits each attempt, in seconds. A
    request that fails temporarily is retried for ten seconds, with growing pauses, or up to `max_retries` times. With
    `http_client`, requests go through your httpx client, which you close yourself. If you pass no credential, the httpx
    client's own credential is used.
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        token: str = OMITTED,
        timeout: float = 10.0,
        max_retries: int | None = None,
        http_client: AsyncClient | None = None,
    ) -> None:
        self._settings = Settings.of(base_url, api_key, token, http_client)
        runner = AsyncRunner(AsyncTransport(self._settings.origin, timeout, max_retries, http_client))
        super().__init__(runner, self._settings.root)
        self.threads = AsyncThreads(runner, self._resource)
        self.archives = AsyncArchives(runner, self._resource)
        self.owners = AsyncOwners(runner, self._resource)
        self.tools = AsyncTools(runner, self._resource)
        self.webhooks = AsyncWebhooks(runner, self._resource)

    events = async_iterating(event_flows.of_all)
    namespaces = async_iterating(namespace_flows.namespaces)
    api_key = awaitable(keys.current)
    settings = awaitable(keys.settings)
    stats = awaitable(stats_flows.stats)

    def thread(self, id: str, *, owner: str = OMITTED, ttl_seconds: int | None = None) -> AsyncThread:
        """Returns a thread by its ID, for back ends. Does not send a request.

        With `owner`, the first call on the returned object creates the thread if it does not exist. If the thread has a
        different owner, the call raises `Forbidden` with `not_the_owner`. `ttl_seconds` is the TTL of a new thread.
        """
        resource = self._settings.thread(id, ttl_seconds)
        if passed(owner=owner):
            return AsyncThread(AsyncOwnerRunner(self._runner, OwnerCheck(resource, owner)), resource)
        return AsyncThread(self._runner, resource)

    def current(self, signed_id: str, *, ttl_seconds: int | None = None) -> AsyncThread:
        """Returns a thread by its signed ID, which needs no API key. Does not send a request."""
        return AsyncThread(self._runner, self._settings.current(signed_id, ttl_seconds))

    def kv(self, namespace: str) -> AsyncNamespace:
        """Returns a namespace of entries."""
        resource = self._resource.at(f"/v1/kv/{segment(namespace)}", repr(namespace))
        return AsyncNamespace(self._runner, resource)

    def scope(self, name: str) -> AsyncScope:
        """Returns a scope, such as `session:ada` or `thread:thrd_...`."""
        return AsyncScope(self._runner, ScopeResource(self._resource, name))

    async def close(self) -> None:
        """Closes the connections."""
        await self._runner.transport.close()

    async def __aenter__(self) -> AsyncThreadkeep:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
