from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from threadkeep import PendingDeliveries, Threadkeep
from threadkeep.webhooks import InvalidSignature, verify

REPOSITORY = Path(os.environ.get("REPOSITORY", Path(__file__).parents[3]))
SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
BODY = json.dumps({"type": "thread.destroyed", "subject": "thrd_x", "data": {}}).encode()


def signed(body: bytes = BODY, seconds_from_now: float = 0, key: bytes = b"k" * 32) -> dict[str, str]:
    stamp = str(int(time.time() + seconds_from_now))
    digest = hmac.new(key, b"msg_1." + stamp.encode() + b"." + body, hashlib.sha256).digest()
    signature = "v1a,xx v1,notbase64! v1," + base64.b64encode(digest).decode()
    return {"Webhook-Id": "msg_1", "Webhook-Timestamp": stamp, "Webhook-Signature": signature}


def test_the_example_of_standard_webhooks_verifies() -> None:
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    with pytest.raises(KeyError):  # valid signature, but no `type` in the body
        verify('{"test": 2432232314}', headers, secret, tolerance_seconds=float("inf"))


def test_verifying_a_delivery_returns_its_event() -> None:
    event = verify(BODY, signed(), SECRET)
    assert (event.type, event.id, event.data["subject"]) == ("thread.destroyed", "msg_1", "thrd_x")
    assert verify(BODY.decode(), signed(), ["whsec_" + base64.b64encode(b"new").decode(), SECRET]).id == "msg_1"


def test_invalid_deliveries_are_rejected() -> None:
    for body, headers in (
        (BODY + b" ", signed()),
        (BODY, signed(key=b"other")),
        (BODY, signed(seconds_from_now=-400)),
        (BODY, signed(seconds_from_now=400)),
        (BODY, {}),
        (BODY, {**signed(), "Webhook-Timestamp": "9" * 5_000}),
        (BODY, {**signed(), "Webhook-Signature": ""}),
    ):
        with pytest.raises(InvalidSignature):
            verify(body, headers, SECRET)


@pytest.mark.parametrize("secret", ["", "whsec_", [SECRET, ""]])
def test_an_empty_secret_is_rejected(secret: str | list[str]) -> None:
    with pytest.raises(ValueError):
        verify(BODY, signed(key=b""), secret)


def test_the_documented_code_verifies() -> None:
    code = re.search(r"^```python\n(.*?)^```$", (REPOSITORY / "docs/webhooks.md").read_text(), re.MULTILINE | re.DOTALL)
    assert code
    names: dict[str, Any] = {}
    exec(code[1], names)
    headers = {name.lower(): value for name, value in signed().items()}
    assert names["verify"](BODY, headers, SECRET)
    assert not names["verify"](BODY + b" ", headers, SECRET)
    assert not names["verify"](BODY, headers, SECRET, now=time.time() + 400)


def test_endpoints_can_be_managed(tk: Threadkeep) -> None:
    endpoint = tk.webhooks.create("https://example.com/hook", ["thread.destroyed"])
    assert endpoint.secret and endpoint.secret not in repr(endpoint)
    assert tk.webhooks.update(endpoint.id, events=["thread.created"]).events == ["thread.created"]
    assert tk.webhooks.update(endpoint.id, secret=None).secret not in (None, endpoint.secret)
    assert tk.webhooks.get(endpoint.id).secret is None
    assert endpoint.id in {webhook.id for webhook in tk.webhooks.list()}
    assert list(tk.webhooks.failed(endpoint.id)) == []
    assert tk.webhooks.pending(endpoint.id, limit=1) == PendingDeliveries([], 0)
    assert tk.webhooks.replay(endpoint.id) == 0
    tk.webhooks.delete(endpoint.id)
    assert endpoint.id not in {webhook.id for webhook in tk.webhooks.list()}
