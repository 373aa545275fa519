"""Keeps requests for a turn from waiting for as long as they may, which is half a minute each."""

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    if isinstance(case.body, dict) and case.body.get("wait_seconds") in range(2, 31):
        case.body["wait_seconds"] = 1
