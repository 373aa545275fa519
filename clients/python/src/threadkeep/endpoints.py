from __future__ import annotations

from ._flow import AsyncHandle, Handle, async_iterating, awaitable, blocking, iterating
from ._flows import webhooks
from ._resource import Resource


class Webhooks(Handle[Resource]):
    """Webhook endpoints, to which the server posts events."""

    list = blocking(webhooks.listed)
    create = blocking(webhooks.create)
    get = blocking(webhooks.get)
    update = blocking(webhooks.update)
    delete = blocking(webhooks.delete)
    pending = blocking(webhooks.pending)
    failed = iterating(webhooks.failed)
    replay = blocking(webhooks.replay)


class AsyncWebhooks(AsyncHandle[Resource]):
    """Webhook endpoints, to which the server posts events."""

    list = awaitable(webhooks.listed)
    create = awaitable(webhooks.create)
    get = awaitable(webhooks.get)
    update = awaitable(webhooks.update)
    delete = awaitable(webhooks.delete)
    pending = awaitable(webhooks.pending)
    failed = async_iterating(webhooks.failed)
    replay = awaitable(webhooks.replay)
