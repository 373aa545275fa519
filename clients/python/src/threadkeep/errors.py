"""The errors of this package. The class shows the HTTP status, and `code` the exact error."""

from __future__ import annotations

from typing import Any


class ThreadkeepError(Exception):
    """Base class of all errors that calls raise."""


class TransportError(ThreadkeepError):
    """No response arrived. If `sent` is true, the server may have performed the request."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class Timeout(TransportError):
    """No response arrived in time."""


class InvalidResponse(TransportError):
    """A successful response lacks members that the API promises. A proxy may have sent the response."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=True)


class UnreadableThreads(ThreadkeepError):
    """The server could not read some threads of an export. The export contains all other threads."""

    def __init__(self, thread_ids: list[str]) -> None:
        super().__init__(f"The server could not read {len(thread_ids)} threads of the export.")
        self.thread_ids = thread_ids


class EffectFailed(ThreadkeepError):
    """A tool call failed. Raise it in `run` to record `error`, which is any JSON value."""

    def __init__(self, error: Any = None, attempt: int | None = None) -> None:
        super().__init__("The tool call failed.")
        self.error = error
        self.attempt = attempt
        """Number of the attempt that failed. None until the failure is recorded."""


class EffectInDoubt(ThreadkeepError):
    """The tool may have run. Look up `key` in the system that the tool calls."""

    def __init__(self, id: str, key: str, attempt: int) -> None:
        super().__init__(f"Attempt {attempt} of {id!r} did not record its result, so the tool may have run.")
        self.id = id
        self.key = key
        self.attempt = attempt


class APIError(ThreadkeepError):
    """The server rejected the request."""

    def __init__(self, status: int, problem: dict[str, Any], retry_after: float | None = None) -> None:
        self.status = status
        self.problem = problem
        self.code: str = problem.get("code") or "unknown"
        self.detail: str = problem.get("detail") or problem.get("title") or "The response has no explanation."
        self.request_id: str | None = problem.get("request_id")
        self.retry_after = retry_after
        super().__init__(f"{status} {self.code}: {self.detail}")


class InvalidRequest(APIError):
    """400"""


class Unauthorized(APIError):
    """401"""


class Forbidden(APIError):
    """403: the API key lacks a right, or the thread has a different owner."""


class NotFound(APIError):
    """404"""


class Conflict(APIError):
    """409, such as `turn_taken`, `turn_lost`, `effect_settled`, `thread_exists` or `not_an_array`."""


class Destroyed(APIError):
    """410"""


class VersionMismatch(APIError):
    """412: the condition of the write is not met."""

    @property
    def current_version(self) -> int | None:
        """Version of the object on the server."""
        version = self.problem.get("current_version")
        return version if isinstance(version, int) else None


class TooLarge(APIError):
    """413"""


class IdempotencyKeyReused(APIError):
    """422: the idempotency key, item ID or effect ID was used for a different request, item or tool call."""


class RateLimited(APIError):
    """429"""


class Unavailable(APIError):
    """503"""


class ServerError(APIError):
    """Any other status of 500 or above."""


_BY_STATUS: dict[int, type[APIError]] = {
    400: InvalidRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Destroyed,
    412: VersionMismatch,
    413: TooLarge,
    422: IdempotencyKeyReused,
    429: RateLimited,
    503: Unavailable,
}


def class_of(status: int) -> type[APIError]:
    return _BY_STATUS.get(status, ServerError if status >= 500 else APIError)
