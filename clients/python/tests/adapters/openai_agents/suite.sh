#!/bin/sh
# Runs the published session tests of openai-agents on ThreadkeepSession.
set -eu
# shellcheck source=tests/support/sdist.sh
. tests/support/sdist.sh

unpack_sdist openai-agents 0.24.0
PYTHONPATH=$PWD/tests:$PWD/tests/adapters/openai_agents
export PYTHONPATH
cd "$sdist"
"$PYTHON" -m pytest -q -p no:cacheprovider -p sessions_suite \
    tests/memory/test_session.py tests/memory/test_session_limit.py tests/memory/test_session_context_wrapper.py \
    tests/test_hitl_session_scenario.py tests/extensions/memory/test_redis_session.py
