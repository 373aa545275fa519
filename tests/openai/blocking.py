"""Gives the asynchronous client the interface of the synchronous client, so that the same checks run with both clients."""

import asyncio
import inspect

from openai import AsyncOpenAI

# all connections of the client belong to one event loop
loop = asyncio.new_event_loop()


async def first_page(pages):
    return await pages


async def collect(pages):
    return [page async for page in pages]


class Blocking:
    """Wraps a part of the asynchronous client. Each call of the wrapper blocks until it has a result."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return blocking(getattr(self.inner, name))

    def __call__(self, *args, **options):
        return blocking(self.inner(*args, **options))

    def __iter__(self):
        return iter(loop.run_until_complete(collect(self.inner)))


def blocking(value):
    if inspect.isawaitable(value):
        # the client's list objects are both awaitable (for the first page) and iterable (for all items)
        is_list = hasattr(value, "__aiter__")
        value = loop.run_until_complete(first_page(value))
        return Blocking(value) if is_list else value
    if callable(value) or hasattr(value, "__aiter__") or type(value).__module__.startswith("openai.resources"):
        return Blocking(value)
    return value


def async_client(**options):
    return Blocking(AsyncOpenAI(**options))
