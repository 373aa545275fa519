from __future__ import annotations

from types import TracebackType

from ._flow import Handle, Runner, blocking, iterating
from ._flows import events as event_flows
from ._flows import keys
from ._flows import namespaces as namespace_flows
from ._flows import stats as stats_flows
from ._flows.scopes import ScopeResource
from ._omitted import OMITTED, passed
from ._owner import OwnerCheck, OwnerRunner
from ._resource import Resource, segment
from ._settings import Settings
from ._transport import SyncClient, SyncTransport
from .archives import Archives
from .endpoints import Webhooks
from .namespace import Namespace
from .owners import Owners
from .scope import Scope
from .thread import Thread
from .threads import Threads
from .tools import Tools


class Threadkeep(Handle[Resource]):
    """A client for one server. Thread-safe.

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
        http_client: SyncClient | None = None,
    ) -> None:
        self._settings = Settings.of(base_url, api_key, token, http_client)
        runner = Runner(SyncTransport(self._settings.origin, timeout, max_retries, http_client))
        super().__init__(runner, self._settings.root)
        self.threads = Threads(runner, self._resource)
        self.archives = Archives(runner, self._resource)
        self.owners = Owners(runner, self._resource)
        self.tools = Tools(runner, self._resource)
        self.webhooks = Webhooks(runner, self._resource)

    events = iterating(event_flows.of_all)
    namespaces = iterating(namespace_flows.namespaces)
    api_key = blocking(keys.current)
    settings = blocking(keys.settings)
    stats = blocking(stats_flows.stats)

    def thread(self, id: str, *, owner: str = OMITTED, ttl_seconds: int | None = None) -> Thread:
        """Returns a thread by its ID, for back ends. Does not send a request.

        With `owner`, the first call on the returned object creates the thread if it does not exist. If the thread has a
        different owner, the call raises `Forbidden` with `not_the_owner`. `ttl_seconds` is the TTL of a new thread.
        """
        resource = self._settings.thread(id, ttl_seconds)
        if passed(owner=owner):
            return Thread(OwnerRunner(self._runner, OwnerCheck(resource, owner)), resource)
        return Thread(self._runner, resource)

    def current(self, signed_id: str, *, ttl_seconds: int | None = None) -> Thread:
        """Returns a thread by its signed ID, which needs no API key. Does not send a request."""
        return Thread(self._runner, self._settings.current(signed_id, ttl_seconds))

    def kv(self, namespace: str) -> Namespace:
        """Returns a namespace of entries."""
        resource = self._resource.at(f"/v1/kv/{segment(namespace)}", repr(namespace))
        return Namespace(self._runner, resource)

    def scope(self, name: str) -> Scope:
        """Returns a scope, such as `session:ada` or `thread:thrd_...`."""
        return Scope(self._runner, ScopeResource(self._resource, name))

    def close(self) -> None:
        """Closes the connections."""
        self._runner.transport.close()

    def __enter__(self) -> Threadkeep:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
