from __future__ import annotations

from typing import Any

from .._flow import Call, Emit, Flow, Items, Pause, Shield
from .._json import encode
from .._omitted import not_none
from .._resource import QueryValue, ThreadResource, segment
from .._tool_calls import Progress, ToolCall, ToolCalls
from ..errors import APIError, EffectFailed, EffectInDoubt, RateLimited
from ..models import Effect
from ..not_done import NOT_DONE
from .receipts import received, required

PAGE = 100
"""Maximum number of effects in a response."""
FIRST_PAUSE_SECONDS = 0.05
MAX_PAUSE_SECONDS = 1.0


def get(thread: ThreadResource, id: str) -> Flow[Effect]:
    """Returns an effect with its result or error."""
    return Effect.of((yield from received(thread.read(_path(id)))))


def listed(thread: ThreadResource, state: str | None = None) -> Items[Effect]:
    """Yields the effects without results and errors, newest first. `state` selects effects in that state."""
    query: dict[str, QueryValue] = {"state": state, "limit": PAGE}
    while True:
        page = yield from received(thread.read("/effects", query))
        for effect in page["effects"]:
            yield Emit(Effect.of(effect))
        query["cursor"] = page.get("next_cursor")
        if query["cursor"] is None:
            return


def perform(thread: ThreadResource, call: ToolCall, progress: Progress, calls: ToolCalls) -> Flow[Any]:
    """Runs a tool call, unless it has run. Returns its result."""
    retry: int | None = None
    while True:
        effect = yield from _begin(thread, call, progress, retry)
        if effect.state == "done":
            return effect.result
        if effect.state == "running":
            yield from _wait(thread, call, progress, calls)
            continue
        if effect.state == "failed":
            if not call.retry:
                raise EffectFailed(effect.error, effect.attempt)
        elif effect.state == "in_doubt" or (effect.attempt == progress.attempt and not call.idempotent):
            if call.check is None:
                raise EffectInDoubt(effect.id, effect.key, effect.attempt)
            result = yield Call(call.check, effect.key)
            if result is not NOT_DONE:
                return (yield from _settle(thread, effect, progress, result=result)).result
            progress.attempt = 0
        else:
            return (yield from _run(thread, call, effect, progress))
        retry = effect.attempt


def _begin(thread: ThreadResource, call: ToolCall, progress: Progress, retry: int | None) -> Flow[Effect]:
    body = {"tool": call.tool, "hash": call.hash, "idempotent": call.idempotent, **not_none(retry=retry)}
    request = thread.write("POST", _path(call.id), encode(body), idempotency_key=progress.key)
    was_open, progress.is_open = progress.is_open, True
    try:
        effect = Effect.of((yield from received(request)))
    except APIError as error:
        # a rate limit can also reject the retry of a request whose first response was lost
        if error.status < 500 and not isinstance(error, RateLimited):
            progress.is_open = was_open
        raise
    progress.is_open = effect.state == "granted"
    return effect


def _wait(thread: ThreadResource, call: ToolCall, progress: Progress, calls: ToolCalls) -> Flow[None]:
    """Waits while another branch of the turn runs the tool."""
    pause_seconds = FIRST_PAUSE_SECONDS
    while not calls.take_over(call.id, progress):
        yield Pause(pause_seconds)
        # the effect of an expired turn remains `running` until the next turn begins
        if calls.is_lost():
            return
        if (yield from get(thread, call.id)).state != "running":
            return
        pause_seconds = min(2 * pause_seconds, MAX_PAUSE_SECONDS)


def _run(thread: ThreadResource, call: ToolCall, effect: Effect, progress: Progress) -> Flow[Any]:
    required(effect.fence, "fence")
    progress.attempt = effect.attempt
    try:
        result = yield Call(call.run, effect)
    except EffectFailed as failure:
        settled = yield from _settle(thread, effect, progress, error=failure.error)
        failure.error, failure.attempt = settled.error, settled.attempt
        raise
    return (yield from _settle(thread, effect, progress, result=result)).result


def _settle(thread: ThreadResource, effect: Effect, progress: Progress, **outcome: Any) -> Flow[Effect]:
    settled: Effect = yield Shield(_record(thread, effect, progress, outcome))
    return settled


def _record(thread: ThreadResource, effect: Effect, progress: Progress, outcome: dict[str, Any]) -> Flow[Effect]:
    body = {**not_none(fence=effect.fence), **outcome}
    settled = Effect.of((yield from received(thread.read(_path(effect.id), method="PUT", body=body))))
    progress.is_open = False
    return settled


def _path(id: str) -> str:
    return f"/effects/{segment(id)}"
