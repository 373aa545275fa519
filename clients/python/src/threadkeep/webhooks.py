"""Verifies webhook deliveries, as Standard Webhooks defines (https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from ._json import decode
from .errors import ThreadkeepError
from .models import Event

TOLERANCE_SECONDS = 300


class InvalidSignature(ThreadkeepError):
    """The delivery does not come from the server, or is too old."""


def verify(
    body: bytes | str,
    headers: Mapping[str, str],
    secret: str | Iterable[str],
    *,
    tolerance_seconds: float = TOLERANCE_SECONDS,
) -> Event:
    """Returns the event in a delivery. The event's `id` is the same in each retry.

    Raises `InvalidSignature` if no signature matches `secret`, or any of the secrets if you pass several.
    """
    body = body.encode() if isinstance(body, str) else body
    lower_case = {name.lower(): value for name, value in headers.items()}
    id, timestamp = lower_case.get("webhook-id", ""), lower_case.get("webhook-timestamp", "")
    if not re.fullmatch("[0-9]{1,18}", timestamp):  # untrusted input, and Python limits the digits of an integer
        raise InvalidSignature("The delivery has no time.")
    if abs(time.time() - int(timestamp)) > tolerance_seconds:
        raise InvalidSignature("The delivery is too old, or the clock is wrong.")
    secrets = [secret] if isinstance(secret, str) else list(secret)
    signed = f"{id}.{timestamp}.".encode() + body
    expected = [hmac.new(_key_of(one), signed, hashlib.sha256).digest() for one in secrets]
    signatures = [_signature_of(part) for part in lower_case.get("webhook-signature", "").split(" ")]
    if not any(hmac.compare_digest(mac, signature) for mac in expected for signature in signatures if signature):
        raise InvalidSignature("No signature is by this secret.")
    data: Any = decode(body)
    return Event(type=data["type"], id=id, data=data)


def _key_of(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        raise ValueError("The secret is not base64.") from None
    if not key:
        raise ValueError("The secret is empty.")
    return key


def _signature_of(part: str) -> bytes:
    version, _, signature = part.partition(",")
    try:
        return base64.b64decode(signature, validate=True) if version == "v1" else b""
    except (binascii.Error, ValueError):
        return b""
