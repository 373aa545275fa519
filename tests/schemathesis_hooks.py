"""Shortens the wait of requests for a turn, which would otherwise take half a minute each."""

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    if isinstance(case.body, dict) and case.body.get("wait_seconds") in range(2, 31):
        case.body["wait_seconds"] = 1
