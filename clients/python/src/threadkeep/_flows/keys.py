from __future__ import annotations

from .._flow import Flow
from .._resource import Resource
from ..models import ApiKey, Setting
from .receipts import received


def current(resource: Resource) -> Flow[ApiKey]:
    """Returns the name and rights of the client's API key."""
    return ApiKey.of((yield from received(resource.read("/v1/api-keys/current"))))


def settings(resource: Resource) -> Flow[list[Setting]]:
    """Returns the settings of the replica that answers, with secrets masked."""
    found = yield from received(resource.read("/v1/settings"))
    return [Setting.of(setting) for setting in found["settings"]]
