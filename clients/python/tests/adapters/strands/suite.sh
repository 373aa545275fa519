#!/bin/sh
# Runs the published strands-agents tests for session managers and storages against the adapters.
set -eu
# shellcheck source=tests/support/sdist.sh
. tests/support/sdist.sh

unpack_sdist strands-agents 1.62.0
PYTHONPATH=$PWD/tests:$PWD/tests/adapters/strands
export PYTHONPATH
cd "$sdist"
"$PYTHON" -m pytest -q -p no:cacheprovider -p strands_suite --override-ini addopts= --disable-warnings \
    tests/strands/session/test_repository_session_manager.py tests/strands/session/test_snapshot_session_manager.py \
    tests/strands/storage/test_in_memory_storage.py
